//! The loops of the engine's threads, in the order of a partition's way.
//!
//! The invariants: a thread holds no partition while it waits for one; nothing
//! that a stage does ends its thread.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use cuzk_scheduler::admission::{Lane, Reservation, Ticket, Turn};
use cuzk_scheduler::priority::Rank;
use cuzk_scheduler::queue::{Closed, Queue};

use super::needs::Files;
use super::shared::Shared;
use super::stations::{Claim, Station};
use super::task::{Admitted, Finishing, Ready, Stake, Task};
use super::watch::{Call, Part};
use crate::circuit::Circuit;
use crate::job::JobState;
use crate::kinds::CircuitId;
use crate::params::LoadedParams;
use crate::pipeline::{SynthesisResources, prove_finish, prove_start, synthesize_partition};
use crate::timeline::{DeviceTally, Stage, Trace, Wait};
use crate::{Error, Result};

impl Shared {
    /// Synthesis workers: from admission to the devices.
    pub(super) fn synthesize_until_over(&self) {
        while let Some(admitted) = self.next_turn(Lane::Common) {
            let state = Arc::clone(&admitted.task.state);
            self.guarded("synthesis worker", &state, || {
                self.synthesize_in_common(admitted);
            });
        }
    }

    fn synthesize_in_common(&self, admitted: Admitted) {
        let Some(admitted) = self.acquitted(admitted, &self.pool) else {
            return;
        };
        if !self.stations.has_device_for(&admitted.task) {
            self.to_the_cpu(admitted.ticket, &admitted.task);
            return;
        }
        let evaluate = self.stations.hold_vectors(Lane::Common);
        let resources = self.synthesis_resources(&admitted.task, None, evaluate);
        if let Some(ready) = self.synthesize(admitted, resources) {
            self.hand_over(ready);
        }
    }

    /// To the devices.
    fn hand_over(&self, mut ready: Ready) {
        ready.task.wait = Some(Wait::begin(Stage::ReadyWait));
        let state = Arc::clone(&ready.task.state);
        let rank = ready.ticket.rank();
        // Nothing closes this queue while a partition is on its way.
        if let Err(closed) = put(&self.ready, rank, ready) {
            self.settle(&closed.0.task, Err(Error::ShuttingDown));
        }
        self.leave_no_device_behind();
        self.was_queued(&state);
    }

    /// Device workers: one device's region, of one partition after the other.
    pub(super) fn start_until_closed(&self, station: usize) {
        let _here = self.watch.enter();
        let Some(here) = self.stations.get(station) else {
            return;
        };
        while let Some(ready) = self.next_ready(station) {
            let state = Arc::clone(&ready.task.state);
            self.guarded("device worker", &state, || {
                if let Some(finishing) = self.start(station, here, ready) {
                    self.hand_on(finishing);
                }
            });
        }
    }

    /// From the devices.
    fn hand_on(&self, mut finishing: Finishing) {
        finishing.task.wait = Some(Wait::begin(Stage::FinishWait));
        let rank = finishing.ticket.rank();
        if let Err(closed) = put(&self.finishing, rank, finishing) {
            self.settle(&closed.0.task, Err(Error::ShuttingDown));
        }
    }

    /// The next partition that a device may prove.
    fn next_ready(&self, station: usize) -> Option<Ready> {
        self.tell_memory();
        let mut trial = None;
        let mut ready = self.ready.pop_if(|ready| {
            match self.stations.claim(station, &ready.task) {
                Claim::No => return false,
                Claim::Yes => {}
                Claim::Trial(given) => trial = Some(given),
            }
            true
        })?;
        if trial.is_some() {
            tracing::info!(station, "the device is tried with one partition");
            ready.task.trial = trial;
            // The others are not to wait for what comes of it.
            self.leave_no_device_behind();
        }
        Some(ready)
    }

    /// Finish workers: what is left to do after a device. One whose device did not
    /// answer in time has been replaced, and ends when it does.
    pub(super) fn finish_until_closed(&self) {
        let _here = self.watch.enter();
        while let Some(finishing) = self.finishing.pop() {
            let state = Arc::clone(&finishing.task.state);
            let finish = || self.finish(finishing);
            if self.guarded("finish worker", &state, finish) == Some(false) {
                return;
            }
            self.tell_memory();
        }
    }

    /// A worker that takes a partition all the way, on a station of its own; or to the
    /// devices, so that critical work waits for no other worker.
    pub(super) fn prove_alone_until_over(&self, lane: Lane) {
        while let Some(admitted) = self.next_turn(lane) {
            let state = Arc::clone(&admitted.task.state);
            self.guarded("worker out of turn", &state, || {
                self.prove_alone(lane, admitted);
            });
        }
    }

