//! The errors of a fetch.

use std::io;
use std::path::{Path, PathBuf};

/// The reason for which a fetch did not start, or did not bring every file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// A list of digests has another form.
    #[error("{path}: not a list of digests: {problem}; expected the form of parameters.json")]
    List {
        /// The list.
        path: PathBuf,
        /// The problem, with the file in the list that has it.
        problem: String,
    },
    /// No source was given.
    #[error("no source to fetch from; name one")]
    NoSource,
    /// The files do not fit on the disk.
    #[error(
        "{folder}: {needed_bytes} bytes are still to be fetched, and {free_bytes} bytes are \
         free; make room, or choose another folder"
    )]
    NoSpace {
        /// The folder of the files.
        folder: PathBuf,
        /// The bytes that have to be fetched.
        needed_bytes: u64,
        /// The bytes that the disk has for this user.
        free_bytes: u64,
    },
    /// The operating system returned an error for a file or folder.
    #[error("{path}: cannot {action}: {source}")]
    File {
        /// The file or folder.
        path: PathBuf,
        /// The action that failed.
        action: &'static str,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A thread could not be started.
    #[error("cannot start a thread: {0}; raise the limit of processes (`ulimit -u`, `TasksMax=`)")]
    Thread(io::Error),
}

impl FetchError {
    /// Returns the error of an action with a file.
    pub(crate) fn file(path: &Path, action: &'static str, source: io::Error) -> Self {
        Self::File {
            path: path.to_owned(),
            action,
            source,
        }
    }
}
