//! What can go wrong, as types.
//!
//! A variant says whose fault it is (the caller's input, or ours) and what to do. An error of a
//! crate below is a variant with that error in it. The end of a job, a stop at a checkpoint and a
//! lack of memory are one variant each, wherever they came from. The invariant:
//! [`Error::is_input`] is true exactly when the caller can mend the problem by changing a request,
//! a file or the configuration.

mod code;

use std::io;

use cuzk_groth16::aggregate::SrsError;
use cuzk_groth16::apart::NoThreads;
use cuzk_groth16::{Culprit, params::ParamsError};
use cuzk_journal::JournalError;
use cuzk_memory::{NoMemory, Stopped};
use cuzk_pce::disk::DiskError;
use cuzk_scheduler::admission::OverBudget;

use crate::config::ConfigError;

pub use code::ErrorCode;

/// Everything the engine reports instead of a proof.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A request that no engine could prove, or a circuit or witness that could not be
    /// made.
    #[error(transparent)]
    Filecoin(cuzk_filecoin::Error),
    /// The configuration does not resolve.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A compiled circuit cannot be used.
    #[error("{0}{advice}", advice = of_circuit(.0))]
    Groth16(cuzk_groth16::Error),
    /// Groth16 parameters are missing or not what the circuit needs.
    #[error("{0}{advice}", advice = of_params(.0))]
    Params(ParamsError),
    /// The request needs more memory than the configuration allows.
    #[error(transparent)]
    OverBudget(#[from] OverBudget),
    /// The system had no memory for a witness, though the budget allowed it.
    #[error("witness: {0}; {advice}", advice = MORE_MEMORY)]
    NoMemory(#[from] NoMemory),
    /// The statement is false: the vanilla proof does not satisfy the circuit.
    #[error(
        "partition {partition}: the vanilla proof does not satisfy constraint {row}{named}; \
         it was altered, or belongs to another sector",
        named = of_part(.part.as_deref(), *.partition)
    )]
    Unsatisfied {
        /// The partition.
        partition: usize,
        /// The first constraint for which a·b ≠ c.
        row: usize,
        /// The part of the vanilla proof that the constraint is about, as the circuit names
        /// it. None if the job ended while it was looked for.
        part: Option<String>,
    },
    /// The backend failed to prove a partition.
    #[error("partition {partition}: {backend} backend: {problem}{advice}", advice = of_backend(*.culprit))]
    Backend {
        /// The partition.
        partition: usize,
        /// The backend's name.
        backend: &'static str,
        /// Why.
        problem: String,
        /// The culprit.
        culprit: Culprit,
    },
    /// A proof was made and the verifier rejected it, so it was withheld.
    #[error(
        "partition {partition}: the proof does not verify and was withheld: {problem}; most \
         likely the parameters are damaged: check them with `cuzk params verify`, then the \
         memory and the devices of the machine"
    )]
    Rejected {
        /// The partition.
        partition: usize,
        /// Why, as far as the verifier can tell.
        problem: String,
    },
    /// The inner-product SRS is missing or cannot be used.
    #[error("{0}{advice}", advice = of_srs(.0))]
    Srs(SrsError),
    /// An aggregate could not be made, or did not verify and was withheld.
    #[error(
        "the aggregate was not made: {problem}; check the SRS with `cuzk params list --check`, \
         then the memory of the machine"
    )]
    Aggregate {
        /// Why.
        problem: String,
    },
    /// The engine's threads or its C++ side could not be set up.
    #[error("the engine cannot start: {problem}; `cuzk doctor` looks at the machine")]
    Start {
        /// Why.
        problem: String,
    },
    /// The queue is full.
    #[error(
        "the queue has no room among its {capacity} partitions; submit again when a job has ended"
    )]
    Busy {
        /// How many partitions the queue holds.
        capacity: usize,
    },
    /// The queue could not hold the job if it were empty.
    #[error(
        "the job has {partitions} partitions and the queue holds {capacity}; \
         raise [jobs] queued_partitions"
    )]
    TooManyPartitions {
        /// The job's.
        partitions: usize,
        /// How many the queue holds.
        capacity: usize,
    },
    /// The journal of jobs.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The id stands for another request.
    #[error("id {id:?} stands for another request; send the new request under a new id")]
    Conflict {
        /// The id.
        id: String,
    },
    /// The proof would come too late, as far as is known.
    #[error(
        "the proof would take about {estimate_ms} ms, and its deadline is in {deadline_ms} ms; \
         raise its priority, or prove it elsewhere"
    )]
    TooLate {
        /// The caller's deadline, in milliseconds from now.
        deadline_ms: u64,
        /// The time that the proof would take, in milliseconds from now.
        estimate_ms: u64,
    },
    /// The deadline passed while the job waited.
    #[error("the deadline passed while the job waited; give it more time, or a higher priority")]
    DeadlinePassed,
    /// Work on a partition stopped half-way because its job had ended. The job's
    /// own end says why.
    #[error("stopped, since the job has ended; the end of the job says why")]
    Stopped,
    /// The caller ended the job.
    #[error("the job was cancelled; submit it again to prove it")]
    Cancelled,
    /// A device did not answer in time.
    #[error(
        "partition {partition}: the device did not answer within {after_s} s; look at the \
         device, or raise [gpus] stall_s if its work takes as long"
    )]
    Stalled {
        /// The partition.
        partition: usize,
        /// The time it was given.
        after_s: u64,
    },
    /// A call that waits for the engine was made on a thread of the engine's own pool.
    #[error(
        "the call waits for the engine on one of the engine's own threads; make it on another \
         thread, or await the job"
    )]
    OwnThread,
    /// A circuit cannot be let go of, because it is in use.
    #[error("circuit {circuit}: {}", in_use(*.partitions, *.makes_multiples))]
    InUse {
        /// The circuit.
        circuit: String,
        /// The partitions that use it.
        partitions: usize,
        /// True while multiples of its parameters' points are made in the background.
        makes_multiples: bool,
    },
    /// The engine no longer accepts or runs jobs.
    #[error("the engine is shutting down and the job was not proved; submit it again")]
    ShuttingDown,
    /// A thread of the engine panicked while it held this job.
    #[error("internal error in {stage}: {problem}; please report it")]
    Internal {
        /// The stage that failed.
        stage: &'static str,
        /// The panic's message.
        problem: String,
    },
}

