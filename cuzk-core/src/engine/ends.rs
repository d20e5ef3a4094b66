//! How jobs begin and how they end: into the queue and out of it.
//!
//! Not the way between. The invariants: a job is queued whole or not at all; when
//! it has ended nothing of it stays in a queue, whatever was put there at the same
//! moment.

use std::sync::Arc;
use std::time::Duration;

use cuzk_scheduler::admission::{Entrance, Lane, Refused, Ticket};
use cuzk_scheduler::estimate::{Times, Width};
use cuzk_scheduler::priority::{Priority, Rank};

use super::Ends;
use super::shared::Shared;
use super::task::Task;
use crate::job::{JobState, Settled};
use crate::kinds::CircuitId;
use crate::metrics::{self, Outcome};
use crate::params::LoadedParams;
use crate::verify::VerifiedProof;
use crate::{Error, Result};

/// What takes as long as what: a circuit's partitions, apart from those that have the
/// machine for themselves.
pub(super) type Sort = (CircuitId, bool);

impl Shared {
    /// A deadline that cannot be met, as far as is known, is told at once.
    pub(super) fn check_deadline(
        &self,
        id: CircuitId,
        partitions: usize,
        rank: Rank,
        deadline: Duration,
    ) -> Result<()> {
        let live = self.registry.all_live();
        let ahead = live.iter().filter(|state| state.rank() <= rank);
        let ahead = ahead.flat_map(|state| {
            let progress = state.progress();
            let missing = progress.partitions - progress.partitions_done;
            let sort = (state.circuit(), state.rank().is_critical());
            std::iter::repeat_n(sort, missing)
        });
        let critical = rank.is_critical();
        let sort = (id, critical);
        let width = self.width(critical);
        match self.estimates.until_end(&sort, partitions, ahead, width) {
            Some(estimate) if estimate > deadline => Err(Error::TooLate {
                deadline_ms: whole_ms(deadline),
                estimate_ms: whole_ms(estimate),
            }),
            _ => Ok(()),
        }
    }

    /// How much is proved at once.
    fn width(&self, critical: bool) -> Width {
        let config = &self.config.synthesis;
        Width {
            // Critical work has one of its own.
            workers: if critical {
                1
            } else {
                config.partition_workers
            },
            devices: self.stations.num_trusted(),
        }
    }

    /// Notes how long a partition took that `station` proved: not if it stood still
    /// meanwhile, nor on the worker that proves what devices could not.
    pub(super) fn measured(&self, station: usize, task: &Task, on_device: Duration) {
        let critical = task.is_critical();
        let alone = critical || task.quiet_at.is_some() && task.quiet_at == self.pause.quiet();
        if alone && station != self.stations.of_lane(Lane::Retry) {
            let proves = station == self.stations.of_lane(Lane::Critical);
            let times = Times {
                total: task.spent,
                on_worker: if proves {
                    task.spent
                } else {
                    task.synthesized_in
                },
                on_device,
            };
            let sort = (task.state.circuit(), critical);
            self.estimates.measured(sort, times);
        }
    }

    /// What cannot be queued now need not be written to the journal first.
    pub(super) fn check_room(&self, partitions: usize) -> Result<()> {
        let waiting = self.admission.usage().waiting;
        if self.admission.is_closed() {
            Err(Error::ShuttingDown)
        } else if waiting.saturating_add(partitions) > self.admission.limits().capacity {
            Err(self.busy())
        } else {
            Ok(())
        }
    }

    /// What could never be queued is not to be tried again.
    pub(super) fn check_partitions(&self, partitions: usize) -> Result<()> {
        let capacity = self.admission.limits().capacity;
        if partitions == 0 {
            let problem = "expected at least 1, got 0";
            return Err(Error::request(
                "partitions",
                problem,
                "there is nothing to prove",
            ));
        }
        if partitions > capacity {
            return Err(Error::TooManyPartitions {
                partitions,
                capacity,
            });
        }
        Ok(())
    }

    /// What can never have its memory is told here, where that is known.
    pub(super) fn check_memory(&self, id: CircuitId, priority: Priority) -> Result<()> {
        let lane = if priority == Priority::Critical {
            Lane::Critical
        } else {
            Lane::Common
        };
        let vectors = self.stations.hold_vectors(lane);
        while let Some(need) = self.needs.known(id, vectors) {
            match self.admission.check(priority, &need) {
                Ok(()) => break,
                Err(_) if self.needs.uncharge_files(id) => {}
                Err(over) => {
                    self.needs.forget(id);
                    return Err(over.into());
                }
            }
        }
        Ok(())
    }

    fn busy(&self) -> Error {
        Error::Busy {
            capacity: self.admission.limits().capacity,
        }
    }

    /// Queues the partitions of a job that are missing, if there is room for them.
    pub(super) fn queue(&self, state: &Arc<JobState>) -> Result<()> {
        self.queue_with(state, state.missing(), Entrance::IfRoom)
    }

    /// The same, whatever waits: for jobs that are bounded by the journal, and were
    /// accepted before what waits was.
    pub(super) fn queue_at_once(&self, state: &Arc<JobState>) -> Result<()> {
        self.queue_with(state, state.missing(), Entrance::AtOnce)
    }

