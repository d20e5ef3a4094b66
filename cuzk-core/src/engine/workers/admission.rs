//! How a worker comes by its next attempt: its turn, its circuit, its parameters, its
//! memory.
//!
//! Not a thread: the synthesis and the dedicated workers call it. The invariants: a
//! worker holds no attempt while it waits for one; an attempt begins only with the
//! memory that its circuit and its files of this moment need.

use std::sync::Arc;

use cuzk_filecoin::{CircuitId, WitnessContext, blank};
use cuzk_groth16::Circuit;
use cuzk_groth16::apart;
use cuzk_groth16::backend::Footprint;
use cuzk_groth16::params::LoadedParams;
use cuzk_scheduler::admission::{Lane, Turn};
use rayon::ThreadPool;

use crate::Error;
use crate::engine::assets::AssetKey;
use crate::engine::assets::cost::{Charge, KeyFiles};
use crate::engine::attempt::{AdmittedAttempt, Attempt};
use crate::engine::core::Core;
use crate::engine::route::FailedAt;
use crate::panics::catch_panic;
use crate::pipeline::Step;
#[cfg(test)]
use crate::planted::{Plant, is_planted};
use crate::timeline::{Stage, Wait};

/// Waits for the next attempt of a lane, and returns it with all that it needs; none once
/// the engine is closed and empty. Attempts that cannot begin are settled on the way.
pub(super) fn next_admitted(core: &Core, lane: Lane) -> Option<AdmittedAttempt> {
    loop {
        core.report_memory();
        let turn = core.dispatch.admission.next(lane)?;
        let admitted = take_turn(core, turn, lane);
        if admitted.is_some() {
            return admitted;
        }
    }
}

/// Returns the attempt whose turn it is with all that it needs. An attempt that cannot begin
/// is settled or waits again, and none is returned.
pub(super) fn take_turn(
    core: &Core,
    turn: Turn<Attempt, AssetKey>,
    lane: Lane,
) -> Option<AdmittedAttempt> {
    // The queue may have room for a job that waits in the journal.
    core.jobs.notify();
    let (Turn::Admitted { item, .. } | Turn::Impossible { item, .. }) = &turn;
    let job = Arc::clone(&item.job);
    core.guarded("admission", &job, || begin(core, turn, lane))?
}

fn begin(core: &Core, turn: Turn<Attempt, AssetKey>, lane: Lane) -> Option<AdmittedAttempt> {
    let (mut attempt, ticket, memory) = match turn {
        Turn::Admitted {
            item,
            ticket,
            memory,
            evicted,
        } => {
            evicted.iter().for_each(|key| core.evict(*key));
            (item, ticket, memory)
        }
        Turn::Impossible {
            item,
            ticket,
            over,
            held: _held,
        } => {
            let id = item.job.circuit();
            if core.assets.costs.uncharge_files(id) {
                core.requeue(lane, ticket, item);
            } else if core.outside.leave(&item) {
                let (job, partition) = (Arc::clone(&item.job), item.partition);
                core.requeue(lane, ticket, item);
                job.live().waits(partition, Stage::Elsewhere);
            } else {
                core.assets.costs.forget(id);
                core.settle(&item.job, item.partition, Err(over.into()));
            }
            return None;
        }
    };
    let (circuit, params, files) = load_assets(core, &mut attempt, lane)?;
    let footprint = match &attempt.charge {
        Charge::Proving(charged, footprint) if *charged == files => Arc::clone(footprint),
        // The files have come, gone or been replaced since the attempt was charged.
        Charge::Proving(..) | Charge::Reading => {
            learn(core, attempt.job.circuit(), &circuit, files);
            attempt.wait = Some(Wait::begin(Stage::MemoryWait));
            core.requeue(lane, ticket, attempt);
            return None;
        }
    };
    if !core.outside.may_begin(&attempt) {
        attempt.wait = Some(Wait::begin(Stage::QueueWait));
        core.requeue(lane, ticket, attempt);
        return None;
    }
    make_room(core, &footprint, &attempt, lane);
    Some(AdmittedAttempt {
        attempt,
        ticket,
        circuit,
        params,
        footprint,
        memory,
    })
}

/// Notes what partitions of a circuit need: from now on they are admitted with that.
pub(in crate::engine) fn learn(core: &Core, id: CircuitId, circuit: &Circuit, files: KeyFiles) {
    let on_devices = core.fleet.footprint(circuit, files.shapes());
    let kept_bytes = core.fleet.kept_bytes(circuit);
    let costs = &core.assets.costs;
    costs.learn((id, circuit), files, on_devices, kept_bytes);
}

