//! Sends `tracing` events to standard error, as the configuration says.

use std::io::{self, IsTerminal};

use cuzk_core::config::{LogFormat, Logging};
use tracing_subscriber::EnvFilter;

/// Starts logging. A second call in one process changes nothing.
pub(crate) fn start(logging: &Logging) {
    // Ours only: the proofs libraries log through `log`, at length.
    let level = logging.level.as_str();
    let filter = EnvFilter::new(format!("cuzk={level},cuzk_core={level}"));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(is_in_colour())
        // It would panic where standard error takes nothing.
        .log_internal_errors(false)
        .with_writer(io::stderr);
    let _ = match logging.format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().try_init(),
    };
}

/// Files and pipes get plain text, and so does who asks for it (<https://no-color.org>).
fn is_in_colour() -> bool {
    let is_declined = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    io::stderr().is_terminal() && !is_declined
}
