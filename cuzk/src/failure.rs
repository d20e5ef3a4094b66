//! Why a command did not succeed, and with which exit code.

use std::fmt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

/// The end of a command that did not succeed.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    is_input: bool,
}

impl Failure {
    /// The user can mend it by changing an argument or a file: exit code 2.
    pub(crate) fn input(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            is_input: true,
        }
    }

    /// Something failed on good input: exit code 1.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            is_input: false,
        }
    }

    /// A file that the user named could not be read or written.
    pub(crate) fn file(path: &Path, error: &std::io::Error) -> Self {
        Self::input(format!("{}: {error}", path.display()))
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(if self.is_input { 2 } else { 1 })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<&cuzk_core::Error> for Failure {
    fn from(error: &cuzk_core::Error) -> Self {
        Self {
            message: error.to_string(),
            is_input: error.is_input(),
        }
    }
}

impl From<cuzk_core::Error> for Failure {
    fn from(error: cuzk_core::Error) -> Self {
        Self::from(&error)
    }
}

impl From<Arc<cuzk_core::Error>> for Failure {
    fn from(error: Arc<cuzk_core::Error>) -> Self {
        Self::from(&*error)
    }
}
