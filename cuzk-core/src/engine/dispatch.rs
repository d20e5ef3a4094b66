//! What is next, for whom, and with which memory.
//!
//! Not the work, and not the memory itself. The invariants: partitions of a job are
//! queued together or not at all; nothing that closes the queues behind the devices
//! does so while a partition is on its way.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cuzk_memory::{Checkpoint, Heartbeat, Pause, Urgent};
use cuzk_scheduler::admission::{Admission, Entrance, Lane, Limits, Need, Refused, Ticket};
use cuzk_scheduler::priority::Rank;
use cuzk_scheduler::queue::{Closed, Queue};
use cuzk_scheduler::turnstile::Turnstile;

use super::assets::AssetKey;
use super::attempt::{Attempt, FinishingAttempt, SynthesizedAttempt};
use super::cannot_start;
use super::deadlines::Deadlines;
use crate::config::{Config, available_memory_bytes};
use crate::job::JobState;
use crate::metrics;
#[cfg(test)]
use crate::planted::{Plant, is_planted};
use crate::{Error, Result};

pub(super) struct Dispatcher {
    /// Raised while critical work runs; everything else on the cores waits.
    pub(super) pause: Arc<Pause>,
    /// Bounds how many requests are decoded at a time.
    pub(super) decoding: Turnstile,
    /// Counts the signs of life of all that computes.
    pub(super) heartbeat: Heartbeat,
    /// The measured durations, for deadlines.
    pub(super) deadlines: Deadlines,
    /// The attempts that wait for their turn and their memory.
    pub(super) admission: Admission<Attempt, AssetKey>,
    /// The attempts that wait for a device.
    pub(super) ready: Queue<SynthesizedAttempt>,
    /// The attempts that wait for a finish worker.
    pub(super) finishing: Queue<FinishingAttempt>,
    draining: AtomicBool,
    /// True if partitions can be proved elsewhere, too.
    shared: AtomicBool,
}

impl Dispatcher {
    pub(super) fn new(config: &Config, limits: Limits) -> Self {
        metrics::memory_budget(limits.total_bytes);
        Self {
            pause: Arc::default(),
            decoding: Turnstile::new(config.synthesis.threads),
            heartbeat: Heartbeat::default(),
            deadlines: Deadlines::new(config.synthesis.partition_workers),
            admission: Admission::new(limits),
            ready: Queue::new(config.pipeline.synthesis_lookahead),
            finishing: Queue::new(config.pipeline.finish_workers),
            draining: AtomicBool::new(false),
            shared: AtomicBool::new(false),
        }
    }

