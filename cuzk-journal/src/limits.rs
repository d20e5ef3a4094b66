//! The bounds of a journal.

use std::time::Duration;

/// The bounds of a journal. They bound the file too, because pending requests
/// (compressed) and results are nearly all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Jobs that are accepted and have not ended.
    pub jobs_max: u64,
    /// The length of all their requests together, uncompressed.
    pub request_bytes_max: u64,
    /// Results that are kept. The ones written first are removed first.
    pub results_max: u64,
    /// The time that a result is kept, by the clock. A jump of the clock counts for at
    /// most an eighth of this time, or for a minute if that is longer. The same limit
    /// holds for a time in which nobody called the journal. So a result is kept longer
    /// if the journal was idle or closed.
    pub result_age: Duration,
}

impl Default for Limits {
    /// Returns 1,000 jobs of at most 8 GiB together, and 10,000 results for a week.
    fn default() -> Self {
        Self {
            jobs_max: 1_000,
            request_bytes_max: 8 << 30,
            results_max: 10_000,
            result_age: Duration::from_secs(7 * 24 * 3600),
        }
    }
}
