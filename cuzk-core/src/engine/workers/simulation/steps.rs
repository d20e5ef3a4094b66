//! The steps of the workers in a run.
//!
//! Not what callers do, which is in [`super::callers`]. The invariant: a step does what a
//! worker's thread does between two waits.

use std::cell::Cell;
use std::iter::repeat_with;
use std::mem;
use std::sync::Arc;

use cuzk_scheduler::admission::{Lane, Turn};
use cuzk_scheduler::clock;
use rand::Rng;

use super::checks::Violation;
use super::device::Deed;
use super::life::{DEDICATED, DeviceWorker, Finish, Region};
use super::request::Request;
use super::world::{FailedOn, World};
use crate::Error;
use crate::engine::attempt::{AdmittedAttempt, Attempt};
use crate::engine::entrance::may_go;
use crate::engine::workers::{admission, dedicated, device, finish, resume, synthesis, watchdog};
use crate::pipeline::prove_start;
use crate::timeline::DeviceTally;

pub(super) type Done = Result<(), Violation>;

impl World<'_> {
    /// Makes any one step.
    pub(super) fn any_step(&mut self) -> Done {
        match self.rng.gen_range(0..100) {
            0..20 => self.any_call(),
            20..24 => self.watch(),
            24..40 => {
                let worker = self.rng.gen_range(0..self.life.synthesis.len());
                self.synthesize(worker)
            }
            40..50 => {
                let worker = self.rng.gen_range(0..DEDICATED.len());
                self.dedicated(worker)
            }
            50..75 => {
                let worker = self.rng.gen_range(0..self.life.regions.len());
                self.region(worker)
            }
            75..95 => {
                let worker = self.rng.gen_range(0..self.life.finishes.len());
                self.finish(worker)
            }
            _ => self.resume(),
        }
    }

    /// Makes a step of every worker, and checks after each.
    pub(super) fn every_worker(&mut self) -> Done {
        self.resume()?;
        self.check()?;
        for worker in 0..self.life.synthesis.len() {
            self.synthesize(worker)?;
            self.check()?;
        }
        for worker in 0..DEDICATED.len() {
            self.dedicated(worker)?;
            self.check()?;
        }
        for worker in 0..self.life.regions.len() {
            self.region(worker)?;
            self.check()?;
        }
        // A finish worker whose device was given up ends, so that there are fewer then.
        for worker in (0..self.life.finishes.len()).rev() {
            self.finish(worker)?;
            self.check()?;
        }
        self.watch()?;
        self.check()
    }

    /// The watchdog looks at the calls of devices.
    fn watch(&mut self) -> Done {
        let before = self.awaited();
        let (core, replaced) = (&self.life.core, Cell::new(0));
        let replace = |_| {
            replaced.set(replaced.get() + 1);
            Ok(())
        };
        watchdog::look(core, &mut self.life.lost, &replace);
        let more = repeat_with(|| None).take(replaced.get());
        self.life.finishes.extend(more);
        let after = self.awaited();
        let given_up = before.into_iter().filter(|call| !after.contains(call));
        for call in given_up {
            self.report.given_up += 1;
            self.failed_on.insert(call);
        }
        Ok(())
    }

    /// Returns the partitions and devices of the calls that are not given up.
    fn awaited(&self) -> Vec<FailedOn> {
        let watchdog = &self.life.core.fleet.watchdog;
        let of = |attempt: &Attempt, device| (attempt.job.number(), attempt.partition, device);
        let regions = self
            .life
            .regions
            .iter()
            .filter_map(|(device, worker)| match worker {
                DeviceWorker::InRegion(region) => {
                    let call = &region.call;
                    watchdog
                        .is_awaited(call.key)
                        .then(|| of(&call.attempt, *device))
                }
                _ => None,
            });
        let finishes = self.life.finishes.iter().flatten();
        let finishes = finishes.filter(|finish| watchdog.is_awaited(finish.call.key));
        let finishes = finishes.map(|finish| of(&finish.call.attempt, finish.call.device));
        regions.chain(finishes).collect()
    }

    /// The thread that takes jobs out of the journal takes the next one, or reads it.
    fn resume(&mut self) -> Done {
        let core = &self.life.core;
        let Some((next, mut is_logged)) = self.life.resumed.take() else {
            let next = core.jobs.waiting.take(|job| may_go(core, job));
            self.report.waited_in_journal += u64::from(next.is_some());
            self.life.resumed = next.map(|next| (next, false));
            return Ok(());
        };
        let journal = &*self.life.recorder.journal;
        match resume::resume_if_readable(core, journal, &next, &mut is_logged) {
            Some(resumed) => resume::end_unresumed(core, &next.job, resumed),
            None if next.job.has_ended() => {}
            None => self.life.resumed = Some((next, is_logged)),
        }
        Ok(())
    }

    /// Takes the next attempt of a lane, if it has its memory now.
    fn admit(&self, lane: Lane) -> Result<Option<AdmittedAttempt>, Violation> {
        let core = &self.life.core;
        let Some(turn) = core.dispatch.admission.try_next(lane) else {
            return Ok(None);
        };
        if let (Lane::Common, Turn::Admitted { item, .. }) = (lane, &turn) {
            self.check_order(item)?;
        }
        let admitted = admission::take_turn(core, turn, lane);
        let job = admitted.as_ref().map(|admitted| &admitted.attempt.job);
        match job.filter(|job| job.deadline_has_passed()) {
            Some(job) => Err(Violation::Late(format!("job {}", job.number()))),
            None => Ok(admitted),
        }
    }

    fn synthesize(&mut self, worker: usize) -> Done {
        let held = self.life.synthesis[worker].take();
        let ready = match held {
            Some(held) => Some(held),
            None => {
                let Some(admitted) = self.admit(Lane::Common)? else {
                    return Ok(());
                };
                let core = &self.life.core;
                let job = Arc::clone(&admitted.attempt.job);
                let take = || synthesis::take(core, admitted);
                let ready = core.guarded("synthesis worker", &job, take);
                ready.flatten().map(Box::new)
            }
        };
        let Some(ready) = ready else { return Ok(()) };
        let core = &self.life.core;
        if core.dispatch.ready.has_room() {
            synthesis::hand_over(core, *ready);
        } else {
            self.life.synthesis[worker] = Some(ready);
        }
        Ok(())
    }

    /// A dedicated worker takes an attempt, or takes it all the way.
    fn dedicated(&mut self, worker: usize) -> Done {
        let lane = DEDICATED[worker];
        let Some(admitted) = self.life.dedicated[worker].take() else {
            self.life.dedicated[worker] = self.admit(lane)?.map(Box::new);
            return Ok(());
        };
        let deed = if self.cpu_fails {
            self.deed()
        } else {
            Deed::Prove
        };
        self.life.own_devices[worker].tell(deed, self.root_of(&admitted.attempt));
        let core = &self.life.core;
        let job = Arc::clone(&admitted.attempt.job);
        let take = || dedicated::take(core, lane, *admitted);
        core.guarded("dedicated worker", &job, take);
        Ok(())
    }

    /// Returns the number of the root that is to be proved.
    fn root_of(&self, attempt: &Attempt) -> usize {
        let mut jobs = self.jobs.iter();
        let tracked = jobs.find(|tracked| Arc::ptr_eq(&tracked.job, &attempt.job));
        let request: Request = tracked.unwrap().request;
        request.root(attempt.partition)
    }

    /// A device worker begins a region, ends it, or hands the attempt on.
    fn region(&mut self, worker: usize) -> Done {
        let (device, state) = &mut self.life.regions[worker];
        let device = *device;
        match mem::replace(state, DeviceWorker::Idle) {
            DeviceWorker::Idle => self.begin_region(worker, device),
            DeviceWorker::InRegion(region) if self.is_due(region.answers) => {
                self.end_region(worker, device, *region);
                Ok(())
            }
            DeviceWorker::InRegion(region) => {
                self.life.regions[worker].1 = DeviceWorker::InRegion(region);
                Ok(())
            }
            DeviceWorker::Holds(finishing) => {
                let core = &self.life.core;
                if core.dispatch.finishing.has_room() || finishing.attempt.is_critical() {
                    device::hand_over(core, *finishing);
                } else {
                    self.life.regions[worker].1 = DeviceWorker::Holds(finishing);
                }
                Ok(())
            }
        }
    }

    fn begin_region(&mut self, worker: usize, device: usize) -> Done {
        let core = &self.life.core;
        let slot = core.fleet.slot(device).unwrap();
        let is_trusted = slot.health.is_trusted();
        let pop = |takes: &mut dyn FnMut(&_) -> bool| core.dispatch.ready.try_pop_if(takes);
        let Some(ready) = device::claim_ready(core, device, pop) else {
            return Ok(());
        };
        self.check_claim(device, is_trusted, &ready.attempt)?;
        self.report.trials += u64::from(ready.attempt.trial.is_some());
        if let Some((call, synthesized)) = device::begin(core, (device, slot), ready) {
            let (deed, answers) = (self.deed(), self.answer());
            let region = Region {
                call,
                synthesized,
                deed,
                began: clock::now(),
                answers,
            };
            self.life.regions[worker].1 = DeviceWorker::InRegion(Box::new(region));
        }
        Ok(())
    }

    fn end_region(&mut self, worker: usize, device: usize, region: Region) {
        let Region {
            mut call,
            synthesized,
            deed,
            began,
            ..
        } = region;
        let partition = call.attempt.partition;
        self.life.devices[device].tell(deed, self.root_of(&call.attempt));
        let core = &self.life.core;
        let slot = core.fleet.slot(device).unwrap();
        let tally = DeviceTally::default();
        let trace = call.attempt.trace(&core.timeline).on_device(device);
        let started = prove_start(&slot.device.backend, synthesized, partition, trace);
        call.attempt.spent += clock::since(began);
        let job = Arc::clone(&call.attempt.job);
        if started.is_err() {
            self.failed_on.insert((job.number(), partition, device));
        }
        let end = || device::end(core, (device, slot), call, started, &tally);
        let finishing = core.guarded("device worker", &job, end);
        if let Some(finishing) = finishing.flatten() {
            self.life.regions[worker].1 = DeviceWorker::Holds(Box::new(finishing));
        }
    }

    /// A finish worker takes an attempt, or ends it.
    fn finish(&mut self, worker: usize) -> Done {
        let core = &self.life.core;
        let Some(finish) = self.life.finishes[worker].take() else {
            let next = core.dispatch.finishing.try_pop_if(|_| true);
            if let Some((_, call, pending)) = next.and_then(|next| finish::begin(core, next)) {
                let answers = self.answer();
                let began = clock::now();
                self.life.finishes[worker] = Some(Box::new(Finish {
                    call,
                    pending,
                    began,
                    answers,
                }));
            }
            return Ok(());
        };
        if !self.is_due(finish.answers) {
            self.life.finishes[worker] = Some(finish);
            return Ok(());
        }
        let Finish {
            mut call,
            pending,
            began,
            ..
        } = *finish;
        let (device, partition) = (call.device, call.attempt.partition);
        let slot = core.fleet.slot(device).unwrap();
        let job = Arc::clone(&call.attempt.job);
        let has_failed = Cell::new(false);
        let end = || {
            let proof = finish::prove(core, slot, &call, pending);
            has_failed.set(
                proof
                    .as_ref()
                    .is_err_and(|error| !matches!(error, Error::Stopped)),
            );
            call.attempt.spent += clock::since(began);
            finish::end(core, slot, call, proof)
        };
        let ended = core.guarded("finish worker", &job, end);
        if ended == Some(false) {
            self.life.finishes.remove(worker);
        }
        if has_failed.get() {
            self.failed_on.insert((job.number(), partition, device));
        }
        Ok(())
    }
}