    /// Pauses other work until the guard is dropped, if the lane is the critical one.
    pub(super) fn pause_for(&self, lane: Lane) -> Option<Urgent<'_>> {
        (lane == Lane::Critical).then(|| self.pause.raise())
    }

    /// Returns the checkpoint of an attempt's work. It stops with its job, and pauses for
    /// critical work unless it is critical itself. Each check is a sign of life.
    pub(super) fn checkpoint(&self, attempt: &Attempt) -> Checkpoint<'static> {
        let checkpoint = Checkpoint::new(attempt.job.cancellation());
        let checkpoint = checkpoint.counted_by(&self.heartbeat);
        if attempt.is_critical() {
            checkpoint
        } else {
            checkpoint.paused_by(&self.pause)
        }
    }

    /// Returns an error for a job that an empty queue could not hold.
    pub(super) fn check_partitions(&self, partitions: usize) -> Result<()> {
        let capacity = self.admission.limits().capacity;
        if partitions == 0 {
            let problem = "expected at least 1, got 0";
            let advice = "there is nothing to prove";
            return Err(Error::request("partitions", problem, advice));
        }
        if partitions > capacity {
            return Err(Error::TooManyPartitions {
                partitions,
                capacity,
            });
        }
        Ok(())
    }

    /// Returns an error for a job of which so many partitions cannot be queued now, so that
    /// it is not written to the journal first.
    pub(super) fn check_room(&self, partitions: usize) -> Result<()> {
        let capacity = self.admission.limits().capacity;
        #[cfg(test)]
        if is_planted(Plant::NoBound) {
            return Ok(());
        }
        if self.admission.is_closed() {
            return Err(Error::ShuttingDown);
        }
        let waiting = self.admission.usage().waiting;
        if partitions > 0 && waiting.saturating_add(partitions) > capacity {
            return Err(Error::Busy { capacity });
        }
        Ok(())
    }

    /// Queues attempts of one job, each with its need, all or none.
    pub(super) fn submit(
        &self,
        entrance: Entrance,
        lane: Lane,
        job: &JobState,
        attempts: Vec<(Attempt, Need<AssetKey>)>,
    ) -> Result<()> {
        #[cfg(test)]
        let entrance = match is_planted(Plant::NoBound) {
            true => Entrance::AtOnce,
            false => entrance,
        };
        let (priority, since) = (job.placed_as(), job.accepted());
        attempts.iter().for_each(|(attempt, _)| attempt.show_wait());
        let admission = &self.admission;
        let queued = admission.submit(entrance, lane, priority, since, attempts);
        queued.map_err(|refused| match refused {
            Refused::Full => Error::Busy {
                capacity: admission.limits().capacity,
            },
            Refused::Closed => Error::ShuttingDown,
        })
    }

    /// Puts an admitted attempt back into the queue. To be called before its memory is
    /// given back, so that a worker that sees an empty engine is right to end.
    pub(super) fn put_back(
        &self,
        lane: Lane,
        ticket: Ticket,
        attempt: Attempt,
        need: Need<AssetKey>,
    ) {
        attempt.show_wait();
        #[cfg(test)]
        if is_planted(Plant::LosesRequeued) {
            return;
        }
        self.admission.put_back(lane, ticket, attempt, need);
    }

    /// Queues an attempt for the devices. Critical work does not wait for room.
    ///
    /// # Errors
    /// The attempt, once the queue is closed.
    pub(super) fn push_ready(
        &self,
        ready: SynthesizedAttempt,
    ) -> std::result::Result<(), Box<Closed<SynthesizedAttempt>>> {
        ready.attempt.show_wait();
        push(&self.ready, ready.ticket.rank(), ready)
    }

    /// Takes out the attempts that wait for a device and for which `stays` is false.
    pub(super) fn take_ready_unless(
        &self,
        stays: impl FnMut(&SynthesizedAttempt) -> bool,
    ) -> Vec<SynthesizedAttempt> {
        #[cfg(test)]
        if is_planted(Plant::LeavesStranded) {
            return Vec::new();
        }
        self.ready.retain(stays)
    }

    /// Queues an attempt for the finish workers. Critical work does not wait for room.
    ///
    /// # Errors
    /// The attempt, once the queue is closed.
    pub(super) fn push_finishing(
        &self,
        finishing: FinishingAttempt,
    ) -> std::result::Result<(), Box<Closed<FinishingAttempt>>> {
        finishing.attempt.show_wait();
        push(&self.finishing, finishing.ticket.rank(), finishing)
    }

    /// Drops the queued attempts that nobody needs any more.
    pub(super) fn drop_over(&self) {
        #[cfg(test)]
        if is_planted(Plant::KeepsEnded) {
            return;
        }
        let goes_on = |attempt: &Attempt| !attempt.is_over();
        drop(self.admission.retain(goes_on));
        drop(self.ready.retain(|ready| goes_on(&ready.attempt)));
    }

    /// Gives the waiting partitions of a job the place of its present priority.
    pub(super) fn rerank(&self, job: &JobState) {
        #[cfg(test)]
        if is_planted(Plant::NoRerank) {
            return;
        }
        let (priority, since) = (job.placed_as(), job.accepted());
        let is_of_job = |attempt: &Attempt| attempt.job.number() == job.number();
        self.admission.rerank(priority, since, is_of_job);
        let patience = self.admission.limits().patience;
        self.ready.rerank(|ready| {
            let of_job = is_of_job(&ready.attempt);
            of_job.then(|| {
                ready.ticket = ready.ticket.moved(priority, since, patience);
                ready.ticket.rank()
            })
        });
    }

    /// Begins no partition of a job that can wait, or begins them again.
    pub(super) fn drain(&self, draining: bool) {
        self.draining.store(draining, Ordering::SeqCst);
        let is_shared = self.shared.load(Ordering::SeqCst);
        let holds: Option<fn(&Attempt) -> bool> = match (draining, is_shared) {
            (false, false) => None,
            (false, true) => Some(Attempt::is_elsewhere),
            (true, _) => Some(|attempt| attempt.job.is_deferrable() || attempt.is_elsewhere()),
        };
        self.admission.hold(holds);
    }

    /// Returns true if no partition of a job that can wait is begun.
    pub(super) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::SeqCst)
    }
}

