//! The events of a fetch, its progress and its report.
//!
//! No output: the caller shows it. The invariant: events come in the order in which they
//! happened, on the thread that called.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Is told of a fetch while it runs.
pub trait Observer {
    /// Takes an event.
    fn event(&mut self, event: &Event) {
        let _ = event;
    }

    /// Takes the state, several times a second.
    fn progress(&mut self, progress: &Progress) {
        let _ = progress;
    }
}

/// Takes nothing.
impl Observer for () {}

/// Something that happened in a fetch. Its text is a sentence for a log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A file is there, and its bytes are compared with the digest.
    Comparing {
        /// The name of the file.
        file: String,
        /// Its length in bytes.
        length_bytes: u64,
    },
    /// A file with the right digest was there before.
    AlreadyThere {
        /// The name of the file.
        file: String,
    },
    /// A file of this name was there, and its digest is wrong. It stays until it can be
    /// replaced.
    WrongBefore {
        /// The name of the file.
        file: String,
    },
    /// Another process has a lock, and the fetch waits for it.
    Waiting {
        /// The locked file.
        path: PathBuf,
    },
    /// The fetch of a file begins.
    Begun {
        /// The name of the file.
        file: String,
        /// Its length in bytes.
        length_bytes: u64,
        /// The bytes that an earlier run left.
        kept_bytes: u64,
    },
    /// A file has its digest and its name.
    Done {
        /// The name of the file.
        file: String,
    },
    /// A file cannot be fetched. The bytes that came are kept.
    Failed {
        /// The name of the file.
        file: String,
        /// The reason.
        problem: String,
    },
    /// A source is not asked for a file again.
    SetAside {
        /// The source.
        source: String,
        /// The name of the file.
        file: String,
        /// The reason.
        problem: String,
    },
    /// A request failed, and is tried again.
    Retrying {
        /// The source.
        source: String,
        /// The reason.
        problem: String,
    },
    /// A source failed too often, and is not asked again in this run.
    GivenUp {
        /// The source.
        source: String,
        /// The reason.
        problem: String,
    },
    /// All bytes of a file are there, and its digest is wrong. The source of the wrong
    /// bytes is searched.
    WrongDigest {
        /// The name of the file.
        file: String,
    },
    /// A source gave wrong bytes. All its bytes are fetched again from others, and it is
    /// not asked again in this run.
    Corrupt {
        /// The source.
        source: String,
        /// The name of the file.
        file: String,
    },
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Comparing { file, length_bytes } => write!(
                f,
                "{file}: there already; its {length_bytes} bytes are compared with the digest"
            ),
            Self::AlreadyThere { file } => {
                write!(f, "{file}: already there, and its digest is right")
            }
            Self::WrongBefore { file } => write!(
                f,
                "{file}: the file that is there has a wrong digest; it will be replaced"
            ),
            Self::Waiting { path } => write!(
                f,
                "{}: locked by another process; waiting for it",
                path.display()
            ),
            Self::Begun {
                file,
                length_bytes,
                kept_bytes: 0,
            } => write!(f, "{file}: {length_bytes} bytes to fetch"),
            Self::Begun {
                file,
                length_bytes,
                kept_bytes,
            } => write!(
                f,
                "{file}: {kept_bytes} of {length_bytes} bytes are there from an earlier run"
            ),
            Self::Done { file } => write!(f, "{file}: fetched, and its digest is right"),
            Self::Failed { file, problem } => write!(f, "{file}: cannot be fetched: {problem}"),
            Self::SetAside {
                source,
                file,
                problem,
            } => write!(f, "{source}: not asked for {file} again: {problem}"),
            Self::Retrying { source, problem } => {
                write!(f, "{source}: {problem}; it is asked again")
            }
            Self::GivenUp { source, problem } => {
                write!(f, "{source}: not asked again in this run: {problem}")
            }
            Self::WrongDigest { file } => write!(
                f,
                "{file}: the digest is wrong; the source of the wrong bytes is searched"
            ),
            Self::Corrupt { source, file } => write!(
                f,
                "{source}: it gave wrong bytes of {file}; it is not asked again in this run, \
                 and its bytes are fetched from other sources"
            ),
        }
    }
}

/// The state of a fetch. A rate and the time left are the caller's to compute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The bytes that are there, those of earlier runs included. Of a file that is compared
    /// with its digest, those that were hashed.
    pub present_bytes: u64,
    /// The bytes of all files whose length is known.
    pub total_bytes: u64,
    /// The files that have their digest and their name.
    pub files_done: usize,
    /// All files.
    pub files: usize,
}

/// The end of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// A file with the right digest was there before.
    AlreadyThere,
    /// It was fetched, and has its digest.
    Fetched,
    /// It could not be fetched. The text says why.
    Failed(String),
    /// The disk is full or fails. The text says which. The bytes that came are kept.
    Disk(String),
    /// The fetch was stopped before. The bytes that came are kept.
    Stopped,
}

impl Outcome {
    /// Returns the end by an error of the system about a file, which `problem` describes.
    pub(crate) fn of_error(error: &io::Error, problem: String) -> Self {
        use io::ErrorKind::{QuotaExceeded, StorageFull};
        /// Linux's number of an input or output error, which has no kind.
        const EIO: i32 = 5;
        let is_full = matches!(error.kind(), StorageFull | QuotaExceeded);
        match is_full || error.raw_os_error() == Some(EIO) {
            true => Self::Disk(problem),
            false => Self::Failed(problem),
        }
    }
}

/// A file of a fetch at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileReport {
    /// Its name.
    pub name: String,
    /// Its length in bytes, if a source told it.
    pub length_bytes: Option<u64>,
    /// Its end.
    pub outcome: Outcome,
}

/// A source of a fetch at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceReport {
    /// Its text.
    pub source: String,
    /// The bytes that it gave in this run.
    pub fetched_bytes: u64,
    /// It gave wrong bytes.
    pub is_corrupt: bool,
    /// The reason for which it was not asked again.
    pub out: Option<String>,
}

/// The end of a fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// All files, in the order in which they were asked for.
    pub files: Vec<FileReport>,
    /// The sources, in the order in which they were given.
    pub sources: Vec<SourceReport>,
}

impl Report {
    /// Returns true if every file is there.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let is_there =
            |file: &FileReport| matches!(file.outcome, Outcome::AlreadyThere | Outcome::Fetched);
        self.files.iter().all(is_there)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_is_full_or_fails_is_no_fault_of_a_source() {
        let of = |error: io::Error| Outcome::of_error(&error, "p".to_owned());
        let disk = Outcome::Disk("p".to_owned());
        assert_eq!(of(io::ErrorKind::StorageFull.into()), disk);
        assert_eq!(of(io::ErrorKind::QuotaExceeded.into()), disk);
        assert_eq!(of(io::Error::from_raw_os_error(5)), disk);
        let failed = Outcome::Failed("p".to_owned());
        assert_eq!(of(io::ErrorKind::PermissionDenied.into()), failed);
    }
}
