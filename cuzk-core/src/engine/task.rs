//! A partition on its way through the engine.
//!
//! The invariant: what a partition holds (memory, vectors, parameters) moves
//! with it, so that wherever it is dropped everything is given back.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cuzk_kernels::Checkpoint;
use cuzk_scheduler::admission::{Reservation, Ticket};
use cuzk_scheduler::health::Trial;
use cuzk_scheduler::pause::Pause;

use super::needs::Files;
use crate::Error;
use crate::backend::{Hindrance, Pending, Synthesized};
use crate::circuit::Circuit;
use crate::job::JobState;
use crate::kinds::CircuitId;
use crate::params::LoadedParams;
use crate::timeline::{Stage, Wait};

/// A partition to be proved.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) state: Arc<JobState>,
    pub(super) partition: usize,
    /// The stations that failed to prove it, or are known to be too small for it.
    pub(super) tried: Vec<usize>,
    /// What it waits for, while it waits.
    pub(super) wait: Option<Wait>,
    /// What was spent on it once all that it needs was there, without waiting.
    pub(super) spent: Duration,
    /// The part of that before its device region.
    pub(super) synthesized_in: Duration,
    /// How often anything had become urgent when it began, if nothing was then.
    pub(super) quiet_at: Option<u64>,
    /// What its memory is for.
    pub(super) stake: Stake,
    /// Its device is out and shall show on it that it is good again.
    pub(super) trial: Option<Trial>,
    /// Its proof was rejected, and whose fault that is has to be seen first.
    pub(super) rejected: Option<Rejected>,
}

/// A proof that a station made and the verifier rejected.
#[derive(Debug)]
pub(super) struct Rejected {
    pub(super) station: usize,
    pub(super) error: Error,
}

/// What a partition asks memory for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stake {
    /// To read its circuit, which tells what it will need.
    Reading,
    /// For all of its way, with these files.
    Proving(Files),
}

impl Task {
    pub(super) fn new(state: Arc<JobState>, partition: usize) -> Self {
        Self {
            state,
            partition,
            tried: Vec::new(),
            wait: Some(Wait::begin(Stage::QueueWait)),
            spent: Duration::ZERO,
            synthesized_in: Duration::ZERO,
            quiet_at: None,
            stake: Stake::Reading,
            trial: None,
            rejected: None,
        }
    }

    /// Another attempt at the same partition, from its start.
    pub(super) fn again(&self) -> Self {
        Self {
            tried: self.tried.clone(),
            ..Self::new(Arc::clone(&self.state), self.partition)
        }
    }

    /// Runs `work` and adds its time to what was spent.
    pub(super) fn spend<R>(&mut self, work: impl FnOnce(&Self) -> R) -> R {
        let started = Instant::now();
        let result = work(self);
        self.spent += started.elapsed();
        result
    }
}

/// A partition whose turn it is.
pub(super) struct Admitted {
    pub(super) task: Task,
    pub(super) ticket: Ticket,
    pub(super) circuit: Arc<Circuit>,
    pub(super) params: Arc<LoadedParams>,
    /// What of its memory it needs once its device region is over.
    pub(super) finish_bytes: u64,
    pub(super) memory: Reservation<CircuitId>,
}

/// A synthesized partition that waits for a device.
pub(super) struct Ready {
    pub(super) task: Task,
    pub(super) ticket: Ticket,
    pub(super) params: Arc<LoadedParams>,
    pub(super) synthesized: Synthesized,
    pub(super) finish_bytes: u64,
    // Last, so that it is given back after what it stands for.
    pub(super) memory: Reservation<CircuitId>,
}

/// A partition that a device has done with.
pub(super) struct Finishing {
    pub(super) task: Task,
    pub(super) ticket: Ticket,
    pub(super) station: usize,
    pub(super) params: Arc<LoadedParams>,
    pub(super) pending: Box<dyn Pending>,
    pub(super) on_device: Duration,
    pub(super) memory: Reservation<CircuitId>,
}

/// Where a partition's work looks whether to go on.
pub(super) struct PartitionCheckpoint {
    pub(super) state: Arc<JobState>,
    /// None for what nothing pauses.
    pub(super) pause: Option<Arc<Pause>>,
}

impl Checkpoint for PartitionCheckpoint {
    fn pass(&self) -> bool {
        if let Some(pause) = &self.pause {
            pause.pass(|| self.state.has_ended());
        }
        !self.is_stopped()
    }
}

impl Hindrance for PartitionCheckpoint {
    fn is_stopped(&self) -> bool {
        self.state.has_ended()
    }
}
