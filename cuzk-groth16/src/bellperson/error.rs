//! Errors of this crate as bellperson's.
//!
//! The invariant: an error that bellperson has no name for stays whole, inside of
//! [`SynthesisError::IoError`].

use std::io;

use bellperson::SynthesisError;

use crate::ProveError;
use crate::backend::BackendError;
use crate::params::{GenerateError, ParamsError};

/// Returns bellperson's error for a failed proof or generation.
pub(super) fn named(error: ProveError) -> SynthesisError {
    match error {
        ProveError::Synthesis { source, .. } => source,
        ProveError::Setup {
            source: GenerateError::UnconstrainedVariable { .. },
            ..
        } => SynthesisError::UnconstrainedVariable,
        ProveError::Setup {
            source: GenerateError::DegenerateWaste { .. },
            ..
        }
        | ProveError::Backend(BackendError::IdentityDelta) => SynthesisError::UnexpectedIdentity,
        ProveError::Lengths { .. } => SynthesisError::IncompatibleLengthVector(error.to_string()),
        ProveError::InBatch { source, index } => match *source {
            ProveError::Synthesis { source, .. } => source,
            other => SynthesisError::IoError(io::Error::other(ProveError::InBatch {
                source: Box::new(other),
                index,
            })),
        },
        other => SynthesisError::IoError(io::Error::other(other)),
    }
}

/// Returns the error of reading for parameters that cannot be used.
pub(super) fn of_reading(error: ParamsError) -> io::Error {
    let kind = match &error {
        ParamsError::Missing { .. } => io::ErrorKind::NotFound,
        ParamsError::Io { source, .. } => source.kind(),
        _ => io::ErrorKind::InvalidData,
    };
    io::Error::new(kind, error)
}
