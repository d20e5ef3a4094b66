//! Sends `tracing` events to standard error, as the configuration says.

use std::env;
use std::ffi::OsString;
use std::io::{self, IsTerminal};

use cuzk_core::config::{LogFormat, Logging};
use tracing_subscriber::EnvFilter;

/// Starts logging. A second call in one process changes nothing.
pub(crate) fn start(logging: &Logging) {
    // Events of this workspace only, because the proofs libraries write very many.
    let level = logging.level.as_str();
    let filter = EnvFilter::new(format!("cuzk={level},cuzk_core={level}"));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(is_in_colour(io::stderr().is_terminal(), |name| {
            env::var_os(name)
        }))
        // It would panic if standard error cannot be written.
        .log_internal_errors(false)
        .with_writer(io::stderr);
    let _ = match logging.format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().try_init(),
    };
}

/// Returns true if the output has colours. Files, pipes and terminals without colours get
/// plain text. So do users who ask for it (<https://no-color.org>).
fn is_in_colour(is_terminal: bool, variable: impl Fn(&str) -> Option<OsString>) -> bool {
    let is_declined = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
    let is_dumb = variable("TERM").is_some_and(|value| value == "dumb");
    is_terminal && !is_declined && !is_dumb
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_for_terminals_that_have_them() {
        let of = |is_terminal, name: &str, value: &str| {
            let is_it = |asked: &str| (asked == name).then(|| OsString::from(value));
            is_in_colour(is_terminal, is_it)
        };
        assert!(of(true, "TERM", "xterm") && of(true, "NO_COLOR", ""));
        assert!(!of(true, "TERM", "dumb") && !of(true, "NO_COLOR", "1"));
        assert!(!of(false, "TERM", "xterm"));
    }
}
