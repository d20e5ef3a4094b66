//! One file a command, and what they share.

pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod demo;
pub(crate) mod params;
pub(crate) mod pce;
pub(crate) mod prove;
pub(crate) mod synth;
pub(crate) mod timeline;
pub(crate) mod tune;
pub(crate) mod vanilla;
pub(crate) mod verify;

use std::path::Path;

use cuzk_core::{Config, ProofRequest};

use crate::failure::Failure;
use crate::logging;

/// What every command starts from.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    pub(crate) config: Config,
    pub(crate) json: bool,
}

impl Context {
    /// Resolves the configuration and starts logging as it says.
    pub(crate) fn new(config: Option<&Path>, json: bool) -> Result<Self, Failure> {
        let config = match config {
            Some(path) => Config::load(path).map_err(cuzk_core::Error::from)?,
            None => Config::default(),
        };
        logging::start(&config.logging);
        Ok(Self { config, json })
    }
}

/// Reads the request in `path`.
pub(crate) fn read_request(path: &Path) -> Result<ProofRequest, Failure> {
    let bytes = read(path)?;
    ProofRequest::from_json(&bytes)
        .map_err(|error| Failure::input(format!("{}: {error}", path.display())))
}

/// Reads a file that the user named.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| Failure::file(path, &error))
}
