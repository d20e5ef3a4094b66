//! What a partition of each circuit needs in memory, once the circuit was read.
//!
//! Not the memory: the dispatcher reserves it. The invariant: everything that grows
//! with the work is charged before it is made.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cuzk_filecoin::CircuitId;
use cuzk_groth16::backend::footprint::{READING_BYTES, circuit_bytes};
use cuzk_groth16::backend::{CpuWorkspace, Footprint};
use cuzk_groth16::evaluate::{form_bytes_of_circuit, form_bytes_of_partition};
use cuzk_groth16::params::{MappedMultiples, MappedParams, Shapes};
use cuzk_groth16::{Circuit, CircuitForm, CircuitSizes};
use cuzk_scheduler::admission::{Lane, Limits, Need};

use super::key::AssetKey;
use crate::config::Config;

/// What a partition's memory is charged for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::engine) enum Charge {
    /// Reading its circuit, which tells what the partition will need.
    Reading,
    /// All of its way, proved with these files.
    Proving(KeyFiles, Arc<Footprint>),
}

/// The proving-key files of a circuit, as far as a partition's need depends on them:
/// its parameters and their multiples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) struct KeyFiles {
    bytes: u64,
    shapes: Shapes,
}

/// Returns the footprint of a partition of such a circuit with multiples of these shapes, as
/// [`CpuWorkspace::footprint`] does.
type FootprintOf = fn(&CpuWorkspace, &CircuitSizes, &Shapes) -> Footprint;

/// The needs of the circuits that were read.
pub(in crate::engine) struct CostTable {
    /// The memory that everything that is not critical may use together.
    room_bytes: u64,
    dedicated: CpuWorkspace,
    /// A simulation has one that remembers.
    pub(in crate::engine) footprint_of: FootprintOf,
    form: CircuitForm,
    costs: Mutex<HashMap<CircuitId, Cost>>,
}

/// What one partition of a circuit needs, proved with these files.
struct Cost {
    /// On the devices.
    on_devices: Arc<Footprint>,
    /// With a dedicated worker. The critical worker may have to prove a partition itself
    /// that it was to bring to a device, so it is charged for that.
    dedicated: Arc<Footprint>,
    /// The circuit with its files, which all its partitions share.
    shared_bytes: u64,
    files: KeyFiles,
    /// The part of `shared_bytes` that is for the files.
    files_bytes: u64,
}

impl Cost {
    fn footprint(&self, lane: Lane) -> &Arc<Footprint> {
        match lane {
            Lane::Common => &self.on_devices,
            Lane::Critical | Lane::Retry => &self.dedicated,
        }
    }

    fn need(&self, id: CircuitId, lane: Lane) -> Need<AssetKey> {
        Need {
            own_bytes: self.footprint(lane).peak_bytes,
            shared: Some((id.into(), self.shared_bytes)),
        }
    }
}

impl KeyFiles {
    /// Returns the shapes of the multiples; none where there are no multiples.
    pub(in crate::engine) fn shapes(&self) -> &Shapes {
        &self.shapes
    }

    /// Returns the files of these parameters, with the multiples that their MSMs use.
    pub(super) fn new(params: &MappedParams, multiples: Option<&MappedMultiples>) -> Self {
        let multiples = multiples.map(|multiples| (multiples.file_bytes(), multiples.shapes()));
        Self::of(params.file_bytes(), multiples)
    }

    /// Returns files of these sizes in bytes: parameters, and multiples with their shapes.
    pub(in crate::engine) fn of(params_bytes: usize, multiples: Option<(usize, Shapes)>) -> Self {
        let (multiples_bytes, shapes) = multiples.unwrap_or_default();
        Self {
            // Multiples are read as often as the parameters are.
            bytes: (params_bytes + multiples_bytes) as u64,
            shapes,
        }
    }
}

impl CostTable {
    pub(super) fn new(config: &Config, limits: &Limits) -> Self {
        let reserve_bytes = limits.critical_reserve_bytes;
        Self {
            room_bytes: limits.total_bytes.saturating_sub(reserve_bytes),
            dedicated: config.cpu_workspace(),
            footprint_of: CpuWorkspace::footprint,
            form: config.synthesis.circuit,
            costs: Mutex::default(),
        }
    }

    /// Returns what a partition of a lane asks for: all that it needs, or only what reading
    /// its circuit takes while that is not known.
    pub(in crate::engine) fn charge(&self, id: CircuitId, lane: Lane) -> (Charge, Need<AssetKey>) {
        match self.lock().get(&id) {
            Some(cost) => {
                let footprint = Arc::clone(cost.footprint(lane));
                let charge = Charge::Proving(cost.files, footprint);
                (charge, cost.need(id, lane))
            }
            None => (Charge::Reading, Need::own(READING_BYTES)),
        }
    }

    /// Returns the need of a partition of a lane, if it is known.
    pub(in crate::engine) fn known(&self, id: CircuitId, lane: Lane) -> Option<Need<AssetKey>> {
        Some(self.lock().get(&id)?.need(id, lane))
    }

    /// Returns the charge for a circuit and its files, which all its partitions share.
    pub(in crate::engine) fn shared(&self, id: CircuitId) -> Option<(AssetKey, u64)> {
        Some((id.into(), self.lock().get(&id)?.shared_bytes))
    }

