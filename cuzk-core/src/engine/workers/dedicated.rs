//! Dedicated workers: one for critical work and one for retries.
//!
//! Each takes an attempt all the way on the CPU, with threads, lock and memory of its
//! own. Where the devices are not this CPU, the critical worker only synthesizes, and
//! brings the attempt to a device. The invariant: while the critical worker is at work,
//! everything else on the cores is paused.

use std::sync::Arc;

use cuzk_scheduler::admission::Lane;

use super::admission::{check_rejected, next_admitted};
use super::finish::{no_threads, settle_proof};
use super::synthesis::{hand_over, synthesize};
use crate::engine::attempt::AdmittedAttempt;
use crate::engine::core::Core;
use crate::engine::fleet::DedicatedWorker;
use crate::engine::route::FailedAt;
use crate::pipeline::{ProvingResources, StepError, SynthesisResources, prove_partition};
use crate::timeline::DeviceTally;

/// Proves the attempts of a lane, until the engine is closed and empty.
pub(super) fn run(core: &Core, lane: Lane) {
    while let Some(admitted) = next_admitted(core, lane) {
        let job = Arc::clone(&admitted.attempt.job);
        core.guarded("dedicated worker", &job, || take(core, lane, admitted));
    }
}

/// Takes an attempt all the way, or to the devices.
pub(super) fn take(core: &Core, lane: Lane, admitted: AdmittedAttempt) {
    let slot = core.fleet.dedicated_slot(lane);
    let Some(worker) = core.fleet.dedicated(slot) else {
        let attempt = &admitted.attempt;
        core.settle(&attempt.job, attempt.partition, Err(no_threads()));
        return;
    };
    let _urgent = core.dispatch.pause_for(lane);
    let Some(admitted) = check_rejected(core, admitted, &worker.pool) else {
        return;
    };
    let attempt = &admitted.attempt;
    let critical = attempt.is_critical();
    let view = core.fleet.view();
    let to_device = critical && view.takes_critical(&attempt.excluded_devices);
    let evaluate = !to_device || core.fleet.wants_evaluated();
    let checkpoint = core.dispatch.checkpoint(attempt);
    let resources = core
        .compute
        .synthesis_resources(&worker.pool, critical, evaluate, checkpoint);
    if !to_device {
        prove(core, (slot, worker), admitted, resources);
    } else if let Some(ready) = synthesize(core, admitted, resources) {
        hand_over(core, ready);
    }
}

/// Proves an attempt all the way. The watchdog need not see the calls, since this CPU
/// does not stop answering alone.
fn prove(
    core: &Core,
    (slot, worker): (usize, &DedicatedWorker),
    admitted: AdmittedAttempt,
    synthesis: SynthesisResources<'_>,
) {
    let Some(statement) = admitted.attempt.job.input() else {
        return;
    };
    let partition = admitted.partition(&*statement);
    let AdmittedAttempt {
        mut attempt,
        ticket,
        params,
        footprint,
        mut memory,
        ..
    } = admitted;
    let proving = ProvingResources {
        backend: &worker.slot.device.backend,
        device: slot,
        key: params.prepared_key(),
        pool: core.compute.auxiliary_pool(attempt.is_critical()),
    };
    let tally = DeviceTally::default();
    let trace = attempt.end_wait(&core.timeline).tallied(&tally);
    attempt.quiet_at = core.dispatch.pause.quiet();
    let region_over = || memory.shrink_to(footprint.finish_bytes);
    let proved =
        attempt.spend(|_| prove_partition(partition, synthesis, proving, region_over, trace));
    attempt.spent = attempt.spent.saturating_sub(tally.waited());
    match proved {
        Ok(proof) => {
            let at = (slot, tally.busy());
            settle_proof(core, attempt, at, (proof, &params), memory);
        }
        Err(StepError { step, error }) => {
            core.failed(FailedAt::new(step, slot), attempt, ticket, *error);
            drop(memory);
        }
    }
}