/// Returns the circuit, the parameters and the files that an attempt is proved with. An
/// attempt that cannot have them is settled.
fn load_assets(
    core: &Core,
    attempt: &mut Attempt,
    lane: Lane,
) -> Option<(Arc<Circuit>, Arc<LoadedParams>, KeyFiles)> {
    let trace = attempt.end_wait(&core.timeline);
    let job = &attempt.job;
    if attempt.is_over() {
        return None;
    }
    let settle = |error| core.settle(job, attempt.partition, Err(error));
    let is_late = job.deadline_has_passed();
    #[cfg(test)]
    let is_late = is_late && !is_planted(Plant::BeginsLate);
    if is_late {
        settle(Error::DeadlinePassed);
        return None;
    }
    let checkpoint = core.dispatch.checkpoint(attempt);
    let load = || {
        let id = job.circuit();
        let circuit = trace.time(Stage::Circuit, || core.assets.circuit(id, &checkpoint))?;
        let (params, files) = trace.time(Stage::Params, || {
            let params = core.params(id, &circuit, &checkpoint)?;
            let pool = pool_of(core, lane);
            let files = core
                .assets
                .key_files(id, &circuit, &params, pool, &checkpoint)?;
            Ok::<_, Error>((params, files))
        })?;
        Ok((circuit, params, files))
    };
    // Loading is done once for all partitions, so it does not count as this one's time.
    catch_panic("load", load).map_err(settle).ok()
}

/// Returns threads that a lane's worker does not share with work that is paused for it.
pub(super) fn pool_of(core: &Core, lane: Lane) -> &ThreadPool {
    let dedicated = (lane != Lane::Common).then(|| core.fleet.dedicated_slot(lane));
    let worker = dedicated.and_then(|slot| core.fleet.dedicated(slot));
    worker.map_or(core.compute.synthesis_pool(), |worker| &worker.pool)
}

fn make_room(core: &Core, footprint: &Footprint, attempt: &Attempt, lane: Lane) {
    // Memory on its way out is freed by threads that give way to all others.
    let _urgent = core.dispatch.pause_for(lane);
    let own = &footprint.kept_blocks;
    core.make_room(own, &core.dispatch.checkpoint(attempt));
    core.report_memory();
}

/// Returns the attempt, if it may be proved. One whose last proof was rejected has its
/// statement checked first, on `pool`: a false statement ends the job, and a true one
/// means that the device failed. One that others have failed to prove is checked as well,
/// and goes on if its statement is true.
pub(super) fn check_rejected(
    core: &Core,
    mut admitted: AdmittedAttempt,
    pool: &ThreadPool,
) -> Option<AdmittedAttempt> {
    let rejected = admitted.attempt.rejected.take();
    if rejected.is_none() && !admitted.attempt.is_suspect() {
        return Some(admitted);
    }
    let checked = apart::install(pool, || false_statement(core, &admitted));
    let checked = checked.unwrap_or_else(|error| Some(error.into()));
    if checked.is_none() && rejected.is_none() {
        return Some(admitted);
    }
    let AdmittedAttempt {
        attempt,
        ticket,
        memory,
        ..
    } = admitted;
    match (checked, rejected) {
        (Some(error), _) => core.settle(&attempt.job, attempt.partition, Err(error)),
        (None, None) => {}
        (None, Some(rejected)) => {
            let at = FailedAt {
                is_checked: true,
                ..FailedAt::new(Step::Finish, rejected.device)
            };
            core.failed(at, attempt, ticket, rejected.error);
        }
    }
    drop(memory);
    None
}

/// Returns the error of a false statement, which names the first row that does not hold;
/// none if the statement is true, or cannot be checked.
fn false_statement(core: &Core, admitted: &AdmittedAttempt) -> Option<Error> {
    let AdmittedAttempt {
        attempt, circuit, ..
    } = admitted;
    let (statement, partition) = (attempt.job.input()?, attempt.partition);
    let memory = core.compute.buffers.array_memory();
    let context = WitnessContext {
        memory: &memory,
        ..core.compute.isa.into()
    };
    let witness = match statement
        .witness_in(partition, context)
        .map_err(Error::from)
    {
        // Without memory the statement cannot be checked, and the job ends with that.
        Err(error @ Error::NoMemory(_)) => return Some(error),
        witness => witness.ok()?,
    };
    let row = circuit.first_bad_row(&witness).ok()??;
    // At 32 GiB each row before the false one takes 0.3 µs (PoRep, SnapDeals) to 1.6 µs (WindowPoSt) of
    // one core of an AMD EPYC (family 25, model 17). So the last row takes up to minutes, and the end
    // of the job stops the search. Hardly any job gets here: a vanilla proof is verified when its
    // request is read.
    let checkpoint = core.dispatch.checkpoint(attempt);
    let part = blank::row_name_while(statement.circuit(), row, &checkpoint);
    Some(Error::Unsatisfied {
        partition,
        row,
        part: part.ok().flatten(),
    })
}
