//! What partitions need: memory, circuits, parameters.
//!
//! Not who gets it first: that is admission's. The invariant: whatever grows with
//! the work is charged before it is made, and what is evicted is charged no more.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bellperson::groth16::PreparedVerifyingKey;
use blstrs::Bls12;
use cuzk_scheduler::admission::{Lane, Limits, Need};

use super::shared::Shared;
use super::task::{Stake, Task};
use crate::Result;
use crate::circuit::Circuit;
use crate::config::Config;
use crate::kinds::CircuitId;
use crate::memory::footprint::{READING_BYTES, Sums, buffer_bytes, circuit_bytes, partition_bytes};
use crate::metrics::{self, Evicted};
use crate::params::{LoadedParams, ParamsError, multiples_path};

/// What a partition of each circuit needs, once the circuit was read.
pub(super) struct Needs {
    /// What everything that is not critical may use together.
    room_bytes: u64,
    pub(super) sums: Sums,
    known: Mutex<HashMap<CircuitId, Known>>,
}

/// A partition's need, with the vectors over its circuit's domain.
struct Known {
    need: Need<CircuitId>,
    vectors_bytes: u64,
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
            Some(known) => {
                let mut need = known.need.clone();
                if !vectors {
                    need.own_bytes -= known.vectors_bytes;
                }
                (Stake::Proving, need)
            }
            None => (Stake::Reading, Need::own(READING_BYTES)),
        };
        task.stake = stake;
        need
    }

    /// Notes what a partition of a circuit needs. `kept_bytes` is what the devices
    /// keep for it.
    fn learn(&self, circuit: &Circuit, params: &LoadedParams, kept_bytes: u64) {
        let own_bytes = partition_bytes(circuit, &self.sums);
        let circuit_bytes = circuit_bytes(circuit) + kept_bytes;
        let params = params.mapped();
        // Multiples are read as often as the parameters are.
        let multiples = multiples_path(params).metadata();
        let file_bytes = params.file_bytes() as u64 + multiples.map_or(0, |file| file.len());
        let charged = charged_of_file(file_bytes, own_bytes + circuit_bytes, self.room_bytes);
        if charged == 0 {
            tracing::warn!(
                circuit = %circuit.id(),
                file_bytes,
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
    pub(super) fn learn(&self, circuit: &Circuit, params: &LoadedParams) {
        let devices = self.stations.devices().iter();
        let kept = devices.map(|station| station.device.backend.kept_bytes(circuit));
        self.needs.learn(circuit, params, kept.sum());
    }

    pub(super) fn circuit(&self, id: CircuitId) -> Result<Arc<Circuit>> {
        let cache = &self.config.srs.param_cache;
        self.circuits.get_or_make(id, || Circuit::cached(id, cache))
    }

    pub(super) fn params(&self, id: CircuitId, circuit: &Circuit) -> Result<Arc<LoadedParams>> {
        let files = id.parameter_files()?;
        self.let_go_of_replaced(circuit, &files);
        Ok(self.params.load(&files, &circuit.query_lengths())?)
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

    /// Of the vectors kept from other partitions those give way that this one
    /// will not use and that there is no room for.
    pub(super) fn make_room(&self, circuit: &Circuit, lane: Lane) {
        let usage = self.admission.usage();
        let free_bytes = usage.total_bytes.saturating_sub(usage.used_bytes);
        let holds = self.stations.hold_vectors(lane);
        let own_bytes = if holds { buffer_bytes(circuit) } else { 0 };
        self.buffers.shrink_to(free_bytes + own_bytes);
        metrics::memory_reserved(usage.used_bytes);
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
