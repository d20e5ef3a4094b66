//! Circuits and parameters that are loaded, and let go of, because an operator says so.
//!
//! Not the way of a partition, which loads what it needs by itself. The invariants: what
//! is loaded here is charged like a partition's, and idle afterwards; nothing that is in
//! use is let go of.

use std::thread;
use std::time::{Duration, Instant};

use cuzk_filecoin::CircuitId;
use cuzk_groth16::backend::footprint::READING_BYTES;
use cuzk_memory::Checkpoint;
use cuzk_scheduler::admission::{LetGo, Need, Reservation};
use cuzk_scheduler::priority::Priority;

use super::assets::AssetKey;
use super::core::Core;
use super::workers::learn;
use crate::panics::catch_panic;
use crate::{Error, Result};

/// The time between two requests for memory that is not free.
const MEMORY_POLL: Duration = Duration::from_millis(20);

/// A circuit that was loaded with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preloaded {
    /// True if both were loaded before.
    pub already_loaded: bool,
    /// The time that it took.
    pub duration: Duration,
}

/// A circuit that was let go of with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EvictedAssets {
    /// True if one of them was loaded.
    pub was_loaded: bool,
    /// The bytes that they were charged with.
    pub freed_bytes: u64,
}

pub(super) fn preload(core: &Core, id: CircuitId) -> Result<Preloaded> {
    let started = Instant::now();
    let done = |already_loaded| Preloaded {
        already_loaded,
        duration: started.elapsed(),
    };
    core.assets.check_present(id)?;
    let is_charged = || {
        let things = core.dispatch.admission.shared_things();
        things.iter().any(|thing| thing.key == id.into())
    };
    let is_loaded =
        || core.assets.present_circuit(id).is_some() && core.assets.loaded_params(id).is_some();
    if is_charged() && is_loaded() {
        return Ok(done(true));
    }
    catch_panic("preload", || load(core, id))?;
    Ok(done(false))
}

/// Loads the assets, then charges them as all partitions of the circuit do together.
fn load(core: &Core, id: CircuitId) -> Result<()> {
    let checkpoint = Checkpoint::never()
        .paused_by(&core.dispatch.pause)
        .counted_by(&core.dispatch.heartbeat);
    let reading = reserve(core, &Need::own(READING_BYTES), &checkpoint)?;
    let circuit = core.assets.circuit(id, &checkpoint)?;
    let params = core.params(id, &circuit, &checkpoint)?;
    let pool = core.compute.synthesis_pool();
    let assets = &core.assets;
    let files = assets.key_files(id, &circuit, &params, pool, &checkpoint)?;
    learn(core, id, &circuit, files);
    drop(reading);
    drop((circuit, params));
    let need = Need {
        own_bytes: 0,
        shared: core.assets.costs.shared(id),
    };
    match reserve(core, &need, &checkpoint) {
        Ok(charged) => {
            drop(charged);
            core.report_memory();
            Ok(())
        }
        Err(error) => {
            core.evict(id.into());
            Err(error)
        }
    }
}

/// Waits for memory until `checkpoint` is cancelled, and evicts idle assets for it. Partitions
/// give memory back, so the caller must be no thread that they need: see
/// [`Compute::check_caller`](super::compute::Compute::check_caller).
pub(super) fn reserve(
    core: &Core,
    need: &Need<AssetKey>,
    checkpoint: &Checkpoint<'_>,
) -> Result<Reservation<AssetKey>> {
    loop {
        if checkpoint.is_cancelled() {
            return Err(Error::Cancelled);
        }
        if core.dispatch.admission.is_closed() {
            return Err(Error::ShuttingDown);
        }
        core.dispatch.admission.check(Priority::Normal, need)?;
        if let Some((memory, evicted)) = core.dispatch.admission.reserve_evicting(need) {
            evicted.iter().for_each(|key| core.evict(*key));
            return Ok(memory);
        }
        // Partitions run, and one of them gives memory back when it ends.
        thread::sleep(MEMORY_POLL);
    }
}

pub(super) fn evict(core: &Core, id: CircuitId) -> Result<EvictedAssets> {
    let is_loaded = core.assets.present_circuit(id).is_some();
    let is_loaded = is_loaded || core.assets.loaded_params(id).is_some();
    let freed_bytes = match core.dispatch.admission.let_go(&id.into()) {
        LetGo::InUse(users) => {
            return Err(Error::InUse {
                circuit: id.to_string(),
                partitions: users.work,
                makes_multiples: users.in_background > 0,
            });
        }
        LetGo::Absent => {
            if is_loaded {
                core.evict(id.into());
            }
            0
        }
        LetGo::Evicted { evicted, bytes } => {
            core.evict(id.into());
            drop(evicted);
            bytes
        }
    };
    core.report_memory();
    Ok(EvictedAssets {
        was_loaded: is_loaded || freed_bytes > 0,
        freed_bytes,
    })
}
