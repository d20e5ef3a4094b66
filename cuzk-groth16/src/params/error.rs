//! The errors of parameters.
//!
//! Nothing is checked here, and no command or configuration key is named: callers know
//! those. The invariant: an error about a file names the file.

use std::io;
use std::path::{Path, PathBuf};

use cuzk_kernels::{Isa, KernelError};
use cuzk_memory::Stopped;

use super::query::QueryName;
use crate::apart::NoThreads;

/// Parameters that cannot be used or made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ParamsError {
    /// A file is not there.
    #[error("the Groth16 parameter file {path} is missing")]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// A file cannot be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file is where the folder of parameters should be.
    #[error(
        "{path} is a file, and parameters are kept in a folder; name a folder, or move the file \
         away"
    )]
    NoFolder {
        /// The file.
        path: PathBuf,
    },
    /// The system has no more threads.
    #[error(transparent)]
    Threads(#[from] NoThreads),
    /// A file has no bytes.
    #[error("{path} is empty; delete it, then generate or fetch it again")]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// A file is shorter than what it says it holds.
    #[error(
        "{path} is truncated in {part}: expected at least {expected_bytes} bytes, got \
         {got_bytes}; delete it, then generate or fetch it again"
    )]
    Truncated {
        /// The file.
        path: PathBuf,
        /// Where it ends.
        part: QueryName,
        /// Bytes that the counts read so far need.
        expected_bytes: u64,
        /// Bytes of the file.
        got_bytes: u64,
    },
    /// A file is longer than what it says it holds.
    #[error(
        "{path} is not a Groth16 parameter file or is damaged: expected {expected_bytes} bytes, \
         got {got_bytes}; delete it, then generate or fetch it again"
    )]
    TrailingBytes {
        /// The file.
        path: PathBuf,
        /// Bytes that its counts need.
        expected_bytes: u64,
        /// Bytes of the file.
        got_bytes: u64,
    },
    /// A file of multiples that cannot be used or made.
    #[error(
        "{path} cannot be used: {problem}; make it anew, or delete it: proofs take longer \
         without it"
    )]
    Multiples {
        /// The file.
        path: PathBuf,
        /// Why.
        problem: String,
    },
    /// Multiples that cannot be made.
    #[error(
        "no multiples: {limit_bytes} bytes leave no room for any, or the instructions ({isa}) have \
         no form for them; raise the limit, or prove without them, which takes longer"
    )]
    NoMultiples {
        /// The most that the file may take, bytes.
        limit_bytes: u64,
        /// The instructions of the machine.
        isa: Isa,
    },
    /// The making of a file was stopped; nothing is left of it.
    #[error("stopped")]
    Stopped,
    /// A verifying key does not decode.
    #[error(
        "the verifying key in {path} is not usable: {problem}; delete the file, then generate or \
         fetch it again"
    )]
    VerifyingKey {
        /// The file.
        path: PathBuf,
        /// Why.
        problem: String,
    },
    /// The parameters are another circuit's.
    #[error(
        "{path} belongs to another circuit: expected {expected} points in {query}, got {got}; put \
         the parameters of this circuit there"
    )]
    OtherCircuit {
        /// The file.
        path: PathBuf,
        /// The first query whose length differs.
        query: QueryName,
        /// The length that the circuit needs.
        expected: u64,
        /// The length found.
        got: u64,
    },
    /// A `.params` file and its `.vk` file do not belong together.
    #[error(
        "{params} and {vk} do not belong together: {field} differs; delete both, then generate or \
         fetch them again"
    )]
    KeysDiffer {
        /// The parameters.
        params: PathBuf,
        /// The verifying key.
        vk: PathBuf,
        /// The first part of the key that differs.
        field: &'static str,
    },
    /// A point that cannot be read, or a computation over them that failed.
    #[error("{path}: {source}; delete it, then generate or fetch it again")]
    Points {
        /// The file.
        path: PathBuf,
        /// Which point, and why.
        source: KernelError,
    },
    /// A point of the curve that is not in the group of prime order.
    #[error(
        "{path} has a point in {query} that is outside of the group of prime order; delete it, \
         then generate or fetch it again"
    )]
    OutsideSubgroup {
        /// The file.
        path: PathBuf,
        /// Where it is.
        query: QueryName,
    },
    /// Parts that contradict each other.
    #[error("{path}: {problem}; delete it, then generate or fetch it again")]
    Inconsistent {
        /// The file.
        path: PathBuf,
        /// Which.
        problem: &'static str,
    },
    /// A verifying key whose parameters are absent, which new ones would not fit.
    #[error(
        "{vk} is there without its parameters, and generated parameters have another key; fetch \
         the parameters it belongs to, or move it away"
    )]
    KeyWithoutParams {
        /// The verifying key.
        vk: PathBuf,
    },
    /// Parameters could not be generated.
    #[error("cannot generate {path}: {source}")]
    Generate {
        /// The file.
        path: PathBuf,
        /// Why.
        source: GenerateError,
    },
}

impl From<Stopped> for ParamsError {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

impl ParamsError {
    /// A point of the file `path` that a kernel could not use.
    pub(super) fn points(path: &Path, source: KernelError) -> Self {
        Self::Points {
            path: path.to_owned(),
            source,
        }
    }

    /// A file that could not be read or written; [`ParamsError::Missing`] when
    /// it is not there.
    pub(super) fn io(path: impl Into<PathBuf>, source: io::Error) -> Self {
        let path = path.into();
        match source.kind() {
            io::ErrorKind::NotFound => Self::Missing { path },
            io::ErrorKind::NotADirectory => Self::NoFolder {
                path: path.parent().map_or_else(|| path.clone(), Into::into),
            },
            _ => Self::Io { path, source },
        }
    }
}

/// Parameters that cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GenerateError {
    /// Writing failed.
    #[error("{0}")]
    Write(#[from] io::Error),
    /// A multiplication failed.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// A variable without any constraint, for which Groth16 is not sound.
    #[error("variable {index} is in no constraint; every variable needs one")]
    UnconstrainedVariable {
        /// The variable, counted from ONE through the inputs to the aux.
        index: usize,
    },
    /// They were cancelled.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// Toxic waste that makes parameters for nothing.
    #[error("{what} of the toxic waste is degenerate; use another seed")]
    DegenerateWaste {
        /// Which part.
        what: &'static str,
    },
    /// A query longer than the format can say.
    #[error("expected at most {max} {what}, got {got}")]
    TooLarge {
        /// The things of which there are too many.
        what: &'static str,
        /// The most that the format or the field takes.
        max: u64,
        /// Their number.
        got: u64,
    },
}
