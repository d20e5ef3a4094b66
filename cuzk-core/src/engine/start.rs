//! The usual decoder of an engine, the choice to do nothing in the background, and the error
//! of an engine that cannot start.

use std::sync::Arc;

use cuzk_filecoin::{ProofRequest, Statement, decode};

use super::Engine;
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

/// The error of an engine that cannot start.
pub(super) fn cannot_start(error: impl std::fmt::Display) -> Error {
    Error::Start {
        problem: error.to_string(),
    }
}
