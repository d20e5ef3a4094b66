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

/// Returns the threads of synthesis. They are the first that an engine starts, so the limit of
/// the address space is looked at before.
///
/// # Errors
/// A limit that is too low for the engine, and a system that gives fewer threads.
pub(super) fn synthesis_pool(config: &Config) -> Result<Arc<ThreadPool>> {
    if let Some(problem) = address_space_problem(config) {
        return Err(cannot_start(problem));
    }
    Ok(Arc::new(config.synthesis.pool()?))
}

/// The error of an engine that cannot start.
pub(super) fn cannot_start(error: impl std::fmt::Display) -> Error {
    Error::Start {
        problem: error.to_string(),
    }
}
