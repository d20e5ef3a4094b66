//! The errors of a journal.

use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The reason for which the journal could not do a call.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// Another engine has the file open.
    #[error(
        "journal {path}: in use by {}; stop that engine, or give this one another journal",
        holder(*.holder_pid)
    )]
    InUse {
        /// The journal.
        path: PathBuf,
        /// The process that has it, if the lock file names one.
        holder_pid: Option<u32>,
    },
    /// The file is a journal, but it is not whole.
    #[error(
        "journal {path}: damaged: {what}; nothing was written to it; \
         put back a good copy, or move the file away to start with an empty journal"
    )]
    Damaged {
        /// The journal.
        path: PathBuf,
        /// The damage that was found.
        what: String,
    },
    /// The file is not a journal.
    #[error(
        "journal {path}: not a journal: {what}; nothing was written to it; choose another path"
    )]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The difference that was found.
        what: String,
    },
    /// The file was written by a later version.
    #[error(
        "journal {path}: expected format {known} or older, got {found}; nothing was written to \
         it; open it with the version that wrote it, and let its jobs end there"
    )]
    NewerFormat {
        /// The journal.
        path: PathBuf,
        /// The file's format.
        found: u64,
        /// The newest format that this version knows.
        known: u64,
    },
    /// The operating system returned an error.
    #[error("journal {path}: cannot {action}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The action that failed.
        action: &'static str,
        /// The error that it returned.
        source: Arc<std::io::Error>,
    },
    /// The store failed while it was open. After a failed write nothing more is written
    /// until the store was opened again, which a later call tries. The change of this
    /// call may be on the disk by then. A job that was to be accepted is removed then,
    /// unless the process ends before that.
    #[error(
        "journal {path}: {what}; it is not certain that this change is kept; free space on the \
         disk or check the disk, then try again"
    )]
    Store {
        /// The journal.
        path: PathBuf,
        /// The store's error.
        what: String,
    },
    /// An argument is out of its bounds.
    #[error("{field}: expected {expected}, got {got}")]
    InvalidInput {
        /// The argument.
        field: &'static str,
        /// Its bounds.
        expected: String,
        /// The value that was passed.
        got: String,
    },
    /// The id belongs to another input.
    #[error("job {id:?}: this id belongs to another input; send the new input under a new id")]
    OtherInput {
        /// The job.
        id: String,
    },
    /// There is no room until a job ends.
    #[error(
        "journal full: {what}: {used} of {max} used, {more} more needed; wait for a job to end"
    )]
    Full {
        /// The limit that was reached.
        what: &'static str,
        /// The amount that pending jobs use.
        used: u64,
        /// The amount that this job would add.
        more: u64,
        /// The limit.
        max: u64,
    },
    /// The id is not known, or not known any more.
    #[error(
        "job {id:?}: not in the journal: it was never accepted, was forgotten, or its result \
         has expired; submit it again"
    )]
    Unknown {
        /// The job.
        id: String,
    },
    /// The job has ended already, in another way.
    #[error("job {id:?}: has ended already ({end}); submit new work under a new id")]
    Ended {
        /// The job.
        id: String,
        /// The way in which it ended.
        end: &'static str,
    },
    /// The stored form of one job is not the one that was written.
    #[error("job {id:?}: stored {what} is damaged; forget the job and submit it again")]
    DamagedJob {
        /// The job.
        id: String,
        /// The part that is damaged.
        what: &'static str,
    },
}

/// Returns true if the disk is full or fails, and another path would do no better.
fn is_of_disk(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    /// Linux's number of an input or output error, which has no kind.
    const EIO: i32 = 5;
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
        || error.raw_os_error() == Some(EIO)
}

fn holder(pid: Option<u32>) -> String {
    pid.map_or_else(
        || "another engine".to_owned(),
        |pid| format!("process {pid}"),
    )
}

impl JournalError {
    /// Returns true if the caller can solve the problem, by another file or another
    /// call. Returns false for a disk or a store that fails, and for a journal that is
    /// full for now.
    #[must_use]
    pub fn is_input(&self) -> bool {
        match self {
            Self::Io { source, .. } => !is_of_disk(source),
            Self::InUse { .. }
            | Self::Damaged { .. }
            | Self::Foreign { .. }
            | Self::NewerFormat { .. }
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

    /// Returns an error of the store, which does not know its file. [`Self::at`] adds it.
    pub(crate) fn store(error: impl Into<redb::Error>) -> Self {
        Self::store_says(error.into().to_string())
    }

    /// Returns an error of the store with these words, as [`Self::store`].
    pub(crate) fn store_says(what: impl Into<String>) -> Self {
        Self::Store {
            path: PathBuf::new(),
            what: what.into(),
        }
    }

    /// Returns the error with the path of the journal, if it is one of the store.
    pub(crate) fn at(self, path: &Path) -> Self {
        match self {
            Self::Store { what, .. } => Self::Store {
                path: path.to_owned(),
                what,
            },
            error => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Error, ErrorKind};

    #[test]
    fn a_full_or_failing_disk_is_not_the_callers_input() {
        let is_input = |error| JournalError::io(Path::new("j"), "write", error).is_input();
        for kind in [
            ErrorKind::StorageFull,
            ErrorKind::QuotaExceeded,
            ErrorKind::FileTooLarge,
        ] {
            assert!(!is_input(kind.into()), "{kind}");
        }
        // Linux's number of an input or output error, and of a file that is not there.
        assert!(!is_input(Error::from_raw_os_error(5)));
        assert!(is_input(Error::from_raw_os_error(2)));
        assert!(is_input(ErrorKind::PermissionDenied.into()));
        let id = || "a".to_owned();
        assert!(JournalError::Unknown { id: id() }.is_input());
        assert!(!JournalError::store_says("a").is_input());
    }

    #[test]
    fn an_error_of_the_store_gets_the_path_and_no_other_one_does() {
        let said = |error: JournalError| error.at(Path::new("/j")).to_string();
        let full = said(JournalError::store_says("full"));
        assert!(full.starts_with("journal /j: full; "), "{full}");
        let unknown = JournalError::Unknown { id: "a".to_owned() };
        assert_eq!(said(unknown.clone()), unknown.to_string());
    }
}
