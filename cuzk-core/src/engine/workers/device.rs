//! Device workers: one device's region, of one attempt after the other.
//!
//! The invariants: a call of a device is watched; of an attempt whose device was given
//! up this thread decides nothing.

use std::sync::Arc;

use cuzk_filecoin::CircuitId;
use cuzk_scheduler::admission::{Reservation, Ticket};

use crate::engine::attempt::{Attempt, FinishingAttempt, SynthesizedAttempt};
use crate::engine::core::Core;
use crate::engine::fleet::watchdog::{CallPart, DeviceCall};
use crate::engine::fleet::{Claim, DeviceSlot};
use crate::engine::route::FailedAt;
use crate::pipeline::{Step, prove_start};
use crate::timeline::{DeviceTally, Stage, Wait};
use crate::{Error, Result};

/// Starts attempts on a device, until the queue before the devices is closed and empty.
pub(super) fn run(core: &Core, device: usize) {
    let _here = core.fleet.watchdog.enter();
    let Some(slot) = core.fleet.slot(device) else {
        return;
    };
    while let Some(ready) = next_ready(core, device) {
        let job = Arc::clone(&ready.attempt.job);
        core.guarded("device worker", &job, || {
            if let Some(finishing) = start(core, (device, slot), ready) {
                hand_over(core, finishing);
            }
        });
    }
}

/// Waits for the next attempt that the device may prove.
fn next_ready(core: &Core, device: usize) -> Option<SynthesizedAttempt> {
    core.report_memory();
    let mut trial = None;
    let mut ready = core.dispatch.pop_ready(|ready| {
        match core.fleet.claim(device, &ready.attempt) {
            Claim::No => return false,
            Claim::Yes => {}
            Claim::Trial(given) => trial = Some(given),
        }
        true
    })?;
    if trial.is_some() {
        tracing::info!(device, "the device is on probation, with one partition");
        ready.attempt.trial = trial;
        // The other attempts do not wait for the result of the probation.
        core.requeue_stranded();
    }
    Some(ready)
}

/// Runs the device region of an attempt. One that fails is put elsewhere, or settled.
fn start(
    core: &Core,
    (device, slot): (usize, &DeviceSlot),
    ready: SynthesizedAttempt,
) -> Option<FinishingAttempt> {
    let SynthesizedAttempt {
        mut attempt,
        ticket,
        params,
        synthesized,
        finish_bytes,
        memory,
    } = ready;
    let tally = DeviceTally::default();
    let trace = attempt.end_wait(&core.timeline);
    let trace = trace.on_device(device).tallied(&tally);
    if attempt.is_over() {
        return None;
    }
    let call = slot.call(device, CallPart::Start);
    // A GPU tells the times of its region only afterwards.
    let is_gpu = !slot.device.backend.is_this_cpu();
    let shown = is_gpu.then(|| trace.shows(Stage::Device));
    let started = watched(
        core,
        (slot, call),
        &mut attempt,
        ticket,
        memory,
        |attempt| prove_start(&slot.device.backend, synthesized, attempt.partition, trace),
    );
    drop(shown);
    attempt.spent = attempt.spent.saturating_sub(tally.waited());
    // The device made something for parameters that were replaced meanwhile.
    if !core.assets.are_current(attempt.job.circuit(), &params) {
        slot.device.backend.evict_params(params.mapped());
    }
    let (pending, mut memory) = started?;
    // The vectors are free, whether it failed or not.
    memory.shrink_to(finish_bytes);
    match pending {
        Ok(pending) => Some(FinishingAttempt {
            on_device: tally.busy(),
            attempt,
            ticket,
            device,
            params,
            pending,
            memory,
        }),
        Err(error) => {
            core.failed(FailedAt::new(Step::Start, device), attempt, ticket, error);
            drop(memory);
            None
        }
    }
}

/// Has a device do `work` on an attempt, with the attempt's memory. Returns the result and
/// the memory; none if the device was given up meanwhile.
pub(super) fn watched<T>(
    core: &Core,
    (slot, call): (&DeviceSlot, DeviceCall),
    attempt: &mut Attempt,
    ticket: Ticket,
    memory: Reservation<CircuitId>,
    work: impl FnOnce(&Attempt) -> Result<T>,
) -> Option<(Result<T>, Reservation<CircuitId>)> {
    let watchdog = &core.fleet.watchdog;
    let key = watchdog.begin(call, attempt, ticket, memory);
    let done = attempt.spend(work);
    let answered = watchdog.answered(key, done);
    if answered.is_none() {
        slot.health.answered();
    }
    answered
}

/// Queues an attempt for the finish workers.
fn hand_over(core: &Core, mut finishing: FinishingAttempt) {
    finishing.attempt.wait = Some(Wait::begin(Stage::FinishWait));
    if let Err(closed) = core.dispatch.push_finishing(finishing) {
        let attempt = &closed.0.attempt;
        core.settle(&attempt.job, attempt.partition, Err(Error::ShuttingDown));
    }
}
