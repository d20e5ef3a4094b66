//! The bits of an attempt that has its turn, added up together with those of attempts of its
//! circuit that still wait.
//!
//! Not their proofs: each attempt waits for its own turn again, and takes its sums along. So
//! a batch holds no memory but that of the attempt that has its turn. The invariants:
//!
//! * Nothing waits for a batch to become larger: it has the attempts that wait already.
//! * Critical attempts are in no batch. An urgent one is only with those of its own job.
//! * A batch is given up when an attempt comes that has its turn before it.
//! * An attempt that fails or is cancelled in a batch changes nothing for the others. Without
//!   sums an attempt is proved all the same.
//! * Every attempt that was taken out of the queue comes back, also if a stage panics.

use std::iter::once;
use std::sync::Arc;
use std::time::{Duration, Instant};

use blstrs::Scalar;
use cuzk_groth16::Circuit;
use cuzk_groth16::backend::{Backend, Batch, BitSums, Footprint, Randomness};
use cuzk_groth16::params::LoadedParams;
use cuzk_memory::{Cancellation, Checkpoint};
use cuzk_pce::PackedWitness;
use cuzk_scheduler::admission::{Lane, Ticket};
use rayon::ThreadPool;

use crate::engine::attempt::{AdmittedAttempt, Attempt};
use crate::engine::core::Core;
use crate::engine::dispatch::{is_overtaken, take_waiting};
use crate::error::ErrorCode;
use crate::pipeline::{Partition, sum_bits, witness_of_partition};
use crate::timeline::{Stage, Wait};
use crate::{Error, Result};

/// Adds up the bits of an attempt and of waiting ones in one pass, if there are any and if
/// that pays.
pub(super) fn sum_bits_together(core: &Core, admitted: &mut AdmittedAttempt, pool: &ThreadPool) {
    let Some((device, backend)) = core.fleet.sums_bits() else {
        return;
    };
    let members_max = members_max(core, backend, admitted);
    let Some(companions_max) = members_max.checked_sub(1).filter(|max| *max > 0) else {
        return;
    };
    let mut companions = Companions::take(core, &admitted.attempt, companions_max);
    if companions.waiting.is_empty() {
        return;
    }
    let members = companions.waiting.len() + 1;
    let footprint = backend.batch_footprint(&admitted.circuit, members);
    make_room(core, admitted, footprint.as_ref());
    let AdmittedAttempt {
        attempt,
        circuit,
        params,
        ..
    } = admitted;
    let waiting = companions.waiting.iter_mut();
    let attempts = once(attempt).chain(waiting.map(|(attempt, _)| attempt));
    let pass = Pass {
        core,
        circuit,
        params,
        pool,
    };
    if let Some(written) = pass.write_witnesses(attempts.collect()) {
        pass.sum(written, (device, backend));
    }
    make_room(core, admitted, Some(&*admitted.footprint));
}

/// Has the pool of blocks give up those that are of no use for work with this footprint. The
/// blocks of a pass are of no use for the vectors over the domain, and the other way round.
fn make_room(core: &Core, admitted: &AdmittedAttempt, footprint: Option<&Footprint>) {
    let own = footprint.map_or(&[][..], |footprint| &footprint.kept_blocks);
    core.make_room(own, &core.dispatch.checkpoint(&admitted.attempt));
}

/// Returns the most attempts of a batch that needs no more memory than its first attempt
/// has; 1 if a batch does not pay.
fn members_max(core: &Core, backend: &Arc<dyn Backend>, admitted: &AdmittedAttempt) -> usize {
    let attempt = &admitted.attempt;
    let is_alone =
        attempt.is_critical() || attempt.bit_sums.is_some() || !attempt.excluded_devices.is_empty();
    if is_alone {
        return 1;
    }
    let bytes = admitted.memory.own_bytes();
    let fits = |members: &usize| {
        let footprint = backend.batch_footprint(&admitted.circuit, *members);
        footprint.is_some_and(|footprint| footprint.peak_bytes <= bytes)
    };
    let limit = core.config.pipeline.max_batch;
    (2..=limit).rev().find(fits).unwrap_or(1)
}

/// Attempts that were taken out of the queue. They are put back when this is dropped.
struct Companions<'a> {
    core: &'a Core,
    waiting: Vec<(Attempt, Ticket)>,
}

impl<'a> Companions<'a> {
    /// Takes at most `max` attempts that can be in a batch with `first`.
    fn take(core: &'a Core, first: &Attempt, max: usize) -> Self {
        let job = &first.job;
        let joins = |other: &Attempt| {
            let is_same_job = other.job.number() == job.number();
            let is_alike = other.job.circuit() == job.circuit()
                && other.job.placed_as() == job.placed_as()
                && (is_same_job || job.is_deferrable());
            let is_fresh = other.excluded_devices.is_empty()
                && other.rejected.is_none()
                && other.bit_sums.is_none();
            is_alike && is_fresh && !other.is_elsewhere() && !other.is_suspect() && !other.is_over()
        };
        let waiting = take_waiting(&core.dispatch, max, joins);
        Self { core, waiting }
    }
}

