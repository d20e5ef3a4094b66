//! Finish workers: the rest of an attempt after its device region, and its end.
//!
//! The invariant: the memory of an attempt is free before anyone is told of its proof.

use std::sync::Arc;
use std::time::Duration;

use cuzk_groth16::backend::Pending;
use cuzk_groth16::params::LoadedParams;
use cuzk_groth16::verify::VerifiedProof;
use cuzk_scheduler::admission::{Lane, Reservation, Ticket};
use cuzk_scheduler::clock;

use super::device::answered;
use crate::engine::assets::AssetKey;
use crate::engine::attempt::{Attempt, FinishingAttempt};
use crate::engine::core::Core;
use crate::engine::fleet::DeviceSlot;
use crate::engine::fleet::watchdog::{CallKey, CallPart};
use crate::engine::reverify::ProofKey;
use crate::engine::route::FailedAt;
use crate::pipeline::{ProvingResources, Step, prove_finish};
#[cfg(test)]
use crate::planted::{Plant, is_planted};
use crate::{Error, Result};

/// Finishes attempts, until the queue behind the devices is closed and empty. A worker
/// whose device did not answer in time has been replaced, and ends when the device does
/// answer.
pub(super) fn run(core: &Core) {
    let _here = core.fleet.watchdog.enter();
    while let Some(finishing) = core.dispatch.finishing.pop() {
        let job = Arc::clone(&finishing.attempt.job);
        let finish = || finish(core, finishing);
        if core.guarded("finish worker", &job, finish) == Some(false) {
            return;
        }
        core.report_memory();
    }
}

/// An attempt whose finish was begun, and on which the watchdog looks.
pub(super) struct FinishCall {
    pub(super) attempt: Attempt,
    ticket: Ticket,
    pub(super) device: usize,
    params: Arc<LoadedParams>,
    on_device: Duration,
    pub(super) key: CallKey,
}

/// Finishes an attempt. Returns false if its device was given up meanwhile.
fn finish(core: &Core, finishing: FinishingAttempt) -> bool {
    let Some((slot, mut call, pending)) = begin(core, finishing) else {
        return true;
    };
    let started = clock::now();
    let proof = prove(core, slot, &call, pending);
    call.attempt.spent += clock::since(started);
    end(core, slot, call, proof)
}

/// Begins to finish an attempt, on the device of the returned slot. One without a slot is
/// settled.
pub(super) fn begin(
    core: &Core,
    finishing: FinishingAttempt,
) -> Option<(&DeviceSlot, FinishCall, Box<dyn Pending>)> {
    let FinishingAttempt {
        mut attempt,
        ticket,
        device,
        params,
        pending,
        on_device,
        memory,
    } = finishing;
    attempt.end_wait(&core.timeline);
    let Some(slot) = core.fleet.slot(device) else {
        core.settle(&attempt.job, attempt.partition, Err(no_threads()));
        return None;
    };
    let call = slot.call(device, CallPart::Finish);
    let key = core.fleet.watchdog.begin(call, &attempt, ticket, memory);
    let call = FinishCall {
        attempt,
        ticket,
        device,
        params,
        on_device,
        key,
    };
    Some((slot, call, pending))
}

/// Has the device finish an attempt, and verifies the proof.
pub(super) fn prove(
    core: &Core,
    slot: &DeviceSlot,
    call: &FinishCall,
    pending: Box<dyn Pending>,
) -> Result<VerifiedProof> {
    let attempt = &call.attempt;
    let proving = ProvingResources {
        backend: &slot.device.backend,
        device: call.device,
        key: call.params.prepared_key(),
        pool: core.compute.auxiliary_pool(attempt.is_critical()),
    };
    let trace = attempt.trace(&core.timeline).on_device(call.device);
    // If the job has ended, `pending` is dropped here: that calls the device, too.
    let statement = attempt.job.input().ok_or(Error::Stopped)?;
    prove_finish(pending, &*statement, attempt.partition, proving, trace)
}

/// Takes the proof of an attempt whose finish was begun. Returns false if its device was
/// given up meanwhile.
pub(super) fn end(
    core: &Core,
    slot: &DeviceSlot,
    call: FinishCall,
    proof: Result<VerifiedProof>,
) -> bool {
    let FinishCall {
        attempt,
        ticket,
        device,
        params,
        on_device,
        key,
    } = call;
    let Some((proof, memory)) = answered(core, slot, key, proof) else {
        return false;
    };
    match proof {
        Ok(proof) => settle_proof(core, attempt, (device, on_device), (proof, &params), memory),
        Err(error) => {
            core.failed(FailedAt::new(Step::Finish, device), attempt, ticket, error);
            drop(memory);
        }
    }
    true
}

/// Notes what an attempt took, gives its memory back, and gives its job the proof.
pub(super) fn settle_proof(
    core: &Core,
    mut attempt: Attempt,
    (device, on_device): (usize, Duration),
    proof: (VerifiedProof, &Arc<LoadedParams>),
    memory: Reservation<AssetKey>,
) {
    let view = core.fleet.view();
    // What was proved by the retry worker says nothing about the devices.
    if device != view.dedicated(Lane::Retry) {
        let whole_way = device == view.dedicated(Lane::Critical);
        let quiet = core.dispatch.pause.quiet();
        let deadlines = &core.dispatch.deadlines;
        deadlines.record(&attempt, quiet, on_device, whole_way);
    }
    core.proved(device, &mut attempt);
    // The memory is free before anyone is told. The workers stay meanwhile, because the
    // job may have to go on when this was the last attempt of the engine.
    let keep_open = core.dispatch.admission.keep_open();
    #[cfg(test)]
    let memory = if is_planted(Plant::LeaksMemory) {
        std::mem::forget(memory);
        None
    } else {
        Some(memory)
    };
    drop(memory);
    let (proof, params) = proof;
    let proof = (proof, ProofKey::OfParams(Arc::clone(params)));
    core.settle(&attempt.job, attempt.partition, Ok(proof));
    drop(keep_open);
}

/// The error of an attempt whose worker got no threads.
pub(super) fn no_threads() -> Error {
    Error::Internal {
        stage: "threads",
        problem: "the system gave none for a dedicated worker".to_owned(),
    }
}
