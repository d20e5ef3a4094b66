//! How much a journal keeps.

use std::time::Duration;

/// The bounds of a journal. They bound the file too: pending requests, which
/// are compressed, and results are nearly all that is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Jobs accepted and not ended.
    pub jobs_max: u64,
    /// The requests of all these jobs together, uncompressed.
    pub request_bytes_max: u64,
    /// Results kept; those written first give way.
    pub results_max: u64,
    /// How long a result is kept, by the clock. Of its jumps, and of a time in which
    /// nobody asked the journal for anything, an eighth of this counts at most, and a
    /// minute at least: a result is kept longer where the journal was idle or closed.
    pub result_age: Duration,
}

impl Default for Limits {
    /// 1,000 jobs of at most 8 GiB together, 10,000 results for a week.
    fn default() -> Self {
        Self {
            jobs_max: 1_000,
            request_bytes_max: 8 << 30,
            results_max: 10_000,
            result_age: Duration::from_secs(7 * 24 * 3600),
        }
    }
}
