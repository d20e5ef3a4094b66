//! What partitions need: memory, circuits, parameters.
//!
//! Not who gets it first: that is admission's. The invariant: whatever grows with
//! the work is charged before it is made, and what is evicted is charged no more.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bellperson::groth16::PreparedVerifyingKey;
use blstrs::Bls12;
use cuzk_kernels::Checkpoint;
use cuzk_scheduler::admission::{Lane, Limits, Need};

use super::shared::Shared;
use super::task::{Stake, Task};
use crate::circuit::Circuit;
use crate::config::Config;
use crate::kinds::CircuitId;
use crate::memory::footprint::{
    READING_BYTES, Sums, buffer_bytes, circuit_bytes, finish_bytes, partition_bytes, pool_blocks,
    witness_blocks,
};
use crate::metrics::{self, Evicted};
use crate::params::{LoadedParams, MappedMultiples, ParamsError, Shapes};
use crate::{Error, Result};

/// Asked while one reads, or waits for another who does: why to leave that, if there is a
/// reason.
pub(super) type Leave<'a> = &'a (dyn Fn() -> Option<Error> + Sync);

/// What a partition of each circuit needs, once the circuit was read.
pub(super) struct Needs {
    /// What everything that is not critical may use together.
    room_bytes: u64,
    sums: Sums,
    known: Mutex<HashMap<CircuitId, Known>>,
}

/// A partition's need, with the vectors over its circuit's domain, where it is proved
/// with such files.
struct Known {
    need: Need<CircuitId>,
    vectors_bytes: u64,
    files: Files,
    /// What of the need is for the files.
    files_bytes: u64,
}

/// What a partition's need depends on of its parameters and their multiples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Files {
    bytes: u64,
    shapes: Shapes,
}

impl Known {
    fn need(&self, vectors: bool) -> Need<CircuitId> {
        let mut need = self.need.clone();
        if !vectors {
            need.own_bytes -= self.vectors_bytes;
        }
        need
    }
}

impl Needs {
    pub(super) fn new(config: &Config, limits: &Limits) -> Self {
        let reserve_bytes = limits.critical_reserve_bytes;
        Self {
            room_bytes: limits.total_bytes.saturating_sub(reserve_bytes),
            sums: Sums::of(config),
            known: Mutex::default(),
        }
    }

    /// What `task` asks for: a partition's need, with vectors over the domain or
    /// without, or what reading its circuit takes as long as that is not known.
    pub(super) fn of(&self, task: &mut Task, vectors: bool) -> Need<CircuitId> {
        let (stake, need) = match self.lock().get(&task.state.circuit()) {
            Some(known) => (Stake::Proving(known.files), known.need(vectors)),
            None => (Stake::Reading, Need::own(READING_BYTES)),
        };
        task.stake = stake;
        need
    }

    /// A partition's need, where it is known.
    pub(super) fn known(&self, id: CircuitId, vectors: bool) -> Option<Need<CircuitId>> {
        Some(self.lock().get(&id)?.need(vectors))
    }

    /// What is charged for a circuit that is in use, with its files, once for all.
    pub(super) fn shared(&self, id: CircuitId) -> Option<(CircuitId, u64)> {
        self.lock().get(&id)?.need.shared
    }

    /// The next partition of a circuit reads its files, which may have changed, before
    /// it is told that there is no room.
    pub(super) fn forget(&self, id: CircuitId) {
        self.lock().remove(&id);
    }

    /// Has a circuit's files not be charged: there was room for them beside a partition,
    /// and a device that does not answer has taken it. Whether they were charged.
    pub(super) fn uncharge_files(&self, id: CircuitId) -> bool {
        let mut known = self.lock();
        let Some(known) = known.get_mut(&id).filter(|known| known.files_bytes > 0) else {
            return false;
        };
        let files_bytes = std::mem::take(&mut known.files_bytes);
        if let Some((_, shared_bytes)) = &mut known.need.shared {
            *shared_bytes -= files_bytes;
        }
        true
    }

    /// What is left of a partition's own need once its device region is over.
    pub(super) fn finish_bytes(&self, circuit: &Circuit, files: &Files) -> u64 {
        finish_bytes(circuit, &self.sums, &files.shapes)
    }