    /// Returns the bytes of a circuit's parameters with their multiples, as they are on
    /// disk, and of the rest that its partitions share.
    pub(in crate::engine) fn parts(&self, id: CircuitId) -> Option<(u64, u64)> {
        let costs = self.lock();
        let cost = costs.get(&id)?;
        Some((cost.files.bytes, cost.shared_bytes - cost.files_bytes))
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
        cost.shared_bytes -= files_bytes;
        true
    }

    /// Notes what a partition of a circuit needs. `on_devices` is its footprint there, and
    /// `kept_bytes` the host memory that the devices keep for the circuit.
    pub(in crate::engine) fn learn(
        &self,
        (id, circuit): (CircuitId, &Circuit),
        files: KeyFiles,
        on_devices: Footprint,
        kept_bytes: u64,
    ) {
        let sizes = circuit.sizes();
        let form_bytes = form_bytes_of_partition(circuit, self.form);
        let on_devices = on_devices.plus(form_bytes);
        let dedicated = (self.footprint_of)(&self.dedicated, &sizes, &files.shapes);
        let dedicated = dedicated.plus(form_bytes);
        let own_bytes = on_devices.peak_bytes.max(dedicated.peak_bytes);
        let form_bytes = form_bytes_of_circuit(circuit, self.form);
        let circuit_bytes = circuit_bytes(&sizes) + form_bytes + kept_bytes;
        let files_bytes = charged_of_file(files.bytes, own_bytes + circuit_bytes, self.room_bytes);
        let cost = Cost {
            on_devices: Arc::new(on_devices),
            dedicated: Arc::new(dedicated),
            shared_bytes: circuit_bytes + files_bytes,
            files,
            files_bytes,
        };
        let before = self.lock().insert(id, cost);
        // Several partitions learn the same at once, and an operator is told once.
        let is_told = before.is_some_and(|cost| cost.files == files && cost.files_bytes == 0);
        if files_bytes == 0 && !is_told {
            tracing::warn!(
                circuit = %id,
                file_mib = files.bytes >> 20,
                room_mib = self.room_bytes >> 20,
                "the parameters do not fit into memory beside a partition and are read from \
                 disk for every partition; raise memory.total_budget"
            );
        }
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
    use super::*;
    use cuzk_filecoin::{ProofKind, SectorSize};
    use cuzk_kernels::msm::Shape;

    const ID: CircuitId = CircuitId {
        kind: ProofKind::WindowPost,
        sector_size: SectorSize::KiB2,
    };

    /// Returns a table with a circuit of 40 bytes, whose files have 60. A partition has 7 on
    /// a device and 9 with a dedicated worker.
    fn table() -> CostTable {
        let footprint = |peak_bytes| {
            Arc::new(Footprint {
                peak_bytes,
                finish_bytes: 0,
                kept_blocks: Vec::new(),
            })
        };
        let cost = Cost {
            on_devices: footprint(7),
            dedicated: footprint(9),
            shared_bytes: 100,
            files: KeyFiles {
                bytes: 60,
                shapes: Shapes::default(),
            },
            files_bytes: 60,
        };
        CostTable {
            room_bytes: 1000,
            dedicated: Config::default().cpu_workspace(),
            footprint_of: CpuWorkspace::footprint,
            form: CircuitForm::default(),
            costs: Mutex::new(HashMap::from([(ID, cost)])),
        }
    }

    #[test]
    fn the_bytes_of_files_are_those_of_parameters_and_multiples() {
        let shapes = Shapes::default();
        assert_eq!(KeyFiles::of(40, Some((3, shapes))).bytes, 43);
        assert_eq!(KeyFiles::of(40, None), KeyFiles { bytes: 40, shapes });
        let shapes = Shapes {
            l: Shape::new(8, 2),
            ..shapes
        };
        assert!(shapes.l.is_some());
        assert_eq!(*KeyFiles::of(40, Some((3, shapes))).shapes(), shapes);
    }

    #[test]
    fn files_without_room_are_uncharged_once() {
        let table = table();
        assert_eq!(table.shared(ID), Some((ID.into(), 100)));
        assert_eq!(table.parts(ID), Some((60, 40)));
        assert!(table.uncharge_files(ID));
        assert_eq!(table.shared(ID), Some((ID.into(), 40)));
        assert_eq!(table.parts(ID), Some((60, 40)));
        assert!(!table.uncharge_files(ID));
        table.forget(ID);
        assert!(!table.uncharge_files(ID));
        assert_eq!(table.shared(ID), None);
    }

    #[test]
    fn the_charge_is_that_of_the_lane() {
        let table = table();
        for (lane, own_bytes) in [(Lane::Common, 7), (Lane::Critical, 9), (Lane::Retry, 9)] {
            let shared = Some((ID.into(), 100));
            let need = Need { own_bytes, shared };
            assert_eq!(table.known(ID, lane), Some(need.clone()));
            let (charge, charged) = table.charge(ID, lane);
            assert_eq!(charged, need);
            let is_known = matches!(charge, Charge::Proving(_, of) if of.peak_bytes == own_bytes);
            assert!(is_known, "{lane:?}");
        }
        table.forget(ID);
        let (charge, need) = table.charge(ID, Lane::Common);
        assert_eq!((charge, need), (Charge::Reading, Need::own(READING_BYTES)));
    }

    #[test]
    fn a_file_is_charged_whole_or_not_at_all() {
        assert_eq!(charged_of_file(47, 13, 60), 47);
        assert_eq!(charged_of_file(47, 13, 59), 0);
        assert_eq!(charged_of_file(47, u64::MAX, u64::MAX), 0);
        assert_eq!(charged_of_file(0, 13, 5), 0);
    }
}