    fn prove_alone(&self, lane: Lane, admitted: Admitted) {
        let station = self.stations.of_lane(lane);
        let Some(here) = self.stations.solo(station) else {
            self.settle(&admitted.task, Err(no_threads()));
            return;
        };
        let _urgent = (lane == Lane::Critical).then(|| self.pause.raise());
        let Some(admitted) = self.acquitted(admitted, &here.pool) else {
            return;
        };
        let alone = !self.stations.is_for_a_device(&admitted.task);
        let evaluate = alone || self.stations.hold_vectors(Lane::Common);
        let resources = self.synthesis_resources(&admitted.task, Some(here), evaluate);
        let Some(ready) = self.synthesize(admitted, resources) else {
            return;
        };
        if !alone {
            self.hand_over(ready);
        } else if let Some(finishing) = self.start(station, &here.station, ready) {
            self.finish(finishing);
        }
    }

    /// The next partition of a lane with what it needs to begin. Partitions that
    /// have ended meanwhile, or cannot begin, are settled on the way.
    fn next_turn(&self, lane: Lane) -> Option<Admitted> {
        loop {
            self.tell_memory();
            let turn = self.admission.next(lane)?;
            let (Turn::Admitted { item, .. } | Turn::Impossible { item, .. }) = &turn;
            let state = Arc::clone(&item.state);
            let begun = self.guarded("admission", &state, || self.begin(turn, lane));
            if let Some(Some(admitted)) = begun {
                return Some(admitted);
            }
        }
    }

    fn begin(&self, turn: Turn<Task, CircuitId>, lane: Lane) -> Option<Admitted> {
        let (mut task, ticket, memory) = match turn {
            Turn::Admitted {
                item,
                ticket,
                memory,
                evicted,
            } => {
                evicted.iter().for_each(|id| self.evict(*id));
                (item, ticket, memory)
            }
            Turn::Impossible {
                item,
                ticket,
                over,
                held: _held,
            } => {
                let id = item.state.circuit();
                if self.needs.uncharge_files(id) {
                    self.put_back(lane, ticket, item);
                } else {
                    self.needs.forget(id);
                    self.settle(&item, Err(over.into()));
                }
                return None;
            }
        };
        let (circuit, params, files) = self.prepare(&mut task, lane)?;
        // They may have come, gone or been replaced since it was charged.
        if task.stake != Stake::Proving(files) {
            self.learn(&circuit, files);
            task.wait = Some(Wait::begin(Stage::MemoryWait));
            self.put_back(lane, ticket, task);
            return None;
        }
        {
            // What is on its way out goes on threads that come last.
            let _urgent = (lane == Lane::Critical).then(|| self.pause.raise());
            self.make_room(&circuit, &files, &task, lane);
        }
        Some(Admitted {
            finish_bytes: self.needs.finish_bytes(&circuit, &files),
            task,
            ticket,
            circuit,
            params,
            memory,
        })
    }

    /// What a partition is proved with.
    fn prepare(
        &self,
        task: &mut Task,
        lane: Lane,
    ) -> Option<(Arc<Circuit>, Arc<LoadedParams>, Files)> {
        let trace = self.end_wait(task);
        if task.state.has_ended() {
            return None;
        }
        if task.state.deadline_has_passed() {
            self.settle(task, Err(Error::DeadlinePassed));
            return None;
        }
        let id = task.state.circuit();
        let leave = || task.state.has_ended().then_some(Error::Cancelled);
        let checkpoint = self.checkpoint(task);
        // What one pays for all is not what a partition takes.
        let loaded = unwinding_is_an_error("load", || {
            let circuit = trace.time(Stage::Circuit, || self.circuit(id, &checkpoint, &leave))?;
            let (params, files) = trace.time(Stage::Params, || {
                let params = self.params(id, &circuit, &leave)?;
                let files = self.files(&circuit, &params, lane, &leave)?;
                Ok::<_, Error>((params, files))
            })?;
            Ok((circuit, params, files))
        });
        match loaded {
            Ok(loaded) => Some(loaded),
            Err(error) => {
                self.settle(task, Err(error));
                None
            }
        }
    }

    fn synthesize(&self, admitted: Admitted, resources: SynthesisResources<'_>) -> Option<Ready> {
        let Admitted {
            mut task,
            ticket,
            circuit,
            params,
            finish_bytes,
            memory,
        } = admitted;
        let job = task.state.input()?;
        let trace = self.trace(&task);
        task.quiet_at = self.pause.quiet();
        let synthesized = task.spend(|task| {
            unwinding_is_an_error("synthesis", || {
                synthesize_partition(
                    &*job,
                    task.partition,
                    circuit,
                    Arc::clone(params.mapped()),
                    resources,
                    trace,
                )
            })
        });
        match synthesized {
            Ok(synthesized) => Some(Ready {
                task: Task {
                    synthesized_in: task.spent,
                    ..task
                },
                ticket,
                params,
                synthesized,
                finish_bytes,
                memory,
            }),
            Err(error) => {
                self.settle(&task, Err(error));
                None
            }
        }
    }

