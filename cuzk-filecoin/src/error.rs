//! The errors of requests and of their circuits.
//!
//! The invariant: [`Error::is_input`] is true exactly when the caller can mend the problem
//! by changing a request or a file.

use std::fmt;
use std::io;
use std::path::PathBuf;

use cuzk_memory::NoMemory;

/// A request that cannot be proved, or a circuit or a witness that could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A request that no prover could prove. `field` is the request's own name
    /// of what is wrong, `advice` what to do about it.
    #[error("{field}: {problem}; {advice}")]
    InvalidRequest {
        /// The field, as the request spells it.
        field: String,
        /// The problem: expected and got.
        problem: String,
        /// The remedy.
        advice: String,
    },
    /// The system had no memory for a witness.
    #[error(transparent)]
    NoMemory(#[from] NoMemory),
    /// A circuit could not be recorded or its witness not computed.
    #[error("{stage}: {problem}")]
    Synthesis {
        /// The stage that failed.
        stage: &'static str,
        /// Why.
        problem: String,
    },
    /// Work stopped half-way, as its checkpoint said.
    #[error("stopped")]
    Stopped,
    /// Reading or writing failed.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl Error {
    /// A request's field that cannot be used.
    pub fn request(
        field: impl Into<String>,
        problem: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self::InvalidRequest {
            field: field.into(),
            problem: problem.into(),
            advice: advice.into(),
        }
    }

    /// A failure of the circuit's own code.
    pub fn synthesis(stage: &'static str, problem: &dyn fmt::Display) -> Self {
        Self::Synthesis {
            stage,
            problem: format!("{problem:#}"),
        }
    }

    /// A file that could not be read or written.
    pub(crate) fn io(path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::Io {
            path: path.into(),
            source,
        }
    }

    /// Returns true if the caller can mend the problem: a bad request or file.
    #[must_use]
    pub fn is_input(&self) -> bool {
        match self {
            Self::InvalidRequest { .. } | Self::Io { .. } => true,
            Self::NoMemory(_) | Self::Synthesis { .. } | Self::Stopped => false,
        }
    }
}

/// A result whose error is of this crate.
pub type Result<T> = std::result::Result<T, Error>;
