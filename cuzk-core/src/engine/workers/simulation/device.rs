//! Devices that do what a run says: prove, fail, return the proof of another statement.
//!
//! Not their slowness and silence, which is the run's: it calls a device when the answer
//! is due. The invariant: a device does the next deed that it was told.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bellperson::groth16::Proof;
use blstrs::Bls12;
use cuzk_groth16::Circuit;
use cuzk_groth16::backend::{
    Backend, BackendError, Batch, BitSums, CpuBackend, Device, Footprint, Pending, SynthesisShare,
    Synthesized,
};
use cuzk_groth16::params::{MappedParams, Shapes};
use rayon::ThreadPool;
use supraseal_sys::{GpuResources, Status};

use super::bench::{Bench, ROOTS};
use crate::timeline::Trace;

const MIB: u64 = 1 << 20;

/// A device's treatment of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    Prove,
    /// The proof of another statement.
    ProveAnother,
    ErrorInStart,
    ErrorInFinish,
    PanicInStart,
    PanicInFinish,
    /// The circuit does not fit.
    TooLarge,
}

/// The deeds that are faults.
pub(super) const FAULTS: [Deed; 6] = [
    Deed::ProveAnother,
    Deed::ErrorInStart,
    Deed::ErrorInFinish,
    Deed::PanicInStart,
    Deed::PanicInFinish,
    Deed::TooLarge,
];

/// A device of a run.
pub(super) struct SimulatedDevice {
    proofs: Arc<Vec<Proof<Bls12>>>,
    resources: Arc<GpuResources>,
    is_this_cpu: bool,
    pool: Arc<ThreadPool>,
    /// The next deed, and the root that is to be proved.
    next: Mutex<(Deed, usize)>,
    /// True if it adds up bits. That takes a run more time than all else, and no proof of a
    /// run needs the sums.
    adds_bits: AtomicBool,
    /// Called each time while it adds up bits, and in each region.
    meanwhile: Mutex<Box<dyn Fn() + Send>>,
    /// The number of partitions of the batch whose memory it was last asked for.
    batch: AtomicUsize,
    /// How often it let go of a circuit, and of parameters.
    circuits_gone: AtomicUsize,
    params_gone: AtomicUsize,
}

impl SimulatedDevice {
    pub(super) fn new(bench: &Bench, is_this_cpu: bool) -> Arc<Self> {
        Arc::new(Self {
            proofs: Arc::clone(&bench.proofs),
            resources: Arc::clone(&bench.resources),
            is_this_cpu,
            pool: Arc::clone(&bench.pool),
            next: Mutex::new((Deed::Prove, 0)),
            adds_bits: AtomicBool::new(false),
            meanwhile: Mutex::new(Box::new(|| ())),
            batch: AtomicUsize::new(0),
            circuits_gone: AtomicUsize::new(0),
            params_gone: AtomicUsize::new(0),
        })
    }

    /// Has it add up bits from now on.
    pub(super) fn add_bits(&self) {
        self.adds_bits.store(true, Ordering::Relaxed);
    }

    /// Has this happen each time while it adds up bits, and in each region.
    pub(super) fn meanwhile(&self, happens: impl Fn() + Send + 'static) {
        *self.meanwhile.lock().unwrap() = Box::new(happens);
    }

    /// Returns the number of partitions of the batch whose memory it was last asked for.
    pub(super) fn last_batch(&self) -> usize {
        self.batch.load(Ordering::Relaxed)
    }

    /// Returns how often it let go of a circuit, and of parameters.
    pub(super) fn evictions(&self) -> (usize, usize) {
        let gone = [&self.circuits_gone, &self.params_gone];
        gone.map(|count| count.load(Ordering::Relaxed)).into()
    }

    pub(super) fn device(self: &Arc<Self>) -> Device {
        Device {
            resources: Arc::clone(&self.resources),
            backend: Arc::<Self>::clone(self),
        }
    }

    /// Says what the device does with the partition that it is given next.
    pub(super) fn tell(&self, deed: Deed, root: usize) {
        *self.next.lock().unwrap() = (deed, root);
    }
}

impl Backend for SimulatedDevice {
    fn name(&self) -> &'static str {
        "simulated"
    }

    fn is_this_cpu(&self) -> bool {
        self.is_this_cpu
    }

    fn footprint(&self, _: &Circuit, _: &Shapes, _: SynthesisShare) -> Footprint {
        Footprint {
            peak_bytes: 100 * MIB,
            finish_bytes: 40 * MIB,
            kept_blocks: Vec::new(),
        }
    }

    fn kept_bytes(&self, _: &Circuit) -> u64 {
        50 * MIB
    }

    fn evaluates(&self) -> bool {
        true
    }

    /// Two partitions have the memory of one.
    fn batch_footprint(&self, _: &Circuit, partitions: usize) -> Option<Footprint> {
        self.batch.store(partitions, Ordering::Relaxed);
        self.is_this_cpu.then(|| Footprint {
            peak_bytes: 50 * MIB * partitions as u64,
            finish_bytes: 0,
            kept_blocks: Vec::new(),
        })
    }

    fn sum_bits(&self, batch: &Batch<'_>, trace: Trace<'_>) -> Result<Vec<BitSums>, BackendError> {
        if !self.adds_bits.load(Ordering::Relaxed) {
            return Ok(Vec::new());
        }
        (self.meanwhile.lock().unwrap())();
        if batch.checkpoint.is_cancelled() {
            return Err(BackendError::Stopped);
        }
        let resources = Arc::clone(&self.resources);
        CpuBackend::new(resources, Arc::clone(&self.pool)).sum_bits(batch, trace)
    }

    fn evict(&self, _: &Circuit) {
        self.circuits_gone.fetch_add(1, Ordering::Relaxed);
    }

    fn evict_params(&self, _: &MappedParams) {
        self.params_gone.fetch_add(1, Ordering::Relaxed);
    }

    fn prove_start(
        self: Arc<Self>,
        partition: Synthesized,
        _: Trace<'_>,
    ) -> Result<Box<dyn Pending>, BackendError> {
        if partition.checkpoint.is_cancelled() {
            return Err(BackendError::Stopped);
        }
        (self.meanwhile.lock().unwrap())();
        let (deed, root) = *self.next.lock().unwrap();
        match deed {
            Deed::ErrorInStart => Err(failure()),
            Deed::TooLarge => Err(Status::too_large("as a run asks".to_owned()).into()),
            // The panic hook, which prints, does not hear of it.
            Deed::PanicInStart => resume_unwind(Box::new("a device's start")),
            Deed::Prove | Deed::ProveAnother | Deed::ErrorInFinish | Deed::PanicInFinish => {
                let root = root + usize::from(deed == Deed::ProveAnother);
                let proof = self.proofs[root % ROOTS].clone();
                Ok(Box::new(Proved { deed, proof }))
            }
        }
    }
}

/// A partition after its device region.
struct Proved {
    deed: Deed,
    proof: Proof<Bls12>,
}

impl Pending for Proved {
    fn finish(self: Box<Self>, _: Trace<'_>) -> Result<Proof<Bls12>, BackendError> {
        match self.deed {
            Deed::ErrorInFinish => Err(failure()),
            Deed::PanicInFinish => resume_unwind(Box::new("a device's finish")),
            _ => Ok(self.proof),
        }
    }
}

fn failure() -> BackendError {
    std::io::Error::other("a device's failure").into()
}
