//! Synthesis workers: from admission to the devices.
//!
//! The invariant: nothing that a stage does ends the thread.

use std::sync::Arc;

use cuzk_scheduler::admission::Lane;

use super::admission::{check_rejected, next_admitted};
use super::batch::sum_bits_together;
use crate::Error;
use crate::engine::attempt::{AdmittedAttempt, Attempt, SynthesizedAttempt};
use crate::engine::core::Core;
use crate::pipeline::{SynthesisResources, synthesize_partition};
use crate::timeline::{Stage, Wait};

/// Synthesizes one attempt after the other, until the engine is closed and empty.
pub(super) fn run(core: &Core) {
    while let Some(admitted) = next_admitted(core, Lane::Common) {
        let job = Arc::clone(&admitted.attempt.job);
        core.guarded("synthesis worker", &job, || {
            if let Some(ready) = take(core, admitted) {
                hand_over(core, ready);
            }
        });
    }
}

/// Synthesizes an attempt. One that fails, or has no device, is put elsewhere or settled.
pub(super) fn take(core: &Core, admitted: AdmittedAttempt) -> Option<SynthesizedAttempt> {
    let pool = core.compute.synthesis_pool();
    let mut admitted = check_rejected(core, admitted, pool)?;
    let attempt = &admitted.attempt;
    let view = core.fleet.view();
    if !view.has_device(attempt.is_critical(), &attempt.excluded_devices) {
        core.requeue_without_device(admitted.ticket, attempt);
        return None;
    }
    sum_bits_together(core, &mut admitted, pool);
    let attempt = &admitted.attempt;
    let evaluate = core.fleet.wants_evaluated();
    let checkpoint = core.dispatch.checkpoint(attempt);
    let critical = attempt.is_critical();
    let resources = core
        .compute
        .synthesis_resources(pool, critical, evaluate, checkpoint);
    synthesize(core, admitted, resources)
}

/// Synthesizes an attempt for a device. One that fails is settled.
pub(super) fn synthesize(
    core: &Core,
    admitted: AdmittedAttempt,
    resources: SynthesisResources<'_>,
) -> Option<SynthesizedAttempt> {
    let statement = admitted.attempt.job.input()?;
    let partition = admitted.partition(&*statement);
    let AdmittedAttempt {
        mut attempt,
        ticket,
        params,
        footprint,
        memory,
        ..
    } = admitted;
    let trace = attempt.end_wait(&core.timeline);
    attempt.quiet_at = core.dispatch.pause.quiet();
    let synthesized = attempt.spend(|_| synthesize_partition(partition, resources, trace));
    match synthesized {
        Ok(synthesized) => Some(SynthesizedAttempt {
            attempt: Attempt {
                synthesized_in: attempt.spent,
                ..attempt
            },
            ticket,
            params,
            synthesized,
            finish_bytes: footprint.finish_bytes,
            memory,
        }),
        Err(error) => {
            core.settle(&attempt.job, attempt.partition, Err(error));
            None
        }
    }
}

/// Queues an attempt for the devices.
pub(super) fn hand_over(core: &Core, mut ready: SynthesizedAttempt) {
    ready.attempt.wait = Some(Wait::begin(Stage::ReadyWait));
    let job = Arc::clone(&ready.attempt.job);
    // Nothing closes this queue while an attempt is on its way.
    if let Err(closed) = core.dispatch.push_ready(ready) {
        let partition = closed.0.attempt.partition;
        core.settle(&job, partition, Err(Error::ShuttingDown));
    }
    core.requeue_stranded();
    core.drop_if_ended(&job);
}
