//! What a command prints: text for people, or one JSON object.

use std::io::{self, Write};

use serde::Serialize;

use crate::failure::Failure;

/// Prints `report` as one line of JSON, or what `text` makes of it.
pub(crate) fn print<R: Serialize>(
    json: bool,
    report: &R,
    text: impl FnOnce(&R) -> String,
) -> Result<(), Failure> {
    let line = if json {
        serde_json::to_string(report).map_err(|error| Failure::failed(error.to_string()))?
    } else {
        text(report)
    };
    match writeln!(io::stdout().lock(), "{line}") {
        // Whoever reads has seen enough, as `head` does.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(|error| Failure::failed(format!("standard output: {error}"))),
    }
}
