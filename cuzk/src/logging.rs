//! Sends `tracing` events to standard error, as the configuration says.

use cuzk_core::config::{LogFormat, Logging};
use tracing_subscriber::EnvFilter;

/// Starts logging. A second call in one process changes nothing.
pub(crate) fn start(logging: &Logging) {
    // Ours only: the proofs libraries log through `log`, at length.
    let level = logging.level.as_str();
    let filter = EnvFilter::new(format!("cuzk={level},cuzk_core={level}"));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    let _ = match logging.format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().try_init(),
    };
}
