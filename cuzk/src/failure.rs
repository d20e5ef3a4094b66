//! The failure of a command: its message, its stable code and its exit code.
//!
//! Not its report. The invariant: the exit code is that of the stable code, unless a signal
//! ended the command, or several failures have one end.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::{fmt, io, iter};

use cuzk_core::error::ErrorCode;

use crate::shown::shown;
use crate::signal::Signal;

/// The end of a command that did not succeed.
#[derive(Debug)]
pub(crate) struct Failure {
    /// None if it has been printed.
    message: Option<String>,
    code: ErrorCode,
    exit_code: u8,
    /// True if a printed object has reported it.
    is_reported: bool,
}

impl Failure {
    /// Returns the failure of this code, with its exit code. A message that does not say what to
    /// do gets the remedy of the code.
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            message: Some(code.complete(message)),
            code,
            exit_code: code.exit_code(),
            is_reported: false,
        }
    }

    /// Returns the failure of arguments that the parser refused. It has said what to do.
    pub(crate) fn of_parser(message: impl Into<String>) -> Self {
        Self {
            message: Some(message.into()),
            ..Self::input("")
        }
    }

    /// Returns a failure that the user can mend by changing an argument: exit code 2.
    pub(crate) fn input(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Argument, message)
    }

    /// Returns a failure on good input: exit code 1.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Failed, message)
    }

    /// Returns the end by a signal: exit code 128 plus the signal's number.
    pub(crate) fn stopped(signal: Signal, message: impl fmt::Display) -> Self {
        let message = format!("stopped by {}; {message}", signal.name());
        Self {
            exit_code: signal.exit_code(),
            ..Self::new(ErrorCode::Signal, message)
        }
    }

    /// Returns the failure of a file that the user named and that cannot be read or written.
    /// A disk that is full or fails is no bad input.
    pub(crate) fn file(path: &Path, error: &io::Error) -> Self {
        Self::new(
            ErrorCode::of_file(error),
            format!("{}: {error}", shown(path)),
        )
    }

    /// Returns it with the name of the thing that failed, in front.
    pub(crate) fn of(self, what: impl fmt::Display) -> Self {
        Self {
            message: self.message.map(|message| format!("{what}: {message}")),
            ..self
        }
    }

    /// Returns it with another clause at the end of its message.
    pub(crate) fn and(self, clause: impl fmt::Display) -> Self {
        Self {
            message: self.message.map(|message| format!("{message}; {clause}")),
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

    /// Returns the stable code.
    pub(crate) fn code(&self) -> ErrorCode {
        self.code
    }

    /// Returns the exit code as a number.
    pub(crate) fn exit_number(&self) -> u8 {
        self.exit_code
    }

    /// Returns it with an exit code of at least `exit_code`.
    pub(crate) fn at_least(self, exit_code: u8) -> Self {
        Self {
            exit_code: self.exit_code.max(exit_code),
            ..self
        }
    }

    /// Returns the end of a command whose failures have all been printed.
    pub(crate) fn printed(exit_code: u8) -> Self {
        Self {
            message: None,
            code: ErrorCode::Failed,
            exit_code,
            is_reported: true,
        }
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.exit_code)
    }
}

/// Returns true if the system gave no file descriptor, as one of the causes of `error` tells.
pub(crate) fn lacks_files(error: &(dyn std::error::Error + 'static)) -> bool {
    let causes = iter::successors(Some(error), |cause| cause.source());
    causes
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| ErrorCode::of_file(cause) == ErrorCode::OpenFiles)
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
        Self::new(ErrorCode::of(error), error.to_string())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_no_bad_input_and_a_missing_folder_is() {
        let of = |kind: io::ErrorKind| {
            let failure = Failure::file(Path::new("p"), &kind.into());
            (failure.code(), failure.exit_number())
        };
        assert_eq!(of(io::ErrorKind::StorageFull), (ErrorCode::Output, 1));
        assert_eq!(of(io::ErrorKind::QuotaExceeded), (ErrorCode::Output, 1));
        assert_eq!(of(io::ErrorKind::NotFound), (ErrorCode::File, 2));
        assert_eq!(of(io::ErrorKind::PermissionDenied), (ErrorCode::File, 2));
    }

    #[test]
    fn a_message_without_advice_gets_the_remedy_of_its_code() {
        let missing = Failure::file(Path::new("p"), &io::ErrorKind::NotFound.into());
        let said = missing.to_string();
        assert!(said.starts_with("p: ") && said.ends_with("; check the path and its permissions"));
        assert_eq!(Failure::input("a: b; do c").to_string(), "a: b; do c");
        assert_eq!(
            Failure::of_parser("no such option").to_string(),
            "no such option"
        );
    }

    #[test]
    fn a_signal_has_its_own_exit_code() {
        let failure = Failure::stopped(Signal::Interrupt, "nothing is kept");
        assert_eq!(
            (failure.code(), failure.exit_number()),
            (ErrorCode::Signal, 130)
        );
    }
}
