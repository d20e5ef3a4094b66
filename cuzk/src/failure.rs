//! Why a command did not succeed, and with which exit code.

use std::fmt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use crate::interrupt::Signal;

/// The end of a command that did not succeed.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    code: u8,
}

/// On good input something failed.
const FAILED: u8 = 1;

/// The user can mend it by changing an argument or a file.
const INPUT: u8 = 2;

fn code_of(is_input: bool) -> u8 {
    if is_input { INPUT } else { FAILED }
}

impl Failure {
    /// The user can mend it by changing an argument or a file: exit code 2.
    pub(crate) fn input(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            code: INPUT,
        }
    }

    /// Something failed on good input: exit code 1.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            code: FAILED,
        }
    }

    /// A signal ended it, as asked: 128 and the signal's number.
    pub(crate) fn stopped(signal: Signal, message: impl fmt::Display) -> Self {
        Self {
            message: format!("stopped by {}; {message}", signal.name()),
            code: signal.exit_code(),
        }
    }

    /// A file that the user named could not be read or written.
    pub(crate) fn file(path: &Path, error: &std::io::Error) -> Self {
        Self::input(format!("{}: {error}", path.display()))
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code)
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
            code: code_of(error.is_input()),
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
