//! A place outside of the engine where partitions can be proved, as the engine sees it.
//!
//! Not the way to it: that is the place's own. [`super::remote`] has the calls of the place
//! into the engine. The invariants:
//!
//! * Without such a place, no lock is taken here and nothing is copied.
//! * A partition that is elsewhere stays in its queue and has no turn. So nothing has to be
//!   put back when it comes home.
//! * The place hears of a partition before that can begin here, and of its end afterwards.

use std::sync::{Arc, OnceLock};

use cuzk_filecoin::CircuitId;
use cuzk_scheduler::priority::Priority;

use super::attempt::Attempt;
use crate::Error;
use crate::job::{JobState, Place};

/// A partition, by the number of its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartitionId {
    /// The number of the job in this engine.
    pub job: u64,
    /// Its index in the job, from 0.
    pub partition: usize,
}

/// A partition that was queued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuedPartition {
    /// The partition.
    pub id: PartitionId,
    /// The caller's name for its job.
    pub job_id: Option<String>,
    /// The circuit that it instantiates.
    pub circuit: CircuitId,
    /// The priority of its job.
    pub priority: Priority,
}

/// A place outside of the engine where partitions can be proved. The calls come from threads
/// of the engine, and return soon. Each can come again for the same partition.
pub trait Elsewhere: Send + Sync {
    /// Returns true if partitions of this priority are left to others: they begin here only
    /// after [`Remote::give_back`](super::Remote::give_back).
    fn is_left_to_others(&self, priority: Priority) -> bool;

    /// Returns true if others may prove a partition, or will be asked to. One that has no
    /// memory here is left to them.
    fn has(&self, partition: PartitionId) -> bool;

    /// Notes that a partition is to be proved. It is queued here right after this call.
    fn queued(&self, partition: QueuedPartition);

    /// Notes that a partition begins here.
    fn begun(&self, partition: PartitionId);

    /// Notes that nothing more is to be done for a partition. It was proved here or
    /// elsewhere, or its job has ended.
    fn ended(&self, partition: PartitionId);
}

/// The place elsewhere, if there is one.
#[derive(Default)]
pub(super) struct Outside(OnceLock<Arc<dyn Elsewhere>>);

impl Outside {
    /// Sets the place. To be called before the first partition is queued.
    pub(super) fn set(&self, place: Arc<dyn Elsewhere>) {
        // There is one call, so there is no earlier place.
        let _ = self.0.set(place);
    }

    pub(super) fn is_there(&self) -> bool {
        self.0.get().is_some()
    }

    /// Tells the place of partitions that are queued right afterwards.
    pub(super) fn queued(&self, job: &JobState, partitions: &[usize]) {
        let Some(place) = self.0.get() else { return };
        let priority = job.placed_as();
        let first = match place.is_left_to_others(priority) {
            true => Place::Elsewhere,
            false => Place::Here,
        };
        for &partition in partitions {
            // Before the place can give it back.
            job.places().set(partition, first);
            place.queued(QueuedPartition {
                id: id(job, partition),
                job_id: job.id().map(str::to_owned),
                circuit: job.circuit(),
                priority,
            });
        }
    }

    /// Returns true if an attempt that has all it needs begins here, which the place hears.
    /// Returns false if others have begun it meanwhile.
    pub(super) fn may_begin(&self, attempt: &Attempt) -> bool {
        let Some(place) = self.0.get() else {
            return true;
        };
        if attempt.is_elsewhere() {
            return false;
        }
        let (job, partition) = (&attempt.job, attempt.partition);
        place.begun(id(job, partition));
        // Others may have begun it at this moment. It goes on here whatever becomes of them.
        job.places()
            .change(partition, &[Place::Elsewhere], Place::Here);
        true
    }

    /// Leaves an attempt to others, because this machine can never have the memory for it.
    /// Returns false if nobody else may prove it.
    pub(super) fn leave(&self, attempt: &Attempt) -> bool {
        let Some(place) = self.0.get() else {
            return false;
        };
        let (job, partition) = (&attempt.job, attempt.partition);
        // Before the question: a place that drops it gives it back after it answers no.
        job.places()
            .change(partition, &[Place::Here], Place::Elsewhere);
        attempt.is_elsewhere() && place.has(id(job, partition))
    }

    /// Tells the place that partitions need nothing more.
    pub(super) fn ended(&self, job: &JobState, partitions: impl IntoIterator<Item = usize>) {
        let Some(place) = self.0.get() else { return };
        for partition in partitions {
            place.ended(id(job, partition));
        }
    }

    /// Tells the place that a job has ended. A job that goes on at the next start has not:
    /// others go on with it meanwhile.
    pub(super) fn job_ended(&self, job: &JobState) {
        if !self.is_there() {
            return;
        }
        let goes_on = |error: &Arc<Error>| matches!(**error, Error::ShuttingDown);
        if !job
            .outcome()
            .is_some_and(|end| end.as_ref().is_err_and(goes_on))
        {
            self.ended(job, 0..job.progress().partitions);
        }
    }
}

fn id(job: &JobState, partition: usize) -> PartitionId {
    PartitionId {
        job: job.number(),
        partition,
    }
}
