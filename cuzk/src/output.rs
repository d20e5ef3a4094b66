//! The output of a command: text for people, or one JSON object.

use std::fmt;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use cuzk_core::error::ErrorCode;
use serde::Serialize;

use crate::failure::Failure;
use crate::shown::harmless;
pub(crate) use crate::shown::shown;

/// Prints `report` as one line of JSON, or as `text` writes it.
pub(crate) fn print<R: Serialize>(
    json: bool,
    report: &R,
    text: impl FnOnce(&R) -> String,
) -> Result<(), Failure> {
    print_lines(&line(json, report, text)?)
}

/// Prints `report`, on standard error if a result goes to standard output.
pub(crate) fn print_beside<R: Serialize>(
    is_stdout: bool,
    json: bool,
    report: &R,
    text: impl FnOnce(&R) -> String,
) -> Result<(), Failure> {
    if is_stdout {
        say(line(json, report, text)?);
        return Ok(());
    }
    print(json, report, text)
}

/// True if a result goes to standard output. Nothing else may then be written there.
static IS_STDOUT_TAKEN: AtomicBool = AtomicBool::new(false);

/// Records that a result goes to standard output. Failures are then reported on standard
/// error.
pub(crate) fn take_stdout() {
    IS_STDOUT_TAKEN.store(true, Ordering::Relaxed);
}

/// Prints the object that replaces a result. An error while printing is ignored, because the
/// command has failed already.
pub(crate) fn print_failure<R: Serialize>(report: &R) {
    let is_stdout = IS_STDOUT_TAKEN.load(Ordering::Relaxed);
    print_beside(is_stdout, true, report, |_| String::new()).ok();
}

/// Prints lines as they are.
pub(crate) fn print_lines(lines: &str) -> Result<(), Failure> {
    match writeln!(io::stdout().lock(), "{lines}") {
        // The reader closed the pipe, as `head` does.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(|error| {
            let code = match ErrorCode::of_file(&error) {
                ErrorCode::Output => ErrorCode::Output,
                _ => ErrorCode::Failed,
            };
            let message = format!("standard output: {error}; send the output to another place");
            Failure::new(code, message)
        }),
    }
}

/// Prints a line on standard error. An error while printing is ignored.
pub(crate) fn say(line: impl fmt::Display) {
    let line = harmless(&line.to_string());
    io::stderr().write_all(format!("{line}\n").as_bytes()).ok();
}

fn line<R: Serialize>(
    json: bool,
    report: &R,
    text: impl FnOnce(&R) -> String,
) -> Result<String, Failure> {
    if json {
        serde_json::to_string(report).map_err(|error| Failure::failed(error.to_string()))
    } else {
        Ok(harmless(&text(report)))
    }
}
