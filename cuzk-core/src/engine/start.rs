//! The start of an engine: its usual decoder, its first threads, and the error of an engine that
//! cannot start. A caller can also choose here that nothing is done in the background.

use std::sync::Arc;

use cuzk_filecoin::{ProofRequest, Statement, decode};
use rayon::ThreadPool;

use super::Engine;
use crate::config::{Config, address_space_problem};
use crate::{Error, Result};

/// Reads a request file.
pub(super) fn decode_file(request: &[u8]) -> Result<Arc<dyn Statement>> {
    Ok(Arc::from(decode(&ProofRequest::from_json(request)?)?))
}

/// Has an engine make no multiples and compare no digests from now on, because its process
/// ends with its jobs. The lines for a job's acceptance and end are of level debug then.
pub fn serve_one_command(engine: &Engine) {
    engine.core.assets.multiples.close();
    engine.core.assets.digests.close();
    engine.core.jobs.log_less();
}

/// Checks that the limit of the address space leaves room for the threads of an engine. A
/// program that starts threads of its own calls this before them. Later, the first small
/// allocation without addresses ends the process.
///
/// # Errors
/// A limit that is too low for the engine.
pub fn check_address_space(config: &Config) -> Result<()> {
    address_space_problem(config).map_or(Ok(()), |problem| Err(cannot_start(problem)))
}

/// Returns the threads of synthesis. They are the first that an engine starts, so the limit of
/// the address space is looked at before.
///
/// # Errors
/// A limit that is too low for the engine, and a system that gives fewer threads.
pub(super) fn synthesis_pool(config: &Config) -> Result<Arc<ThreadPool>> {
    check_address_space(config)?;
    Ok(Arc::new(config.synthesis.pool()?))
}

/// The error of an engine that cannot start.
pub(super) fn cannot_start(error: impl std::fmt::Display) -> Error {
    Error::Start {
        problem: error.to_string(),
    }
}
