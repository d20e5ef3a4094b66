//! What can go wrong with a journal.

use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why the journal could not do what was asked.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// Somebody has the file open.
    #[error(
        "journal {path}: in use by {}; stop that engine, or give this one a journal of its own",
        holder(*.holder_pid)
    )]
    InUse {
        /// The journal.
        path: PathBuf,
        /// The process that has it, where it said so.
        holder_pid: Option<u32>,
    },
    /// The file is a journal, and not whole.
    #[error(
        "journal {path}: damaged: {what}; nothing was written to it: \
         put back a good copy, or move it away to start with an empty one"
    )]
    Damaged {
        /// The journal.
        path: PathBuf,
        /// What was found.
        what: String,
    },
    /// The file is something else.
    #[error("journal {path}: not a journal: {what}; nothing was written to it: name another path")]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What was found.
        what: String,
    },
    /// The file was written by a later version.
    #[error(
        "journal {path}: expected format {known} or older, got {found}; nothing was written to \
         it: open it with the version that wrote it and let its jobs end there"
    )]
    NewerFormat {
        /// The journal.
        path: PathBuf,
        /// The file's format.
        found: u64,
        /// The newest that is known here.
        known: u64,
    },
    /// The operating system refused.
    #[error("journal {path}: cannot {action}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// Its answer.
        source: Arc<std::io::Error>,
    },
    /// The store failed while it was open: after a failed write nothing more is
    /// written until it was opened anew, which a later call tries. What was to be
    /// written may be on the disk by then; a job that was to be accepted is taken
    /// out, unless the process ends before that can be done.
    #[error(
        "journal: {what}; whether this call's change is kept is not certain: make room on the \
         disk or check it, and try again"
    )]
    Store {
        /// What the store said.
        what: String,
    },
    /// An argument outside of its bounds.
    #[error("{field}: expected {expected}, got {got}")]
    InvalidInput {
        /// The argument.
        field: &'static str,
        /// Its bounds.
        expected: String,
        /// What it was.
        got: String,
    },
    /// The id stands for something else.
    #[error("job {id:?}: this id stands for another input; send the new input under a new id")]
    OtherInput {
        /// The job.
        id: String,
    },
    /// No room until a job ends.
    #[error(
        "journal full: {what}: {used} of {max} used, {more} more asked for; wait for a job to end"
    )]
    Full {
        /// Which limit.
        what: &'static str,
        /// What pending jobs use.
        used: u64,
        /// What this one would add.
        more: u64,
        /// The limit.
        max: u64,
    },
    /// The id is not known, or no longer.
    #[error("job {id:?}: not in the journal: never accepted, forgotten, or its result has expired")]
    Unknown {
        /// The job.
        id: String,
    },
    /// The job has ended, and not like this.
    #[error("job {id:?}: has ended ({end}); its end cannot be changed")]
    Ended {
        /// The job.
        id: String,
        /// How.
        end: &'static str,
    },
    /// What is stored of one job is not what was written.
    #[error("job {id:?}: stored {what} is damaged; forget the job and submit it again")]
    DamagedJob {
        /// The job.
        id: String,
        /// Which part.
        what: &'static str,
    },
}

fn holder(pid: Option<u32>) -> String {
    pid.map_or_else(
        || "another engine".to_owned(),
        |pid| format!("process {pid}"),
    )
}

impl JournalError {
    /// Whether the caller can mend the problem, by another file or another call, as
    /// against a disk or a store that fails, or a journal that is full for now.
    #[must_use]
    pub fn is_input(&self) -> bool {
        match self {
            Self::InUse { .. }
            | Self::Damaged { .. }
            | Self::Foreign { .. }
            | Self::NewerFormat { .. }
            | Self::Io { .. }
            | Self::InvalidInput { .. }
            | Self::OtherInput { .. }
            | Self::Unknown { .. }
            | Self::Ended { .. }
            | Self::DamagedJob { .. } => true,
            Self::Store { .. } | Self::Full { .. } => false,
        }
    }

    pub(crate) fn io(path: &Path, action: &'static str, source: std::io::Error) -> Self {
        Self::Io {
            path: path.to_owned(),
            action,
            source: Arc::new(source),
        }
    }

    pub(crate) fn store(error: impl Into<redb::Error>) -> Self {
        Self::Store {
            what: error.into().to_string(),
        }
    }
}
