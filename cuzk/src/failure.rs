//! Why a command did not succeed, and with which exit code.
//!
//! With `--json` a failure has an object of its own where nothing else says so: each result
//! has one object, also where there is none.

use std::fmt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use serde::{Serialize, Serializer};

use crate::output;
use crate::signal::Signal;

/// The end of a command that did not succeed.
#[derive(Debug)]
pub(crate) struct Failure {
    /// None where all has been said.
    message: Option<String>,
    code: u8,
    /// True if a printed object has reported it.
    is_reported: bool,
}

/// Which of several requests it is.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Name<'a> {
    /// Its file, if it came from one.
    #[serde(rename = "request", serialize_with = "shown")]
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a Path>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<&'a str>,
}

impl<'a> Name<'a> {
    pub(crate) fn new(path: Option<&'a Path>, id: Option<&'a str>) -> Self {
        Self { path, id }
    }
}

/// Also where it is not UTF-8, as reports have it.
fn shown<S: Serializer>(path: &Option<&Path>, serializer: S) -> Result<S::Ok, S::Error> {
    let shown = path.map(|path| path.display().to_string());
    shown.serialize(serializer)
}

/// A failure as an object, in the place of the result.
#[derive(Debug, Serialize)]
struct FailureReport<'a> {
    #[serde(flatten)]
    name: Name<'a>,
    error: &'a str,
    exit_code: u8,
}

/// On good input something failed.
const FAILED: u8 = 1;

/// The user can mend it by changing an argument or a file.
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

    /// The user can mend it by changing an argument or a file: exit code 2.
    pub(crate) fn input(message: impl Into<String>) -> Self {
        Self::new(message, INPUT)
    }

    /// Something failed on good input: exit code 1.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::new(message, FAILED)
    }

    /// A signal ended it, as asked: 128 and the signal's number.
    pub(crate) fn stopped(signal: Signal, message: impl fmt::Display) -> Self {
        let message = format!("stopped by {}; {message}", signal.name());
        Self::new(message, signal.exit_code())
    }

    /// A file that the user named could not be read or written.
    pub(crate) fn file(path: &Path, error: &std::io::Error) -> Self {
        Self::input(format!("{}: {error}", path.display()))
    }

    /// The same, of one of several things.
    pub(crate) fn of(self, what: impl fmt::Display) -> Self {
        Self {
            message: self.message.map(|message| format!("{what}: {message}")),
            ..self
        }
    }

    /// The same, after a report that says it or is not concerned.
    pub(crate) fn reported(self) -> Self {
        Self {
            is_reported: true,
            ..self
        }
    }

    /// Says it on standard error.
    pub(crate) fn say(&self) {
        if self.message.is_some() {
            output::say(format_args!("error: {self}"));
        }
    }

    /// Prints it as an object, unless there is one.
    pub(crate) fn report(&self) {
        self.report_of(Name::default());
    }

    /// The same, in the place of a request's result.
    pub(crate) fn report_of(&self, name: Name<'_>) {
        let message = self.message.as_deref().filter(|_| !self.is_reported);
        let Some(error) = message else { return };
        output::print_failure(&FailureReport {
            name,
            error,
            exit_code: self.code,
        });
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }
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

/// The failures of a command that goes on after them. Each is reported at once.
#[derive(Debug)]
pub(crate) struct Said {
    /// The highest of their exit codes; none while nothing failed.
    code: Option<u8>,
    /// True if requests without a proof are reported as objects.
    json: bool,
}

impl Said {
    pub(crate) fn new(json: bool) -> Self {
        Self { code: None, json }
    }

    /// Reports the failure of a request.
    pub(crate) fn add_request(&mut self, name: Name<'_>, failure: &Failure) {
        self.add(failure);
        if self.json {
            failure.report_of(name);
        }
    }

    /// How the command ends if `failure` is the end of all these requests, too.
    pub(crate) fn end_all<'a>(
        &self,
        names: impl Iterator<Item = Name<'a>>,
        failure: Failure,
    ) -> Failure {
        if self.json {
            names.for_each(|name| failure.report_of(name));
        }
        let code = failure.code.max(self.code.unwrap_or_default());
        Failure { code, ..failure }.reported()
    }

    /// Reports a failure, and keeps the highest exit code.
    pub(crate) fn add(&mut self, failure: &Failure) {
        failure.say();
        self.code = self.code.max(Some(failure.code));
    }

    /// How the command ends if this was all.
    pub(crate) fn end(self) -> Result<(), Failure> {
        match self.code {
            None => Ok(()),
            Some(code) => Err(Failure {
                message: None,
                code,
                is_reported: true,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_in_several_ways_has_the_highest_code() {
        let end = |failures: &[Failure]| {
            let mut said = Said::new(false);
            failures.iter().for_each(|failure| said.add(failure));
            said.end().map_err(|failure| failure.code)
        };
        let (failed, input) = (|| Failure::failed("one"), || Failure::input("other"));
        assert_eq!(end(&[]), Ok(()));
        assert_eq!(end(&[failed()]), Err(1));
        assert_eq!(end(&[failed(), input(), failed()]), Err(2));
    }
}