    fn queue_with(
        &self,
        state: &Arc<JobState>,
        partitions: Vec<usize>,
        entrance: Entrance,
    ) -> Result<()> {
        let tried = self.stations.too_small_for(state.circuit());
        let task = |partition| Task {
            tried: tried.clone(),
            ..Task::new(Arc::clone(state), partition)
        };
        let tasks: Vec<_> = partitions.into_iter().map(task).collect();
        // They differ in nothing that a lane depends on.
        let lane = tasks.first().and_then(|task| self.stations.lane_for(task));
        let lane = lane.unwrap_or(Lane::Common);
        let vectors = self.stations.hold_vectors(lane);
        let with_need = |mut task: Task| {
            let need = self.needs.of(&mut task, vectors);
            (task, need)
        };
        let tasks = tasks.into_iter().map(with_need).collect();
        let (priority, since) = (state.priority(), state.accepted());
        let admission = &self.admission;
        let queued = admission.submit(entrance, lane, priority, since, tasks);
        queued.map_err(|refused| match refused {
            Refused::Full => self.busy(),
            Refused::Closed => Error::ShuttingDown,
        })?;
        self.was_queued(state);
        Ok(())
    }

    /// Puts a partition back into the queue, to be done from its start.
    pub(super) fn put_back(&self, lane: Lane, ticket: Ticket, mut task: Task) {
        let need = self.needs.of(&mut task, self.stations.hold_vectors(lane));
        let state = Arc::clone(&task.state);
        self.admission.put_back(lane, ticket, task, need);
        self.was_queued(&state);
    }

    /// To be called after something of a job was queued: the job may have ended,
    /// and the queues been looked through, just before.
    pub(super) fn was_queued(&self, state: &JobState) {
        if state.has_ended() {
            self.drop_ended();
        }
    }

    /// Takes a partition's proof from an earlier life of the engine.
    pub(super) fn restore(&self, state: &Arc<JobState>, partition: usize, proof: VerifiedProof) {
        if state.restore(partition, proof) {
            self.has_ended(state);
        }
    }

    pub(super) fn end_with(&self, state: &Arc<JobState>, error: Error) {
        Ends::end(self, state, error);
    }

    /// Takes the result of a partition, a proof with the parameters it was verified with.
    pub(super) fn settle(&self, task: &Task, result: Result<(VerifiedProof, &Arc<LoadedParams>)>) {
        let params = result.as_ref().ok().map(|(_, params)| Arc::clone(params));
        let result = result.map(|(proof, params)| (proof, params.loading()));
        match task.state.settle(task.partition, result) {
            Settled::Open => {}
            Settled::Ended => self.has_ended(&task.state),
            Settled::Mixed => {
                if let Some(params) = params {
                    self.unite(&task.state, params);
                }
            }
        }
    }

    /// All partitions of a job are proved, and parameters were replaced in between. The
    /// newest say what holds; what does not is proved again.
    fn unite(&self, state: &Arc<JobState>, params: Arc<LoadedParams>) {
        let Some(job) = state.input() else { return };
        let files = state.circuit().parameter_files().ok();
        let newest = files.and_then(|files| self.params.loaded(&files));
        let params = newest.unwrap_or(params);
        let critical = state.rank().is_critical();
        let holds = |partition, proof: &VerifiedProof| {
            let key = params.prepared_key();
            self.verify_again(&*job, critical, partition, proof.as_bytes(), key)
                .is_ok()
        };
        let (settled, missing) = state.unite(params.loading(), holds);
        if settled == Settled::Ended {
            self.has_ended(state);
        } else if !missing.is_empty() {
            tracing::warn!(
                job = state.number(),
                ?missing,
                "the parameters were replaced by another key's while it was proved; what was \
                 proved with the old ones is proved again"
            );
            // Accepted long ago, whether or not anything else still is.
            let queued = self.queue_with(state, missing, Entrance::Again);
            if let Err(error) = queued {
                self.end_with(state, error);
            }
        }
    }

    fn has_ended(&self, state: &Arc<JobState>) {
        self.registry.ended(state);
        let outcome = match state.outcome() {
            Some(Ok(_)) | None => Outcome::Proved,
            Some(Err(error)) => match &*error {
                Error::Cancelled => Outcome::Cancelled,
                Error::ShuttingDown => Outcome::ShutDown,
                _ => Outcome::Failed,
            },
        };
        let kind = state.circuit().kind.name();
        metrics::job_ended(kind, outcome, state.accepted().elapsed());
        self.pause.wake();
        self.bell.ring();
        self.drop_ended();
    }

    /// What jobs that have ended still have in queues is of no use any more.
    fn drop_ended(&self) {
        let goes_on = |task: &Task| !task.state.has_ended();
        drop(self.admission.retain(goes_on));
        drop(self.ready.retain(|ready| goes_on(&ready.task)));
    }
}

impl Ends for Shared {
    fn end(&self, state: &Arc<JobState>, error: Error) -> bool {
        let ended = state.end(Err(Arc::new(error)));
        if ended {
            self.has_ended(state);
        }
        ended
    }
}

fn whole_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
