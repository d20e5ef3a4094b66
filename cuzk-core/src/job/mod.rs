//! A job that was accepted, from the outside ([`JobHandle`]) and from the inside
//! (`JobState`).
//!
//! Not its queue: that is the engine's. The invariant: a job ends exactly once,
//! with the proof of all its partitions or with the first error.

mod handle;
mod new_job;
mod outcome_cell;
mod places;
mod request_bytes;
mod state;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use cuzk_filecoin::ProofKind;
use cuzk_filecoin::verify::PARTITION_PROOF_BYTES;
use cuzk_groth16::verify::VerifiedProof;
use cuzk_scheduler::priority::Priority;

use crate::Error;

pub use handle::{Ended, JobHandle};
pub(crate) use new_job::{NewJob, Record};
pub(crate) use places::Place;
pub use request_bytes::RequestBytes;
pub(crate) use state::{JobState, Settled};

/// Changes jobs for their handles: the engine, which has what a job has in queues.
pub(crate) trait Owner: Send + Sync {
    /// Cancels a job, unless it has ended. Returns true if this ended it.
    fn cancel(&self, job: &Arc<JobState>) -> bool;

    /// Gives a job another priority, and its waiting partitions another place.
    fn set_priority(&self, job: &Arc<JobState>, priority: Priority);

    /// Checks that the caller is no thread that jobs need for their proofs.
    ///
    /// # Errors
    /// [`Error::OwnThread`].
    fn check_caller(&self) -> crate::Result<()>;
}

/// How a job ended. Shared, since a handle can be asked more than once.
pub type Outcome = std::result::Result<Arc<ProofOutput>, Arc<Error>>;

/// How a job is to be treated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobOptions {
    /// The caller's name for the job. The same name with the same request is the
    /// same job, so that a caller who does not know whether a submission arrived
    /// can repeat it. Only jobs with an id are kept in the journal.
    pub id: Option<String>,
    /// How urgent it is; by its kind where nothing is said.
    pub priority: Option<Priority>,
    /// The time from now after which the proof is of no use. A job that cannot
    /// make it is refused, as far as that is known.
    pub deadline: Option<Duration>,
    /// True if the job waits in the journal where the queue has no room for it, or the
    /// engine is draining. It needs an id and an engine with a journal; otherwise this has
    /// no effect. Such a job is never refused with [`Error::Busy`] for want of room in the
    /// queue. It takes a small record of memory until its turn comes.
    pub waits: bool,
}

/// Returns the priority of a job for which nobody names one: a late WinningPoSt costs a
/// block, a late WindowPoSt a penalty.
#[must_use]
pub fn priority_of(kind: ProofKind) -> Priority {
    match kind {
        ProofKind::WinningPost => Priority::Critical,
        ProofKind::WindowPost => Priority::High,
        ProofKind::Porep | ProofKind::SnapDeals => Priority::Normal,
    }
}

/// A verified proof of all of a job's partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProofOutput {
    bytes: Vec<u8>,
}

impl ProofOutput {
    /// Returns the proof of a job with these proofs of its partitions, in order.
    fn of(proofs: &[VerifiedProof]) -> Self {
        Self {
            bytes: proofs.iter().flat_map(|proof| *proof.as_bytes()).collect(),
        }
    }

    /// The proof as the chain expects it: the partitions' proofs in order,
    /// [`PARTITION_PROOF_BYTES`] each.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many partitions it proves.
    #[must_use]
    pub fn partitions(&self) -> usize {
        self.bytes.len() / PARTITION_PROOF_BYTES
    }
}

/// The times of a job. The stages are sums over its partitions, which run beside each
/// other, so a stage can be longer than the whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobTimes {
    /// The time from acceptance to the first work on a partition.
    pub queue_wait: Duration,
    /// Loading the circuit and the parameters.
    pub srs_load: Duration,
    /// Witnesses and their evaluation.
    pub synthesis: Duration,
    /// Transforms and MSMs: the device regions, and the MSMs in G2 after them.
    pub device: Duration,
    /// The time from acceptance to the end; to this moment, if the job has not ended.
    pub total: Duration,
}

/// How far a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Partitions proved and verified.
    pub partitions_done: usize,
    /// All the job's partitions.
    pub partitions: usize,
}
