//! The failure of a command: its message and its exit code.

use std::fmt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use crate::signal::Signal;

/// The end of a command that did not succeed.
#[derive(Debug)]
pub(crate) struct Failure {
    /// None if it has been printed.
    message: Option<String>,
    code: u8,
    /// True if a printed object has reported it.
    is_reported: bool,
}

/// The exit code of a failure on good input.
const FAILED: u8 = 1;

/// The exit code of bad input: the user can mend it by changing an argument or a file.
const INPUT: u8 = 2;

fn code_of(is_input: bool) -> u8 {
    if is_input { INPUT } else { FAILED }
}

impl Failure {
    fn new(message: impl Into<String>, code: u8) -> Self {
        Self {
            message: Some(message.into()),
            code,
            is_reported: false,
        }
    }

    /// Returns a failure that the user can mend by changing an argument or a file: exit
    /// code 2.
    pub(crate) fn input(message: impl Into<String>) -> Self {
        Self::new(message, INPUT)
    }

    /// Returns a failure on good input: exit code 1.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::new(message, FAILED)
    }

    /// Returns the end by a signal: exit code 128 plus the signal's number.
    pub(crate) fn stopped(signal: Signal, message: impl fmt::Display) -> Self {
        let message = format!("stopped by {}; {message}", signal.name());
        Self::new(message, signal.exit_code())
    }

    /// Returns the failure of a file that the user named and that cannot be read or written.
    pub(crate) fn file(path: &Path, error: &std::io::Error) -> Self {
        Self::input(format!("{}: {error}", path.display()))
    }

    /// Returns it with the name of the thing that failed, in front.
    pub(crate) fn of(self, what: impl fmt::Display) -> Self {
        Self {
            message: self.message.map(|message| format!("{what}: {message}")),
            ..self
        }
    }

    /// Returns it as a failure that needs no object: a report was printed already.
    pub(crate) fn reported(self) -> Self {
        Self {
            is_reported: true,
            ..self
        }
    }

    /// Returns the message, unless it has been printed.
    pub(crate) fn message(&self) -> Option<&str> {
        self.message.as_deref()
    }

    /// Returns true if a printed object has reported it.
    pub(crate) fn is_reported(&self) -> bool {
        self.is_reported
    }

    /// Returns the exit code as a number.
    pub(crate) fn code(&self) -> u8 {
        self.code
    }

    /// Returns it with an exit code of at least `code`.
    pub(crate) fn at_least(self, code: u8) -> Self {
        Self {
            code: self.code.max(code),
            ..self
        }
    }

    /// Returns the end of a command whose failures have all been printed.
    pub(crate) fn printed(code: u8) -> Self {
        Self {
            message: None,
            code,
            is_reported: true,
        }
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }
}

/// Returns the failure of good input that `error` describes: exit code 1.
pub(crate) fn failed(error: impl fmt::Display) -> Failure {
    Failure::failed(error.to_string())
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message.as_deref().unwrap_or_default())
    }
}

impl From<cuzk_core::config::ConfigError> for Failure {
    fn from(error: cuzk_core::config::ConfigError) -> Self {
        Self::from(cuzk_core::Error::from(error))
    }
}

impl From<&cuzk_core::Error> for Failure {
    fn from(error: &cuzk_core::Error) -> Self {
        Self::new(error.to_string(), code_of(error.is_input()))
    }
}

impl From<cuzk_core::Error> for Failure {
    fn from(error: cuzk_core::Error) -> Self {
        Self::from(&error)
    }
}

impl From<cuzk_filecoin::Error> for Failure {
    fn from(error: cuzk_filecoin::Error) -> Self {
        Self::from(cuzk_core::Error::from(error))
    }
}

impl From<cuzk_groth16::Error> for Failure {
    fn from(error: cuzk_groth16::Error) -> Self {
        Self::from(cuzk_core::Error::from(error))
    }
}

impl From<Arc<cuzk_core::Error>> for Failure {
    fn from(error: Arc<cuzk_core::Error>) -> Self {
        Self::from(&*error)
    }
}
