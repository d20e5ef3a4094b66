//! The errors of circuits, and the causes of a backend's failure.
//!
//! The invariant: [`Error::is_input`] is true exactly when the caller can mend the problem
//! by changing a file.

use std::io;
use std::path::PathBuf;

use cuzk_memory::Stopped;
use cuzk_pce::disk::DiskError;

/// A circuit that cannot be used, or an evaluation that failed. Parameters have
/// [`ParamsError`](crate::params::ParamsError), backends
/// [`BackendError`](crate::backend::BackendError), and a proof that does not verify
/// [`Rejected`](crate::verify::Rejected).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A compiled circuit's file is not usable.
    #[error("compiled circuit {0}")]
    CircuitFile(#[from] DiskError),
    /// A compiled circuit's file is of another circuit than the one asked for.
    #[error("compiled circuit {}: expected {expected}, got {got}; build it again", path.display())]
    OtherCircuit {
        /// The file.
        path: PathBuf,
        /// The name of the circuit asked for.
        expected: String,
        /// The name that the file says.
        got: String,
    },
    /// A circuit could not be evaluated on a witness.
    #[error("{stage}: {problem}")]
    Evaluation {
        /// The stage that failed.
        stage: &'static str,
        /// Why.
        problem: String,
    },
    /// The system had no memory for a vector over the domain.
    #[error("no memory for a vector over the domain: {0}")]
    Memory(io::Error),
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

impl From<Stopped> for Error {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

/// The possible cause of a backend's failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Culprit {
    /// The device.
    Device,
    /// The circuit, which does not fit on this device.
    Size,
    /// The input, with which no device could do better.
    Input,
}

impl Error {
    /// A file that could not be read or written.
    pub(crate) fn io(path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::Io {
            path: path.into(),
            source,
        }
    }

    /// Returns true if the caller can mend the problem, which is then one of a file.
    #[must_use]
    pub fn is_input(&self) -> bool {
        match self {
            Self::CircuitFile(_) | Self::OtherCircuit { .. } | Self::Io { .. } => true,
            Self::Evaluation { .. } | Self::Memory(_) | Self::Stopped => false,
        }
    }
}

/// A result whose error is of this crate.
pub type Result<T> = std::result::Result<T, Error>;