/// Advice to an operator whose memory is too small for a vector.
pub(crate) const MORE_MEMORY: &str =
    "lower [memory] total_budget, or leave more memory to the engine";

/// Returns the use of a circuit, and when it can be let go of.
fn in_use(partitions: usize, makes_multiples: bool) -> String {
    match (partitions, makes_multiples) {
        (_, false) => {
            format!("in use by {partitions} partition(s); let go of it when they have ended")
        }
        (0, true) => "multiples of its parameters' points are being made in the background; let \
                      go of it when they are made"
            .to_owned(),
        (_, true) => format!(
            "in use by {partitions} partition(s), and multiples of its parameters' points are being \
             made in the background; let go of it when all of these have ended"
        ),
    }
}

/// Returns the part of the proof that a constraint is about, or the command that names it.
fn of_part(part: Option<&str>, partition: usize) -> String {
    match part {
        Some(part) => format!(" ({part})"),
        None => format!(
            " (`cuzk synth --request FILE --partition {partition} --check` names the part of the \
             proof)"
        ),
    }
}

/// Returns what an operator can do about a backend's failure.
fn of_backend(culprit: Culprit) -> &'static str {
    match culprit {
        Culprit::Device => "; look at the device, and at the log before this line",
        Culprit::Size => "; the circuit is too large for the device",
        Culprit::Input => {
            "; the parameters are damaged: check them with `cuzk params verify`, and fetch them \
             again"
        }
    }
}

/// Returns what an operator can do about a circuit's error, if its text does not say it.
fn of_circuit(error: &cuzk_groth16::Error) -> String {
    match error {
        cuzk_groth16::Error::Memory(_) => format!("; {MORE_MEMORY}"),
        _ => String::new(),
    }
}

/// Returns what an operator can do about an error of parameters, if its text does not say
/// it.
fn of_params(error: &ParamsError) -> &'static str {
    match error {
        ParamsError::Missing { .. } => {
            "; for small sectors make test parameters with `cuzk params generate`, for production \
             sectors bring the network's with `cuzk params fetch`, or point srs.param_cache or \
             FIL_PROOFS_PARAMETER_CACHE at the folder that has them"
        }
        ParamsError::Multiples { .. } => " (`cuzk params prepare` makes it)",
        ParamsError::NoMultiples { .. } => " (`cuzk params prepare --limit` sets the limit)",
        _ => "",
    }
}