impl Drop for Companions<'_> {
    fn drop(&mut self) {
        let core = self.core;
        for (mut attempt, ticket) in self.waiting.drain(..) {
            attempt.wait = Some(Wait::begin(Stage::QueueWait));
            // The priority of its job may have changed meanwhile.
            let (job, patience) = (&attempt.job, core.config.jobs.patience);
            let ticket = ticket.moved(job.placed_as(), job.accepted(), patience);
            core.requeue(Lane::Common, ticket, attempt);
        }
    }
}

/// A pass over the points for the attempts of a batch, with the things that they share.
struct Pass<'a> {
    core: &'a Core,
    circuit: &'a Arc<Circuit>,
    params: &'a Arc<LoadedParams>,
    pool: &'a ThreadPool,
}

/// Attempts with their witnesses, in the same order.
struct Written<'a> {
    attempts: Vec<&'a mut Attempt>,
    witnesses: Vec<PackedWitness<Scalar>>,
}

impl Pass<'_> {
    /// Writes the witnesses of the attempts. Leaves out those whose witness cannot be written:
    /// they fail when they have their turn. Returns none if fewer than two are left, or if
    /// more urgent work has come.
    fn write_witnesses<'a>(&self, attempts: Vec<&'a mut Attempt>) -> Option<Written<'a>> {
        let mut written = Written {
            attempts: Vec::with_capacity(attempts.len()),
            witnesses: Vec::with_capacity(attempts.len()),
        };
        let first = Arc::clone(&attempts.first()?.job);
        for attempt in attempts {
            if is_overtaken(&self.core.dispatch, &first) {
                return None;
            }
            if let Ok(witness) = self.witness(attempt) {
                written.attempts.push(attempt);
                written.witnesses.push(witness);
            }
        }
        (written.witnesses.len() > 1).then_some(written)
    }

    fn witness(&self, attempt: &mut Attempt) -> Result<PackedWitness<Scalar>> {
        let core = self.core;
        let trace = attempt.end_wait(&core.timeline);
        if attempt.is_over() {
            return Err(Error::Stopped);
        }
        let statement = attempt.job.input().ok_or(Error::Stopped)?;
        let partition = Partition {
            statement: &*statement,
            index: attempt.partition,
            circuit: Arc::clone(self.circuit),
            params: Arc::clone(self.params.mapped()),
            bit_sums: None,
            randomness: Randomness::from_os(),
        };
        let checkpoint = core.dispatch.checkpoint(attempt);
        let resources = core
            .compute
            .synthesis_resources(self.pool, false, false, checkpoint);
        attempt.spend(|_| witness_of_partition(&partition, &resources, trace))
    }

    /// Gives each attempt the sums of its bits. If they cannot be made, each is proved without.
    fn sum(&self, written: Written<'_>, (device, backend): (usize, &Arc<dyn Backend>)) {
        let core = self.core;
        let Written {
            attempts,
            witnesses,
        } = written;
        let trace = |attempt: &Attempt| {
            let trace = core
                .timeline
                .trace(attempt.job.number(), Some(attempt.partition));
            trace.on_device(device)
        };
        let Some((first, others)) = attempts.split_first() else {
            return;
        };
        let others = others.iter();
        let shown: Vec<_> = others.map(|a| trace(a).shows(Stage::Columns)).collect();
        let (began, quiet) = (Instant::now(), core.dispatch.pause.quiet());
        let batch = Batch {
            circuit: self.circuit,
            params: self.params.mapped(),
            witnesses: &witnesses,
            with_b_g1: false,
            buffers: &core.compute.buffers,
            checkpoint: &self.checkpoint(&attempts),
        };
        let sums = sum_bits(backend, &batch, first.partition, trace(first));
        drop(shown);
        let was_quiet = quiet.is_some() && quiet == core.dispatch.pause.quiet();
        let took = began.elapsed() / u32::try_from(attempts.len()).unwrap_or(u32::MAX);
        give(
            attempts,
            sums,
            if was_quiet { took } else { Duration::ZERO },
        );
    }

    /// Returns a checkpoint that stops the pass when nobody needs it any more.
    fn checkpoint(&self, attempts: &[&mut Attempt]) -> Checkpoint<'static> {
        let jobs = attempts
            .iter()
            .map(|attempt| attempt.job.cancellation().clone());
        let jobs: Vec<_> = jobs.collect();
        let all_ended = move || jobs.iter().all(Cancellation::is_cancelled);
        Checkpoint::asking(all_ended)
            .counted_by(&self.core.dispatch.heartbeat)
            .paused_by(&self.core.dispatch.pause)
    }
}

/// Gives attempts their sums, each with its share of the time of the pass.
fn give(attempts: Vec<&mut Attempt>, sums: Result<Vec<BitSums>>, share: Duration) {
    match sums {
        Ok(sums) => {
            for (attempt, sums) in attempts.into_iter().zip(sums) {
                attempt.bit_sums = Some(sums);
                attempt.spent += share;
            }
        }
        Err(Error::Stopped) => {}
        Err(error) => tracing::warn!(
            code = %ErrorCode::of(&error),
            %error,
            partitions = attempts.len(),
            "the bits of several partitions were not added up together; each is proved alone"
        ),
    }
}
