//! Reports of failures: text on standard error, and objects in the place of results.
//!
//! With `--json` each result has one object. A failure has an object in place of its result,
//! unless a printed report has said it.

use std::path::Path;

use serde::{Serialize, Serializer};

use crate::failure::Failure;
use crate::output;

/// The name of one of several requests.
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

/// Writes a path as reports have it, also if it is not UTF-8.
fn shown<S: Serializer>(path: &Option<&Path>, serializer: S) -> Result<S::Ok, S::Error> {
    path.map(output::shown).serialize(serializer)
}

/// A failure as an object, in the place of the result.
#[derive(Debug, Serialize)]
struct FailureReport<'a> {
    #[serde(flatten)]
    name: Name<'a>,
    error: &'a str,
    /// The stable code, such as `CUZK-0007`.
    code: String,
    exit_code: u8,
}

/// Prints a failure on standard error.
pub(crate) fn say(failure: &Failure) {
    if failure.message().is_some() {
        output::say(format_args!("error: {failure} [{}]", failure.code()));
    }
}

/// Prints a failure as an object, unless one was printed.
pub(crate) fn report(failure: &Failure) {
    report_of(failure, Name::default());
}

/// Prints a failure as an object in the place of a request's result.
pub(crate) fn report_of(failure: &Failure, name: Name<'_>) {
    let message = failure.message().filter(|_| !failure.is_reported());
    let Some(error) = message else { return };
    output::print_failure(&FailureReport {
        name,
        error,
        code: failure.code().to_string(),
        exit_code: failure.exit_number(),
    });
}

/// The failures of a command that goes on after them. Each is reported at once.
#[derive(Debug)]
pub(crate) struct Failures {
    /// The highest of their exit codes; none while nothing failed.
    code: Option<u8>,
    /// True if requests without a proof are reported as objects.
    json: bool,
}

impl Failures {
    pub(crate) fn new(json: bool) -> Self {
        Self { code: None, json }
    }

    /// Reports the failure of a request.
    pub(crate) fn add_request(&mut self, name: Name<'_>, failure: &Failure) {
        self.add(failure);
        if self.json {
            report_of(failure, name);
        }
    }

    /// Returns the end of the command if `failure` ends all these requests, too.
    pub(crate) fn end_all<'a>(
        &self,
        names: impl Iterator<Item = Name<'a>>,
        failure: Failure,
    ) -> Failure {
        if self.json {
            names.for_each(|name| report_of(&failure, name));
        }
        failure.at_least(self.code.unwrap_or_default()).reported()
    }

    /// Reports a failure, and keeps the highest exit code.
    pub(crate) fn add(&mut self, failure: &Failure) {
        say(failure);
        self.code = self.code.max(Some(failure.exit_number()));
    }

    /// Returns the end of the command if this was all.
    pub(crate) fn end(self) -> Result<(), Failure> {
        match self.code {
            None => Ok(()),
            Some(code) => Err(Failure::printed(code)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_failures_end_with_the_highest_code() {
        let end = |list: &[Failure]| {
            let mut failures = Failures::new(false);
            list.iter().for_each(|failure| failures.add(failure));
            failures.end().map_err(|failure| failure.exit_number())
        };
        let (failed, input) = (|| Failure::failed("one"), || Failure::input("other"));
        assert_eq!(end(&[]), Ok(()));
        assert_eq!(end(&[failed()]), Err(1));
        assert_eq!(end(&[failed(), input(), failed()]), Err(2));
    }
}