/// Gives attempts that are elsewhere no turn from now on. To be called before the first attempt
/// is queued.
pub(super) fn share(dispatch: &Dispatcher) {
    dispatch.shared.store(true, Ordering::SeqCst);
    dispatch.drain(dispatch.is_draining());
}

/// Takes attempts out of the queue before their turn: at most `max` for which `joins` returns
/// true, those with the next turn first. The caller puts them back while it holds the memory
/// of an attempt.
pub(super) fn take_waiting(
    dispatch: &Dispatcher,
    max: usize,
    joins: impl Fn(&Attempt) -> bool,
) -> Vec<(Attempt, Ticket)> {
    let is_deferred = |attempt: &Attempt| dispatch.is_draining() && attempt.job.is_deferrable();
    let mut left = max;
    dispatch.admission.retain(|attempt| {
        let goes = left > 0 && !is_deferred(attempt) && joins(attempt);
        left -= usize::from(goes);
        !goes
    })
}

/// Returns true if an attempt waits that has its turn before those of this job.
pub(super) fn is_overtaken(dispatch: &Dispatcher, job: &JobState) -> bool {
    let rank = job.rank();
    let mut is_overtaken = false;
    dispatch.admission.visit_waiting(|attempt, work| {
        is_overtaken |= !work.is_held && attempt.job.rank() < rank;
    });
    is_overtaken
}

/// Returns the limits that the configuration sets, with no more memory than the machine
/// has at this moment.
///
/// # Errors
/// [`Error::Start`] when the machine has no memory beside the safety margin.
pub(super) fn limits(config: &Config) -> Result<Limits> {
    let total_bytes = usable_bytes(config)?;
    Ok(Limits {
        capacity: config.jobs.queued_partitions,
        total_bytes,
        critical_reserve_bytes: config.memory.critical_reserve_bytes.min(total_bytes / 2),
        patience: config.jobs.patience,
    })
}

fn usable_bytes(config: &Config) -> Result<u64> {
    let memory = &config.memory;
    let available = available_memory_bytes().unwrap_or(u64::MAX);
    let total = memory.total_budget_bytes.min(available);
    total
        .checked_sub(memory.safety_margin_bytes)
        .filter(|&bytes| bytes > 0)
        .ok_or_else(|| {
            cannot_start(format!(
                "{available} bytes of memory are available and memory.safety_margin is {}; \
                 free memory or lower it",
                memory.safety_margin_bytes
            ))
        })
}

fn push<T>(queue: &Queue<T>, rank: Rank, item: T) -> std::result::Result<(), Box<Closed<T>>> {
    let pushed = if rank.is_critical() {
        queue.push_at_once(rank, item)
    } else {
        queue.push(rank, item)
    };
    pushed.map_err(Box::new)
}
