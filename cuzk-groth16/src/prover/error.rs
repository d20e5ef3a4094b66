//! The reasons why there is no proof of a circuit.
//!
//! The invariants:
//!
//! * The error of a circuit that is not the compiled one names the first difference.
//! * The error of a witness that does not satisfy the circuit names the first such row.

use std::io;

use bellperson::SynthesisError;
use cuzk_pce::{InstanceError, RecordError, ShapeDifference, WitnessError};
use rayon::ThreadPoolBuildError;
use supraseal_sys::Status;

use crate::Error;
use crate::apart::NoThreads;
use crate::backend::BackendError;
use crate::params::{GenerateError, ParamsError};
use crate::verify::Rejected;

/// The reason why there is no circuit, no parameters or no proof.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProveError {
    /// The circuit gave up while it was synthesised.
    #[error("{circuit} could not be synthesised: {source}")]
    Synthesis {
        /// The circuit's name.
        circuit: String,
        /// Its error.
        source: SynthesisError,
    },
    /// The circuit could not be compiled.
    #[error("{circuit} cannot be compiled: {source}")]
    Compile {
        /// The circuit's name.
        circuit: String,
        /// Why.
        source: RecordError,
    },
    /// The circuit is not the compiled one. Its shape depends on the witness, or it is
    /// another circuit.
    #[error(
        "this circuit is not {circuit} as it was compiled: {difference}; rows must not depend on \
         the witness"
    )]
    Shape {
        /// The compiled circuit's name.
        circuit: String,
        /// The first difference, with its row.
        difference: ShapeDifference,
    },
    /// The witness does not satisfy the circuit: the statement is false. If rows were not
    /// compared, the circuit may be another one as well.
    #[error("the witness does not satisfy row {row} of {circuit}")]
    Unsatisfied {
        /// The circuit's name.
        circuit: String,
        /// The first such row, from 0.
        row: usize,
    },
    /// A compiled circuit cannot be used, or could not be evaluated.
    #[error(transparent)]
    Circuit(#[from] Error),
    /// Parameters cannot be used.
    #[error(transparent)]
    Params(#[from] ParamsError),
    /// Parameters cannot be made.
    #[error("no parameters for {circuit}: {source}")]
    Setup {
        /// The circuit's name.
        circuit: String,
        /// Why.
        source: GenerateError,
    },
    /// The backend made no proof.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// The device made a wrong proof of a good witness, which was withheld. The parameters
    /// are of another circuit, or the device fails.
    #[error("{0}; the witness is good, so check the parameters and the device")]
    Rejected(#[from] Rejected),
    /// A GPU cannot be used.
    #[error("GPU {ordinal}: {problem}")]
    Gpu {
        /// Its number in the order of CUDA.
        ordinal: u32,
        /// Why.
        problem: Status,
    },
    /// The C++ side cannot be used.
    #[error("the device's resources: {0}")]
    Resources(Status),
    /// The system has no more threads.
    #[error(
        "cannot start {threads} thread{s}: {source}; raise the limit of this user's processes",
        s = if *threads == 1 { "" } else { "s" }
    )]
    Threads {
        /// Threads asked for.
        threads: usize,
        /// Why.
        source: ThreadPoolBuildError,
    },
    /// The caller is a thread of the device, and the proof would wait for it.
    #[error(
        "a thread of the proving device asks for a proof, which would wait for that thread; ask \
         for it on another thread"
    )]
    OwnThread,
    /// Circuits and randomness of a batch do not belong together.
    #[error("{circuits} circuits have {randomness} pairs of random scalars; each needs one")]
    Lengths {
        /// Circuits.
        circuits: usize,
        /// Pairs of random scalars.
        randomness: usize,
    },
    /// A circuit of a batch has no proof, so the batch has none.
    #[error("circuit {index} of the batch: {source}")]
    InBatch {
        /// Which, from 0.
        index: usize,
        /// Why.
        source: Box<ProveError>,
    },
}

impl From<NoThreads> for ProveError {
    fn from(error: NoThreads) -> Self {
        Self::Backend(error.into())
    }
}

impl ProveError {
    /// Returns the row that is the reason, from 0, if there is one. It differs from the
    /// compiled circuit's, or the witness does not satisfy it.
    #[must_use]
    pub fn row(&self) -> Option<usize> {
        match self {
            Self::Shape { difference, .. } => difference.row(),
            Self::Unsatisfied { row, .. } => Some(*row),
            Self::InBatch { source, .. } => source.row(),
            _ => None,
        }
    }

    /// The error of a batch that comes after so many other circuits.
    pub(crate) fn after(self, circuits: usize) -> Self {
        match self {
            Self::InBatch { index, source } => Self::InBatch {
                index: index + circuits,
                source,
            },
            other => other,
        }
    }

    /// The error of an instance of `circuit`.
    pub(super) fn of_instance(circuit: &str, error: InstanceError) -> Self {
        let circuit = circuit.to_owned();
        match error {
            InstanceError::Shape(difference) => Self::Shape {
                circuit,
                difference,
            },
            InstanceError::Rows(source) => Self::of_compiling(circuit, source),
            InstanceError::Witness(error) => Self::Synthesis {
                circuit,
                source: match error {
                    WitnessError::Synthesis(source) => source,
                    other => SynthesisError::IoError(io::Error::other(other)),
                },
            },
        }
    }

    pub(super) fn of_compiling(circuit: String, error: RecordError) -> Self {
        match error {
            RecordError::Synthesis(source) => Self::Synthesis { circuit, source },
            source => Self::Compile { circuit, source },
        }
    }
}
