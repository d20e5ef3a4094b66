//! An error of reading the sources.

use std::fmt::{self, Display};
use std::path::{Path, PathBuf};

/// A file that could not be read or parsed.
#[derive(Debug)]
pub struct Error {
    path: PathBuf,
    problem: String,
}

/// A result with this crate's error.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Returns an error about the file at `path`.
    pub fn new(path: &Path, problem: impl Display) -> Self {
        Self {
            path: path.to_owned(),
            problem: problem.to_string(),
        }
    }
}

impl Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.problem)
    }
}

impl std::error::Error for Error {}