/// Returns what an operator can do about an SRS that is not there.
fn of_srs(error: &SrsError) -> &'static str {
    if error.is_missing() {
        "; fetch it with `cuzk params fetch --srs`, or make an insecure one for tests with \
         `cuzk params generate-srs`"
    } else {
        ""
    }
}

impl From<NoThreads> for Error {
    fn from(error: NoThreads) -> Self {
        Self::Params(error.into())
    }
}

impl From<ParamsError> for Error {
    fn from(error: ParamsError) -> Self {
        Self::Params(error)
    }
}

impl From<Stopped> for Error {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

impl Error {
    /// A request's field that cannot be used.
    pub fn request(
        field: impl Into<String>,
        problem: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self::Filecoin(cuzk_filecoin::Error::request(field, problem, advice))
    }

    /// A thread that the system does not give.
    #[must_use]
    pub fn no_thread(source: io::Error) -> Self {
        NoThreads { threads: 1, source }.into()
    }

    /// Returns true if the same submission may be accepted when another job has ended.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        matches!(
            self,
            Self::Busy { .. } | Self::Journal(JournalError::Full { .. })
        )
    }

    /// Returns true if the caller can mend the problem: a bad request, file or configuration, and
    /// not a failure of the engine.
    #[must_use]
    pub fn is_input(&self) -> bool {
        match self {
            Self::Config(_)
            | Self::Params(_)
            | Self::Srs(_)
            | Self::OverBudget(_)
            | Self::TooManyPartitions { .. }
            | Self::Unsatisfied { .. }
            | Self::Conflict { .. } => true,
            Self::Filecoin(error) => error.is_input(),
            Self::Groth16(error) => error.is_input(),
            Self::Journal(error) => error.is_input(),
            Self::NoMemory(_)
            | Self::Backend { .. }
            | Self::Rejected { .. }
            | Self::Aggregate { .. }
            | Self::Start { .. }
            | Self::Busy { .. }
            | Self::TooLate { .. }
            | Self::DeadlinePassed
            | Self::Stopped
            | Self::Cancelled
            | Self::Stalled { .. }
            | Self::OwnThread
            | Self::InUse { .. }
            | Self::ShuttingDown
            | Self::Internal { .. } => false,
        }
    }
}

impl From<cuzk_filecoin::Error> for Error {
    fn from(error: cuzk_filecoin::Error) -> Self {
        match error {
            cuzk_filecoin::Error::NoMemory(asked) => Self::NoMemory(asked),
            cuzk_filecoin::Error::Stopped => Self::Stopped,
            error => Self::Filecoin(error),
        }
    }
}

impl From<cuzk_groth16::Error> for Error {
    fn from(error: cuzk_groth16::Error) -> Self {
        match error {
            cuzk_groth16::Error::Stopped => Self::Stopped,
            error => Self::Groth16(error),
        }
    }
}

impl From<DiskError> for Error {
    fn from(error: DiskError) -> Self {
        Self::Groth16(error.into())
    }
}

/// A result whose error is the engine's.
pub type Result<T> = std::result::Result<T, Error>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_false_statement_names_the_part_or_the_command_that_does() {
        let told = |part: Option<&str>| {
            let error = Error::Unsatisfied {
                partition: 3,
                row: 17,
                part: part.map(str::to_owned),
            };
            error.to_string()
        };
        let named = told(Some("challenge_3/labeling_2"));
        assert!(named.contains("17 (challenge_3/labeling_2); "), "{named}");
        let unnamed = told(None);
        let command = "17 (`cuzk synth --request FILE --partition 3 --check` names the part";
        assert!(unnamed.contains(command), "{unnamed}");
    }

    #[test]
    fn missing_parameters_and_missing_memory_come_with_advice() {
        let path = "v28.params".into();
        let missing = Error::from(ParamsError::Missing { path }).to_string();
        let memory = cuzk_groth16::Error::Memory(io::ErrorKind::OutOfMemory.into());
        let memory = Error::from(memory).to_string();
        for (told, part) in [
            (&missing, "v28.params"),
            (&missing, "cuzk params generate"),
            (&missing, "FIL_PROOFS_PARAMETER_CACHE"),
            (&memory, "[memory] total_budget"),
        ] {
            assert!(told.contains(part), "{told}");
        }
    }
}