    /// Notes what a partition of a circuit needs. `kept_bytes` is what the devices
    /// keep for it.
    fn learn(&self, circuit: &Circuit, files: Files, kept_bytes: u64) {
        let own_bytes = partition_bytes(circuit, &self.sums, &files.shapes);
        let circuit_bytes = circuit_bytes(circuit) + kept_bytes;
        let charged = charged_of_file(files.bytes, own_bytes + circuit_bytes, self.room_bytes);
        if charged == 0 {
            tracing::warn!(
                circuit = %circuit.id(),
                file_bytes = files.bytes,
                room_bytes = self.room_bytes,
                "the parameters do not fit into memory beside a partition, and will be read \
                 again and again; raise memory.total_budget"
            );
        }
        let need = Need {
            own_bytes,
            shared: Some((circuit.id(), circuit_bytes + charged)),
        };
        let vectors_bytes = buffer_bytes(circuit);
        let known = Known {
            need,
            vectors_bytes,
            files,
            files_bytes: charged,
        };
        self.lock().insert(circuit.id(), known);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<CircuitId, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is charged for a mapped file. Its pages are the system's to take back, so
/// a file that does not fit beside what a partition needs is no reason to refuse
/// the partition: it is not charged. One that does fit is charged whole, so that
/// its pages stay.
fn charged_of_file(file_bytes: u64, beside_bytes: u64, room_bytes: u64) -> u64 {
    match file_bytes.checked_add(beside_bytes) {
        Some(all) if all <= room_bytes => file_bytes,
        _ => 0,
    }
}

impl Shared {
    /// From now on a partition of this circuit is admitted with what it needs.
    pub(super) fn learn(&self, circuit: &Circuit, files: Files) {
        let devices = self.stations.devices().iter();
        let kept = devices.map(|station| station.device.backend.kept_bytes(circuit));
        self.needs.learn(circuit, files, kept.sum());
    }

    /// The files of these parameters, with the multiples that the sums will use:
    /// opened, by the first who asks, on threads that the lane's worker has for itself.
    pub(super) fn files(
        &self,
        circuit: &Circuit,
        params: &LoadedParams,
        lane: Lane,
        leave: Leave<'_>,
    ) -> Result<Files> {
        let params = params.mapped();
        let (isa, pool) = (self.config.cpu.isa, self.pool_of(lane));
        let shared = params.multiples_unless(circuit, isa, pool, leave)?;
        let wanted = shared.is_absent() && self.wants_multiples(circuit.id());
        if wanted || shared.is_outdated(params) {
            self.upkeep.ask(circuit.id());
        }
        // Multiples are read as often as the parameters are.
        let multiples = shared.usable();
        let multiples_bytes = multiples.map_or(0, MappedMultiples::file_bytes);
        Ok(Files {
            bytes: (params.file_bytes() + multiples_bytes) as u64,
            shapes: multiples.map(MappedMultiples::shapes).unwrap_or_default(),
        })
    }

    /// Whether there are to be multiples for this circuit: GPUs do not use them.
    pub(super) fn wants_multiples(&self, id: CircuitId) -> bool {
        let mut devices = self.stations.devices().iter();
        self.config.srs.multiples.contains(&id.kind)
            && devices.any(|station| station.device.backend.is_this_cpu())
    }

    /// The circuit, mapped or compiled under `checkpoint` by the first who asks. Should
    /// that be stopped, one of those who wait for it goes on.
    pub(super) fn circuit(
        &self,
        id: CircuitId,
        checkpoint: &dyn Checkpoint,
        leave: Leave<'_>,
    ) -> Result<Arc<Circuit>> {
        let cache = &self.config.srs.param_cache;
        let read = || Circuit::cached_while(id, cache, checkpoint);
        self.circuits.get_or_make_unless(id, leave, read)
    }

    pub(super) fn params(
        &self,
        id: CircuitId,
        circuit: &Circuit,
        leave: Leave<'_>,
    ) -> Result<Arc<LoadedParams>> {
        let files = id.parameter_files()?;
        let lengths = circuit.query_lengths();
        self.follow_replaced(circuit, &files, &lengths);
        self.params.load_unless(&files, &lengths, leave)
    }

    /// The verifying key of a circuit.
    pub(super) fn verifying_key(&self, id: CircuitId) -> Result<Arc<PreparedVerifyingKey<Bls12>>> {
        Ok(self.params.verifying_key(&id.parameter_files()?)?)
    }

    /// Parameters that are not there are the caller's to mend, and known before
    /// anything else is done.
    pub(super) fn check_parameters(&self, id: CircuitId) -> Result<()> {
        let files = id.parameter_files()?;
        let paths = [self.params.params_path(&files), self.params.vk_path(&files)];
        match paths.into_iter().find(|path| !path.is_file()) {
            Some(path) => Err(ParamsError::Missing { path }.into()),
            None => Ok(()),
        }
    }

    /// Lets go of a circuit that nobody uses, with its parameters.
    pub(super) fn evict(&self, id: CircuitId) {
        let circuit = self.circuits.remove(&id);
        metrics::evicted(Evicted::Circuit);
        if let Ok(files) = id.parameter_files() {
            self.params.evict(&files);
            metrics::evicted(Evicted::Params);
        }
        if let Some(circuit) = circuit {
            for (_, _, station) in self.stations.all() {
                station.device.backend.evict(&circuit);
            }
        }
    }

    /// Of the blocks kept from other partitions those give way that this one
    /// will not use and that there is no room for. Others' memory may be on its way out:
    /// for that it waits for as long as its job goes on.
    pub(super) fn make_room(&self, circuit: &Circuit, files: &Files, task: &Task, lane: Lane) {
        let own = if self.stations.hold_vectors(lane) {
            pool_blocks(circuit, &self.needs.sums, &files.shapes)
        } else {
            witness_blocks(circuit)
        };
        let waits = || !task.state.has_ended();
        self.buffers.make_room(&own, self.free_bytes(), &waits);
        self.tell_memory();
    }

    /// What nobody is charged for.
    pub(super) fn free_bytes(&self) -> u64 {
        let usage = self.admission.usage();
        usage.total_bytes.saturating_sub(usage.used_bytes)
    }

    /// To be called when memory was charged, and when a worker has let go of some.
    pub(super) fn tell_memory(&self) {
        metrics::memory_reserved(self.admission.usage().used_bytes);
        metrics::buffers_kept(self.buffers.kept_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::charged_of_file;

    #[test]
    fn a_file_is_charged_whole_or_not_at_all() {
        assert_eq!(charged_of_file(47, 13, 60), 47);
        assert_eq!(charged_of_file(47, 13, 59), 0);
        assert_eq!(charged_of_file(47, u64::MAX, u64::MAX), 0);
        assert_eq!(charged_of_file(0, 13, 5), 0);
    }
}
