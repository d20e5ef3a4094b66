//! What a partition of each circuit needs in memory, once the circuit was read.
//!
//! Not the memory: the dispatcher reserves it. The invariant: everything that grows
//! with the work is charged before it is made.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cuzk_filecoin::CircuitId;
use cuzk_groth16::Circuit;
use cuzk_groth16::memory::footprint::{
    READING_BYTES, Sums, buffer_bytes, circuit_bytes, finish_bytes, partition_bytes, pool_blocks,
    witness_blocks,
};
use cuzk_groth16::params::{MappedMultiples, MappedParams, Shapes};
use cuzk_scheduler::admission::{Limits, Need};

use crate::config::Config;

/// What a partition's memory is charged for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum Charge {
    /// Reading its circuit, which tells what the partition will need.
    Reading,
    /// All of its way, proved with these files.
    Proving(KeyFiles),
}

/// The proving-key files of a circuit, as far as a partition's need depends on them:
/// its parameters and their multiples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) struct KeyFiles {
    bytes: u64,
    shapes: Shapes,
}

/// The needs of the circuits that were read.
pub(in crate::engine) struct CostTable {
    /// The memory that everything that is not critical may use together.
    room_bytes: u64,
    sums: Sums,
    costs: Mutex<HashMap<CircuitId, Cost>>,
}

/// What one partition of a circuit needs, proved with these files.
struct Cost {
    /// With the vectors over the circuit's domain.
    need: Need<CircuitId>,
    vectors_bytes: u64,
    files: KeyFiles,
    /// The part of the shared need that is for the files.
    files_bytes: u64,
}

impl Cost {
    fn need(&self, vectors: bool) -> Need<CircuitId> {
        let mut need = self.need.clone();
        if !vectors {
            need.own_bytes -= self.vectors_bytes;
        }
        need
    }
}

impl KeyFiles {
    /// The files of these parameters, with the multiples that their MSMs use.
    pub(super) fn new(params: &MappedParams, multiples: Option<&MappedMultiples>) -> Self {
        // Multiples are read as often as the parameters are.
        let multiples_bytes = multiples.map_or(0, MappedMultiples::file_bytes);
        Self {
            bytes: (params.file_bytes() + multiples_bytes) as u64,
            shapes: multiples.map(MappedMultiples::shapes).unwrap_or_default(),
        }
    }
}

impl CostTable {
    pub(super) fn new(config: &Config, limits: &Limits) -> Self {
        let reserve_bytes = limits.critical_reserve_bytes;
        Self {
            room_bytes: limits.total_bytes.saturating_sub(reserve_bytes),
            sums: config.sums(),
            costs: Mutex::default(),
        }
    }

    /// Returns what a partition asks for: all that it needs, with or without vectors
    /// over the domain; only what reading its circuit takes while that is not known.
    pub(in crate::engine) fn charge(
        &self,
        id: CircuitId,
        vectors: bool,
    ) -> (Charge, Need<CircuitId>) {
        match self.lock().get(&id) {
            Some(cost) => (Charge::Proving(cost.files), cost.need(vectors)),
            None => (Charge::Reading, Need::own(READING_BYTES)),
        }
    }

    /// Returns a partition's need, if it is known.
    pub(in crate::engine) fn known(&self, id: CircuitId, vectors: bool) -> Option<Need<CircuitId>> {
        Some(self.lock().get(&id)?.need(vectors))
    }

    /// Returns the charge for a circuit and its files, which all its partitions share.
    pub(in crate::engine) fn shared(&self, id: CircuitId) -> Option<(CircuitId, u64)> {
        self.lock().get(&id)?.need.shared
    }

    /// Forgets a circuit's cost. Its next partition reads the files, which may have
    /// changed, before it is refused for want of memory.
    pub(in crate::engine) fn forget(&self, id: CircuitId) {
        self.lock().remove(&id);
    }

    /// Stops charging a circuit's files. There was room for them beside a partition, and a
    /// device that does not answer has taken that room. Returns true if the files had been
    /// charged.
    pub(in crate::engine) fn uncharge_files(&self, id: CircuitId) -> bool {
        let mut costs = self.lock();
        let Some(cost) = costs.get_mut(&id).filter(|cost| cost.files_bytes > 0) else {
            return false;
        };
        let files_bytes = std::mem::take(&mut cost.files_bytes);
        if let Some((_, shared_bytes)) = &mut cost.need.shared {
            *shared_bytes -= files_bytes;
        }
        true
    }

    /// Returns the bytes of a partition's own need that remain after its device region.
    pub(in crate::engine) fn finish_bytes(&self, circuit: &Circuit, files: &KeyFiles) -> u64 {
        finish_bytes(circuit, &self.sums, &files.shapes)
    }

    /// Returns the blocks that the memory pool keeps of one partition for the next, in
    /// bytes each.
    pub(in crate::engine) fn kept_blocks(
        &self,
        circuit: &Circuit,
        files: &KeyFiles,
        vectors: bool,
    ) -> Vec<usize> {
        if vectors {
            pool_blocks(circuit, &self.sums, &files.shapes)
        } else {
            witness_blocks(circuit)
        }
    }

    /// Notes what a partition of a circuit needs. `kept_bytes` is the host memory that
    /// the devices keep for the circuit.
    pub(in crate::engine) fn learn(
        &self,
        id: CircuitId,
        circuit: &Circuit,
        files: KeyFiles,
        kept_bytes: u64,
    ) {
        let own_bytes = partition_bytes(circuit, &self.sums, &files.shapes);
        let circuit_bytes = circuit_bytes(circuit) + kept_bytes;
        let files_bytes = charged_of_file(files.bytes, own_bytes + circuit_bytes, self.room_bytes);
        if files_bytes == 0 {
            tracing::warn!(
                circuit = %id,
                file_bytes = files.bytes,
                room_bytes = self.room_bytes,
                "the parameters do not fit into memory beside a partition and are read from \
                 disk for every partition; raise memory.total_budget"
            );
        }
        let cost = Cost {
            need: Need {
                own_bytes,
                shared: Some((id, circuit_bytes + files_bytes)),
            },
            vectors_bytes: buffer_bytes(circuit),
            files,
            files_bytes,
        };
        self.lock().insert(id, cost);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<CircuitId, Cost>> {
        self.costs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the charge for a mapped file. Its pages are the system's to take back, so a
/// file that does not fit beside a partition's need is no reason to refuse the
/// partition: it is not charged. A file that fits is charged whole, so that its pages
/// stay.
fn charged_of_file(file_bytes: u64, beside_bytes: u64, room_bytes: u64) -> u64 {
    match file_bytes.checked_add(beside_bytes) {
        Some(all) if all <= room_bytes => file_bytes,
        _ => 0,
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
