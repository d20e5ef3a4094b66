//! The multiples maker: multiples of the parameters' points, made in the background.
//!
//! Not a stage: no partition waits for it. It has one thread, is paused for critical
//! work, and shares the cores with all other work for the half minute that it takes. The
//! invariants: its memory is charged before it is used; multiples that could not be made
//! are not tried again until another file is there; it ends at its next checkpoint when
//! the engine does, and leaves the file as it was.

use std::time::Instant;

use cuzk_filecoin::CircuitId;
use cuzk_groth16::apart;
use cuzk_groth16::params::{ParamsError, writing_bytes};
use cuzk_kernels::Context;
use cuzk_memory::Checkpoint;
use cuzk_scheduler::admission::Need;
use cuzk_scheduler::priority::Priority;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::Result;
use crate::engine::assets::{AssetKey, MultiplesQueue};
use crate::engine::core::Core;
use crate::engine::start::no_pool;
use crate::error::ErrorCode;
use crate::panics::catch_panic;
use crate::timeline::Stage;

/// What came of a circuit's multiples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Looked {
    /// They are as good as they get.
    Done,
    /// There is no memory at this moment.
    NoMemory,
}

/// Makes multiples for the circuits that are asked for, until the queue is closed.
pub(super) fn run(core: &Core) {
    let queue = &core.assets.multiples;
    while let Some(id) = queue.next() {
        end_look(queue, id, catch_panic("multiples", || look_at(core, id)));
    }
}

/// Takes the circuit in work out of the queue, or puts it behind the others if there is no
/// memory. An error is logged, unless the queue was closed, which stops the work.
pub(super) fn end_look(queue: &MultiplesQueue, id: CircuitId, looked: Result<Looked>) {
    match looked {
        Ok(Looked::NoMemory) => return queue.postpone(),
        Err(error) if !queue.is_closed() => tracing::warn!(
            circuit = %id,
            code = %ErrorCode::of(&error),
            %error,
            "the multiples of its parameters' points could not be made; proofs take longer \
             without them: take the kind out of srs.multiples for no further attempt, or make \
             them with `cuzk params prepare`"
        ),
        Ok(Looked::Done) | Err(_) => {}
    }
    queue.done();
}

/// Ends the maker at its next checkpoint.
pub(super) fn stop(core: &Core) {
    core.assets.multiples.close();
    core.dispatch.pause.wake();
}

/// Looks at a circuit's multiples once there is memory for making them.
pub(super) fn look_at(core: &Core, id: CircuitId) -> Result<Looked> {
    let Some(need) = need(core, id) else {
        return Ok(Looked::Done);
    };
    let queue = &core.assets.multiples;
    match core.dispatch.admission.check(Priority::Low, &need) {
        Ok(()) => queue.has_room(id),
        Err(over) if queue.has_no_room(id) => return Err(over.into()),
        Err(_) => return Ok(Looked::Done),
    }
    // In the background: a daemon that drains does not wait for it.
    let Some(_memory) = core.dispatch.admission.reserve(&need) else {
        return Ok(Looked::NoMemory);
    };
    // Memory that is kept for partitions gives way, as it does for them.
    let checkpoint = Checkpoint::new(queue.cancellation())
        .paused_by(&core.dispatch.pause)
        .counted_by(&core.dispatch.heartbeat);
    core.make_room(&[], &checkpoint);
    renew(core, id, &checkpoint)?;
    Ok(Looked::Done)
}

/// Makes the multiples if they are missing or outdated, with the memory that was charged.
fn renew(core: &Core, id: CircuitId, checkpoint: &Checkpoint<'_>) -> Result<()> {
    let circuit = core.assets.circuit(id, checkpoint)?;
    let params = core.params(id, &circuit, checkpoint)?;
    let context = Context {
        isa: core.compute.isa,
        checkpoint,
        memory: &*core.compute.buffers,
    };
    let (params, threads) = (params.mapped(), core.config.synthesis.threads);
    let started = Instant::now();
    let wanted = core.assets.wants_multiples(id);
    let renew = || params.renew_multiples(&circuit, context, threads, wanted);
    let pool = one_thread()?;
    let trace = core.timeline.background();
    match trace.time(Stage::Multiples, || apart::install(&pool, renew))? {
        Ok(true) => tracing::info!(
            circuit = %id,
            elapsed_s = started.elapsed().as_secs_f64(),
            "multiples of the parameters' points were made; MSMs use them from now on"
        ),
        Ok(false) | Err(ParamsError::Stopped) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

/// Returns the memory for the work, and for the circuit with its files as they are now;
/// none if the circuit was evicted meanwhile.
fn need(core: &Core, id: CircuitId) -> Option<Need<AssetKey>> {
    let circuit = core.assets.present_circuit(id)?;
    Some(Need {
        own_bytes: writing_bytes(&circuit, core.compute.isa).unwrap_or(0),
        shared: Some(core.assets.costs.shared(id)?),
    })
}

fn one_thread() -> Result<ThreadPool> {
    let builder = ThreadPoolBuilder::new().num_threads(1);
    let named = builder.thread_name(|_| "cuzk-multiples-0".to_owned());
    named.build().map_err(no_pool(1))
}