    /// The device region of a partition.
    fn start(&self, station: usize, here: &Station, mut ready: Ready) -> Option<Finishing> {
        let tally = DeviceTally::default();
        let trace = self.end_wait(&mut ready.task);
        let trace = trace.on_device(station).tallied(&tally);
        if ready.task.state.has_ended() {
            return None;
        }
        let Ready {
            mut task,
            ticket,
            params,
            synthesized,
            finish_bytes,
            memory,
        } = ready;
        let call = here.call(station, Part::Start);
        let started = self.watched((here, call), &mut task, ticket, memory, |task| {
            prove_start(&here.device.backend, synthesized, task.partition, trace)
        });
        task.spent = task.spent.saturating_sub(tally.waited());
        self.let_go_if_replaced(here, task.state.circuit(), &params);
        let (pending, mut memory) = started?;
        // The vectors are gone, one way or the other.
        memory.shrink_to(finish_bytes);
        match pending {
            Ok(pending) => Some(Finishing {
                on_device: tally.busy(),
                task,
                ticket,
                station,
                params,
                pending,
                memory,
            }),
            Err(error) => {
                self.failed(station, task, ticket, error);
                None
            }
        }
    }

    /// The rest of a partition, to its end. Whether its device answered in time.
    fn finish(&self, finishing: Finishing) -> bool {
        let Finishing {
            mut task,
            ticket,
            station,
            params,
            pending,
            on_device,
            memory,
        } = finishing;
        let trace = self.end_wait(&mut task).on_device(station);
        let Some(here) = self.stations.get(station) else {
            self.settle(&task, Err(no_threads()));
            return true;
        };
        let call = here.call(station, Part::Finish);
        let finished = self.watched((here, call), &mut task, ticket, memory, |task| {
            // Letting go of it is the device's as well, if the job has ended.
            let job = task.state.input().ok_or(Error::Stopped)?;
            let (backend, key) = (&*here.device.backend, params.prepared_key());
            let pool = self.pool_beside(task.is_critical());
            trace.time(Stage::Finish, || {
                prove_finish(pending, backend, &*job, task.partition, key, pool, trace)
            })
        });
        let Some((proof, memory)) = finished else {
            return false;
        };
        match proof {
            Ok(proof) => {
                self.measured(station, &task, on_device);
                self.went_well(station, here, &mut task);
                // The memory is free before anyone is told, and the job may yet have to go
                // on when it was the last.
                let stay = self.admission.stay();
                drop(memory);
                self.settle(&task, Ok((proof, &params)));
                drop(stay);
            }
            Err(error) => {
                self.failed(station, task, ticket, error);
                drop(memory);
            }
        }
        true
    }

    /// Has a device do `work` on a partition, with the memory that this takes: what came of
    /// it, and the memory; none if the device was given up meanwhile.
    fn watched<T>(
        &self,
        (here, call): (&Station, Call),
        task: &mut Task,
        ticket: Ticket,
        memory: Reservation<CircuitId>,
        work: impl FnOnce(&Task) -> Result<T>,
    ) -> Option<(Result<T>, Reservation<CircuitId>)> {
        let stage = match call.part {
            Part::Start => "prove",
            Part::Finish => "finish",
        };
        let watched = self.watch.begin(call, task, ticket, memory);
        let done = task.spend(|task| unwinding_is_an_error(stage, || work(task)));
        let answered = self.watch.answered(watched, done);
        if answered.is_none() {
            here.health.answered();
        }
        answered
    }

    /// Runs `work`, which has a partition of this job in hand. Should it panic, the job
    /// ends with that, and the thread goes on.
    pub(super) fn guarded<T>(
        &self,
        stage: &'static str,
        state: &Arc<JobState>,
        work: impl FnOnce() -> T,
    ) -> Option<T> {
        let done = unwinding_is_an_error(stage, || Ok(work()));
        done.map_err(|error| self.end_with(state, error)).ok()
    }

    pub(super) fn trace(&self, task: &Task) -> Trace<'_> {
        self.timeline
            .trace(task.state.number(), Some(task.partition))
    }

    /// Records the end of a task's wait, if it waited.
    fn end_wait(&self, task: &mut Task) -> Trace<'_> {
        let trace = self.trace(task);
        if let Some(wait) = task.wait.take() {
            trace.ended(wait);
        }
        trace
    }
}

/// Critical work does not wait for room.
fn put<T>(queue: &Queue<T>, rank: Rank, item: T) -> std::result::Result<(), Closed<T>> {
    if rank.is_critical() {
        queue.push_at_once(rank, item)
    } else {
        queue.push(rank, item)
    }
}

fn no_threads() -> Error {
    Error::Internal {
        stage: "threads",
        problem: "the system gave none for a partition out of turn".to_owned(),
    }
}

pub(super) fn unwinding_is_an_error<T>(
    stage: &'static str,
    work: impl FnOnce() -> Result<T>,
) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| match panic.downcast_ref() {
        Some(no_memory) => Err(Error::NoMemory(*no_memory)),
        None => Err(Error::Internal {
            stage,
            problem: message_of(&*panic),
        }),
    })
}

fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
}
