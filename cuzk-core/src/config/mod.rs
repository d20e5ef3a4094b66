//! Configuration.
/// Placeholder until the configuration is written.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {}
