//! The usual decoder of an engine, and the error of an engine that cannot start.

use std::sync::Arc;

use cuzk_filecoin::{ProofRequest, Statement, decode};

use crate::{Error, Result};

/// Reads a request file.
pub(super) fn decode_file(request: &[u8]) -> Result<Arc<dyn Statement>> {
    Ok(Arc::from(decode(&ProofRequest::from_json(request)?)?))
}

/// The error of an engine that cannot start.
pub(super) fn cannot_start(error: impl std::fmt::Display) -> Error {
    Error::Start {
        problem: error.to_string(),
    }
}
