//! The choices of a run.

use std::path::PathBuf;
use std::time::Duration;

use crate::Source;

/// The choices of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The folder that the files come into. It is made if it does not exist.
    pub folder: PathBuf,
    /// The sources. All are used at the same time.
    pub sources: Vec<Source>,
    /// The ranges that are fetched at once, over all sources. Each source has at least one.
    pub jobs: usize,
    /// The most bytes that a source is asked for at once. A kill costs at most so many
    /// bytes for each job.
    pub range_bytes: u64,
    /// The longest time without a byte before a connection counts as cut.
    pub patience: Duration,
    /// The failures in a row after which a source is not asked again.
    pub failures_max: u32,
}

impl Options {
    /// Returns the usual choices: 8 jobs, ranges of at most 32 MiB, 20 seconds without a
    /// byte, and 10 failures.
    #[must_use]
    pub fn new(folder: PathBuf, sources: Vec<Source>) -> Self {
        Self {
            folder,
            sources,
            jobs: 8,
            range_bytes: 32 << 20,
            patience: Duration::from_secs(20),
            failures_max: 10,
        }
    }
}
