//! A job that was accepted, from the outside.
//!
//! Not its input: that lives with the partitions still to be proved and dies
//! with the last of them. The invariant: a job ends exactly once, with the
//! proof of all its partitions or with the first error, and whoever waits for
//! it is then woken.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::kinds::CircuitId;
use crate::kinds::verify::PARTITION_PROOF_BYTES;
use crate::verify::VerifiedProof;
use crate::{Error, Result};

/// How a job ended. Shared, since a handle can be asked more than once.
pub type Outcome = std::result::Result<Arc<ProofOutput>, Arc<Error>>;

/// A verified proof of all of a job's partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProofOutput {
    bytes: Vec<u8>,
}

impl ProofOutput {
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

/// How far a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Partitions proved and verified.
    pub partitions_done: usize,
    /// All the job's partitions.
    pub partitions: usize,
}

/// The caller's end of a job. Dropping it does not stop the job.
#[derive(Clone, Debug)]
pub struct JobHandle {
    state: Arc<JobState>,
}

impl JobHandle {
    pub(crate) fn new(state: Arc<JobState>) -> Self {
        Self { state }
    }

    /// The job's number in the engine's timeline.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.state.number
    }

    /// Blocks until the job has ended.
    ///
    /// # Errors
    /// The first error of any of its partitions.
    pub fn wait(&self) -> Outcome {
        let mut parts = self
            .state
            .ended
            .wait_while(self.state.lock(), |parts| parts.outcome.is_none())
            .unwrap_or_else(PoisonError::into_inner);
        match &mut parts.outcome {
            Some(outcome) => outcome.clone(),
            None => Err(Arc::new(Error::ShuttingDown)),
        }
    }

    /// Blocks until the job has ended, but no longer than `timeout`.
    #[must_use]
    pub fn wait_for(&self, timeout: Duration) -> Option<Outcome> {
        let (parts, _) = self
            .state
            .ended
            .wait_timeout_while(self.state.lock(), timeout, |parts| parts.outcome.is_none())
            .unwrap_or_else(PoisonError::into_inner);
        parts.outcome.clone()
    }

    /// How the job ended, or none while it runs.
    #[must_use]
    pub fn poll(&self) -> Option<Outcome> {
        self.state.lock().outcome.clone()
    }

    /// The circuit that every partition of the job proves.
    #[must_use]
    pub fn circuit(&self) -> CircuitId {
        self.state.circuit
    }

    /// How far the job is.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let parts = self.state.lock();
        Progress {
            partitions_done: parts.proofs.iter().flatten().count(),
            partitions: parts.proofs.len(),
        }
    }
}

/// The engine's end of a job.
#[derive(Debug)]
pub(crate) struct JobState {
    number: u64,
    circuit: CircuitId,
    parts: Mutex<Parts>,
    ended: Condvar,
}

#[derive(Debug)]
struct Parts {
    proofs: Vec<Option<VerifiedProof>>,
    outcome: Option<Outcome>,
}

impl JobState {
    pub(crate) fn new(number: u64, circuit: CircuitId, partitions: usize) -> Self {
        Self {
            number,
            circuit,
            parts: Mutex::new(Parts {
                proofs: vec![None; partitions],
                outcome: None,
            }),
            ended: Condvar::new(),
        }
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Whether nothing more needs to be done for the job.
    pub(crate) fn has_ended(&self) -> bool {
        self.lock().outcome.is_some()
    }

    /// Takes the result of a partition. The last proof ends the job, and so
    /// does the first error; what comes after an end is of no use and dropped.
    pub(crate) fn settle(&self, partition: usize, result: Result<VerifiedProof>) {
        let mut parts = self.lock();
        if parts.outcome.is_some() {
            return;
        }
        match result {
            Ok(proof) => {
                parts.proofs[partition] = Some(proof);
                let proofs: Option<Vec<_>> = parts.proofs.iter().copied().collect();
                parts.outcome = proofs.map(|proofs| Ok(Arc::new(assembled(&proofs))));
            }
            Err(error) => parts.outcome = Some(Err(Arc::new(error))),
        }
        if parts.outcome.is_some() {
            self.ended.notify_all();
        }
    }

    // Every change under the lock is whole before anything that can panic.
    fn lock(&self) -> MutexGuard<'_, Parts> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn assembled(proofs: &[VerifiedProof]) -> ProofOutput {
    ProofOutput {
        bytes: proofs.iter().flat_map(|proof| *proof.as_bytes()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::{ProofKind, SectorSize};

    #[test]
    fn the_first_error_ends_a_job_and_stays() {
        let circuit = CircuitId {
            kind: ProofKind::Porep,
            sector_size: SectorSize::KiB2,
        };
        let state = Arc::new(JobState::new(1, circuit, 2));
        let handle = JobHandle::new(Arc::clone(&state));
        assert!(handle.poll().is_none());
        state.settle(1, Err(Error::ShuttingDown));
        state.settle(0, Err(Error::Busy { capacity: 1 }));
        assert!(state.has_ended());
        assert!(matches!(*handle.wait().unwrap_err(), Error::ShuttingDown));
        assert!(matches!(*handle.wait().unwrap_err(), Error::ShuttingDown));
    }
}
