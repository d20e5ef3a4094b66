//! Device workers: one device's region, of one attempt after the other.
//!
//! The invariants: a call of a device is watched; of an attempt whose device was given
//! up this thread decides nothing.

use std::sync::Arc;

use cuzk_groth16::backend::{Pending, Synthesized};
use cuzk_groth16::params::LoadedParams;
use cuzk_scheduler::admission::{Reservation, Ticket};

use crate::engine::assets::AssetKey;
use crate::engine::attempt::{Attempt, FinishingAttempt, SynthesizedAttempt};
use crate::engine::core::Core;
use crate::engine::fleet::watchdog::{CallKey, CallPart};
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
    claim_ready(core, device, |takes| core.dispatch.ready.pop_if(takes))
}

/// Returns the next attempt that the device may prove, which `pop` takes out of the queue
/// before the devices.
pub(super) fn claim_ready(
    core: &Core,
    device: usize,
    pop: impl FnOnce(&mut dyn FnMut(&SynthesizedAttempt) -> bool) -> Option<SynthesizedAttempt>,
) -> Option<SynthesizedAttempt> {
    let mut trial = None;
    let mut ready = pop(&mut |ready| {
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

/// A device region that was begun, and on which the watchdog looks.
pub(super) struct StartCall {
    pub(super) attempt: Attempt,
    ticket: Ticket,
    params: Arc<LoadedParams>,
    finish_bytes: u64,
    pub(super) key: CallKey,
}

/// Runs the device region of an attempt. One that fails is put elsewhere, or settled.
pub(super) fn start(
    core: &Core,
    at: (usize, &DeviceSlot),
    ready: SynthesizedAttempt,
) -> Option<FinishingAttempt> {
    let (device, slot) = at;
    let (mut call, synthesized) = begin(core, at, ready)?;
    let tally = DeviceTally::default();
    let trace = call.attempt.trace(&core.timeline);
    let trace = trace.on_device(device).tallied(&tally);
    // A GPU tells the times of its region only afterwards.
    let is_gpu = !slot.device.backend.is_this_cpu();
    let shown = is_gpu.then(|| trace.shows(Stage::Device));
    let backend = &slot.device.backend;
    let started = call
        .attempt
        .spend(|attempt| prove_start(backend, synthesized, attempt.partition, trace));
    drop(shown);
    end(core, at, call, started, &tally)
}

/// Begins the device region of an attempt; none if nobody needs it any more.
pub(super) fn begin(
    core: &Core,
    (device, slot): (usize, &DeviceSlot),
    ready: SynthesizedAttempt,
) -> Option<(StartCall, Synthesized)> {
    let SynthesizedAttempt {
        mut attempt,
        ticket,
        params,
        synthesized,
        finish_bytes,
        memory,
    } = ready;
    attempt.end_wait(&core.timeline);
    if attempt.is_over() {
        return None;
    }
    let call = slot.call(device, CallPart::Start);
    let key = core.fleet.watchdog.begin(call, &attempt, ticket, memory);
    let call = StartCall {
        attempt,
        ticket,
        params,
        finish_bytes,
        key,
    };
    Some((call, synthesized))
}

/// Takes the answer of a device whose region was begun. An attempt that failed is put
/// elsewhere, or settled.
pub(super) fn end(
    core: &Core,
    (device, slot): (usize, &DeviceSlot),
    call: StartCall,
    started: Result<Box<dyn Pending>>,
    tally: &DeviceTally,
) -> Option<FinishingAttempt> {
    let StartCall {
        mut attempt,
        ticket,
        params,
        finish_bytes,
        key,
    } = call;
    let answered = answered(core, slot, key, started);
    attempt.spent = attempt.spent.saturating_sub(tally.waited());
    // The device made something for parameters that were replaced meanwhile.
    if !core.assets.are_current(attempt.job.circuit(), &params) {
        slot.device.backend.evict_params(params.mapped());
    }
    let (pending, mut memory) = answered?;
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

/// Takes the answer of a device. Returns it with the attempt's memory; none if the device
/// was given up meanwhile.
pub(super) fn answered<T>(
    core: &Core,
    slot: &DeviceSlot,
    key: CallKey,
    answer: T,
) -> Option<(T, Reservation<AssetKey>)> {
    let answered = core.fleet.watchdog.answered(key, answer);
    if answered.is_none() {
        slot.health.answered();
    }
    answered
}

/// Queues an attempt for the finish workers.
pub(super) fn hand_over(core: &Core, mut finishing: FinishingAttempt) {
    finishing.attempt.wait = Some(Wait::begin(Stage::FinishWait));
    if let Err(closed) = core.dispatch.push_finishing(finishing) {
        let attempt = &closed.0.attempt;
        core.settle(&attempt.job, attempt.partition, Err(Error::ShuttingDown));
    }
}
