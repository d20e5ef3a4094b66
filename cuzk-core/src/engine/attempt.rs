//! A partition on its way through the engine.
//!
//! ```text
//! Queued ─▶ Admitted ─▶ Synthesized ─▶ OnDevice ─▶ Finishing
//! ```
//!
//! An [`Attempt`] is queued in the dispatcher; the other states are a type each.
//! The invariant: memory, vectors and parameters of a partition move with it, so
//! that all of them are given back wherever it is dropped.

use std::sync::Arc;
use std::time::Duration;

use cuzk_filecoin::Statement;
use cuzk_groth16::Circuit;
use cuzk_groth16::backend::{BitSums, Footprint, Pending, Randomness, Synthesized};
use cuzk_groth16::params::LoadedParams;
use cuzk_scheduler::admission::{Reservation, Ticket};
use cuzk_scheduler::clock;
use cuzk_scheduler::health::Trial;

use super::assets::AssetKey;
use super::assets::cost::Charge;
use crate::Error;
use crate::error::ErrorCode;
use crate::job::{JobState, Place};
use crate::pipeline::Partition;
#[cfg(test)]
use crate::planted::{Plant, is_planted};
use crate::timeline::{Stage, Timeline, Trace, Wait};

/// One attempt to prove a partition.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) job: Arc<JobState>,
    pub(super) partition: usize,
    /// The device slots that failed to prove it, or are known to be too small.
    pub(super) excluded_devices: Vec<usize>,
    /// The wait that it is in, while it waits.
    pub(super) wait: Option<Wait>,
    /// The time that its stages took, waits not counted.
    pub(super) spent: Duration,
    /// The part of `spent` before its device region.
    pub(super) synthesized_in: Duration,
    /// The number of pauses when it began, if nothing was paused then.
    pub(super) quiet_at: Option<u64>,
    /// What its memory is charged for.
    pub(super) charge: Charge,
    /// The sums over its bits, if they were made with those of other partitions.
    pub(super) bit_sums: Option<BitSums>,
    /// Its device is on probation, and this partition decides about it.
    pub(super) trial: Option<Trial>,
    /// Its last proof was rejected: its statement has to be checked first.
    pub(super) rejected: Option<RejectedProof>,
}

/// A proof that a device made and the verifier rejected.
#[derive(Debug)]
pub(super) struct RejectedProof {
    pub(super) device: usize,
    pub(super) error: Error,
}

/// An attempt whose memory is reserved.
pub(super) struct AdmittedAttempt {
    pub(super) attempt: Attempt,
    pub(super) ticket: Ticket,
    pub(super) circuit: Arc<Circuit>,
    pub(super) params: Arc<LoadedParams>,
    pub(super) footprint: Arc<Footprint>,
    pub(super) memory: Reservation<AssetKey>,
}

/// An attempt that waits for a device.
pub(super) struct SynthesizedAttempt {
    pub(super) attempt: Attempt,
    pub(super) ticket: Ticket,
    pub(super) params: Arc<LoadedParams>,
    pub(super) synthesized: Synthesized,
    /// What it needs of its memory once its device region is over.
    pub(super) finish_bytes: u64,
    // Last, so that it is given back after the memory that it stands for.
    pub(super) memory: Reservation<AssetKey>,
}

/// An attempt whose device region is over.
pub(super) struct FinishingAttempt {
    pub(super) attempt: Attempt,
    pub(super) ticket: Ticket,
    pub(super) device: usize,
    pub(super) params: Arc<LoadedParams>,
    pub(super) pending: Box<dyn Pending>,
    pub(super) on_device: Duration,
    pub(super) memory: Reservation<AssetKey>,
}

impl Attempt {
    pub(super) fn new(job: Arc<JobState>, partition: usize) -> Self {
        Self {
            job,
            partition,
            excluded_devices: Vec::new(),
            wait: Some(Wait::begin(Stage::QueueWait)),
            spent: Duration::ZERO,
            synthesized_in: Duration::ZERO,
            quiet_at: None,
            charge: Charge::Reading,
            bit_sums: None,
            trial: None,
            rejected: None,
        }
    }

    /// Says that the partition is proved again, and why.
    pub(super) fn log_again(&self, device: usize, error: &Error) {
        tracing::warn!(
            parent: self.job.caller(),
            job = self.job.number(),
            id = self.job.id(),
            partition = self.partition,
            device,
            code = %ErrorCode::of(error),
            %error,
            "a partition has to be proved again"
        );
    }

    /// A new attempt at the same partition, from its start. It makes its own sums, because
    /// those that it had may have been wrong.
    pub(super) fn again(&self) -> Self {
        #[cfg(test)]
        if is_planted(Plant::SameDeviceAgain) {
            return Self::new(Arc::clone(&self.job), self.partition);
        }
        Self {
            excluded_devices: self.excluded_devices.clone(),
            ..Self::new(Arc::clone(&self.job), self.partition)
        }
    }

    pub(super) fn is_critical(&self) -> bool {
        self.job.is_critical()
    }

    /// Returns true if others prove it, or are to begin it.
    pub(super) fn is_elsewhere(&self) -> bool {
        self.job.places().get(self.partition) == Place::Elsewhere
    }

    /// Returns true if others have failed to prove it, so that its statement is checked first.
    pub(super) fn is_suspect(&self) -> bool {
        self.job.places().get(self.partition) == Place::CheckedHere
    }

    /// Returns true if nothing more needs to be done for it.
    pub(super) fn is_over(&self) -> bool {
        self.job.has_ended() || self.job.places().get(self.partition) == Place::Over
    }

    /// Returns the recorder of its stages.
    pub(super) fn trace<'a>(&self, timeline: &'a Timeline) -> Trace<'a> {
        timeline.trace(self.job.number(), Some(self.partition))
    }

    /// Returns the recorder of its stages, and records its wait, if it waited.
    pub(super) fn end_wait<'a>(&mut self, timeline: &'a Timeline) -> Trace<'a> {
        let trace = self.trace(timeline);
        if let Some(wait) = self.wait.take() {
            trace.ended(wait);
        }
        trace
    }

    /// Shows the wait that it is in among the stages of its job.
    pub(super) fn show_wait(&self) {
        if let Some(wait) = &self.wait {
            self.job.live().waits(self.partition, wait.stage());
        }
    }

    /// Runs `work` and adds its time to `spent`.
    pub(super) fn spend<R>(&mut self, work: impl FnOnce(&Self) -> R) -> R {
        let started = clock::now();
        let result = work(self);
        self.spent += clock::since(started);
        result
    }
}

impl AdmittedAttempt {
    /// Returns the partition for the pipeline, with fresh randomness.
    pub(super) fn partition<'a>(&self, statement: &'a dyn Statement) -> Partition<'a> {
        Partition {
            statement,
            index: self.attempt.partition,
            circuit: Arc::clone(&self.circuit),
            params: Arc::clone(self.params.mapped()),
            bit_sums: self.attempt.bit_sums.clone(),
            randomness: Randomness::from_os(),
        }
    }
}
