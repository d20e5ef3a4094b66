//! The backend of a CUDA device. The compiled circuit and the parameters' points stay on
//! it. A packed witness goes up, and the results of five MSMs come down.
//!
//! Not the device (`supraseal_sys::device`), and not the choice of devices. The
//! invariant: a device that fails fails its partition and never the process.

mod lent;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bellperson::groth16::Proof;
use blstrs::{Bls12, Scalar};
use cuzk_memory::{BufferPool, Checkpoint};
use cuzk_pce::PackedWitness;
use cuzk_timeline::{Stage, Trace};
use supraseal_sys::device::{
    CircuitSource, DeviceCircuit, DeviceOptions, DevicePlan, DeviceProver, DeviceSums,
    Intermediates, ProofFigures, RanProof, StagedProof, WitnessSource,
};

use self::lent::{LentCircuit, LentWitness};
use super::assemble::{Blinding, Sums, assemble};
use super::footprint::{BG2Workspace, DeviceWorkspace, Footprint, SynthesisShare};
use super::host_b_g2::{HostBG2, HostInput, RunningMsm};
use super::{Backend, BackendError, Pending, Randomness, Synthesized};
use crate::circuit::Circuit;
use crate::once_map::OnceMap;
use crate::params::{MappedParams, Shapes};

/// Proves on a device.
pub struct CudaBackend {
    device: Arc<DeviceProver>,
    circuits: OnceMap<Known, DeviceCircuit>,
    last: Mutex<Option<ProofFigures>>,
    /// The partitions that are on their way at once.
    workers: u64,
    host_b_g2: HostBG2,
}

impl fmt::Debug for CudaBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CudaBackend")
            .field("device", &self.device)
            .finish_non_exhaustive()
    }
}

impl CudaBackend {
    /// Returns a backend that proves on `device`, which was opened for one worker.
    /// `host_b_g2` makes the MSM in G2 of circuits whose MSM in G2 the device does not make.
    #[must_use]
    pub fn new(device: Arc<DeviceProver>, host_b_g2: HostBG2) -> Self {
        Self {
            device,
            circuits: OnceMap::default(),
            last: Mutex::default(),
            workers: 1,
            host_b_g2,
        }
    }

    /// Returns the backend for a device that was opened for so many workers.
    #[must_use]
    pub fn with_workers(mut self, workers: u32) -> Self {
        self.workers = workers.into();
        self
    }

    /// Returns how a device of these options uses its memory for a circuit.
    ///
    /// # Errors
    /// A circuit that does not fit.
    pub fn plan(
        circuit: &Arc<Circuit>,
        params: &Arc<MappedParams>,
        options: &DeviceOptions,
    ) -> Result<DevicePlan, BackendError> {
        let shape = LentCircuit::new(circuit, params)?.arrays().shape()?;
        Ok(DevicePlan::new(&shape, options)?)
    }

    fn workspace(&self) -> DeviceWorkspace {
        DeviceWorkspace {
            workers: self.workers,
            b_g2: match &self.host_b_g2 {
                HostBG2::Kernel { pool, isa } => BG2Workspace::Kernel {
                    threads: pool.current_num_threads(),
                    isa: *isa,
                },
                HostBG2::Cpp { threads } => BG2Workspace::Cpp { threads: *threads },
                HostBG2::Absent => BG2Workspace::Absent,
            },
        }
    }

    /// Returns the figures of the proof whose device region ended last, if one did.
    #[must_use]
    pub fn figures(&self) -> Option<ProofFigures> {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the circuit on the device. The first partition of a circuit makes it. The
    /// circuit's other partitions wait, unless they are stopped; those of other circuits
    /// do not.
    fn circuit(&self, partition: &Partition) -> Result<Arc<DeviceCircuit>, BackendError> {
        let known = Known {
            circuit: Arc::clone(&partition.circuit),
            params: Arc::clone(&partition.params),
        };
        let make = || {
            let lent = LentCircuit::new(&partition.circuit, &partition.params)?;
            let on_device = DeviceCircuit::new(Arc::clone(&self.device), Arc::new(lent))?;
            let (name, plan) = (partition.circuit.name(), on_device.plan());
            tracing::info!(circuit = name, ?plan, "a circuit on a device");
            Ok(on_device)
        };
        self.circuits
            .get_or_make_unless_stopped(known, &partition.checkpoint, make)
    }

    /// Returns the intermediate values of a partition on the device, from A and B on its
    /// witness to the results of the five MSMs. Tests compare them with those of another
    /// backend. No proof is assembled.
    ///
    /// # Errors
    /// As of a proof, and of [`StagedProof::run_inspected`].
    pub fn inspect(
        &self,
        synthesized: Synthesized,
    ) -> Result<(Intermediates, DeviceSums), BackendError> {
        let partition = Partition::new(synthesized).0;
        let checkpoint = &partition.checkpoint;
        let staged = self.stage(&partition)?;
        let (staged, msm) = self.start_b_g2(staged, &partition)?;
        let (ran, intermediates) = staged.run_inspected(true, checkpoint)?;
        let (mut sums, _) = ran.finish(checkpoint)?;
        if let Some(msm) = msm {
            sums.b_g2 = msm.join()?.0;
        }
        Ok((intermediates, sums))
    }

    /// Brings a partition's witness to the device, and its circuit if it is not there.
    fn stage(&self, partition: &Partition) -> Result<Staged, BackendError> {
        let witness: Arc<dyn WitnessSource> = Arc::new(LentWitness(Arc::clone(&partition.witness)));
        let circuit = self.circuit(partition)?;
        let proof = circuit.stage(witness, &partition.checkpoint)?;
        Ok(Staged {
            b_g2_on_device: circuit.plan().b_g2_on_device,
            proof,
        })
    }

    /// Starts the MSM in G2 on the host, where the kernels of the host make it. Like the
    /// C++ side's, it begins before the device's lock is waited for.
    fn start_b_g2(
        &self,
        staged: Staged,
        partition: &Partition,
    ) -> Result<(StagedProof, Option<RunningMsm>), BackendError> {
        let HostBG2::Kernel { pool, isa } = &self.host_b_g2 else {
            return Ok((staged.proof, None));
        };
        if staged.b_g2_on_device {
            return Ok((staged.proof, None));
        }
        let input = HostInput {
            circuit: Arc::clone(&partition.circuit),
            params: Arc::clone(&partition.params),
            witness: Arc::clone(&partition.witness),
            buffers: Arc::clone(&partition.buffers),
            checkpoint: partition.checkpoint.clone(),
        };
        let resources = Arc::clone(self.device.resources());
        let msm = RunningMsm::start((pool, *isa), resources, input)?;
        Ok((staged.proof.leaving_b_g2(), Some(msm)))
    }

    /// The device region of a partition.
    fn run(
        &self,
        partition: &Partition,
        b_g1: bool,
        trace: Trace<'_>,
    ) -> Result<(RanProof, Option<RunningMsm>), BackendError> {
        let staged = trace.time(Stage::Staging, || self.stage(partition))?;
        // Dropped after a failure of the device, which stops it.
        let (staged, msm) = self.start_b_g2(staged, partition)?;
        let asked = Instant::now();
        let ran = staged.run(b_g1, &partition.checkpoint)?;
        let figures = *ran.figures();
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(figures);
        // Later work, such as adding up the results, does not use the device.
        let (locked, ended) = (figures.locked_at, figures.locked_at + figures.region);
        trace.between(Stage::LockWait, asked, locked);
        trace.between(Stage::Device, locked, ended);
        // The device's own clock, from its last event back.
        let sums_begin = ended.checked_sub(ms(figures.sums_ms)).unwrap_or(locked);
        let begin = sums_begin
            .checked_sub(ms(figures.quotient_ms))
            .unwrap_or(locked);
        trace.between(Stage::Quotient, begin, sums_begin);
        trace.between(Stage::Msm, sums_begin, ended);
        Ok((ran, msm))
    }
}

/// A partition whose witness is on its way to the device.
struct Staged {
    proof: StagedProof,
    b_g2_on_device: bool,
}

/// A circuit that the device knows or is about to, with its parameters: these ones,
/// whatever others are equal to them.
#[derive(Clone)]
struct Known {
    circuit: Arc<Circuit>,
    params: Arc<MappedParams>,
}

impl Known {
    fn addresses(&self) -> (*const Circuit, *const MappedParams) {
        (Arc::as_ptr(&self.circuit), Arc::as_ptr(&self.params))
    }
}

impl PartialEq for Known {
    fn eq(&self, other: &Self) -> bool {
        self.addresses() == other.addresses()
    }
}

impl Eq for Known {}

impl Hash for Known {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.addresses().hash(state);
    }
}

/// Milliseconds that the C++ side measured.
fn ms(ms: f64) -> Duration {
    Duration::try_from_secs_f64(ms / 1e3).unwrap_or_default()
}

/// The parts of a synthesized partition that a device needs.
struct Partition {
    circuit: Arc<Circuit>,
    params: Arc<MappedParams>,
    witness: Arc<PackedWitness<Scalar>>,
    buffers: Arc<BufferPool>,
    checkpoint: Checkpoint<'static>,
}

impl Partition {
    /// Returns the partition, and the randomness of its proof. Vectors, if there are any,
    /// are of no use here.
    fn new(synthesized: Synthesized) -> (Self, Randomness) {
        let Synthesized {
            circuit,
            params,
            witness,
            evaluation,
            bit_sums: _,
            randomness,
            checkpoint,
        } = synthesized;
        let partition = Self {
            circuit,
            params,
            witness: Arc::new(witness),
            buffers: Arc::clone(evaluation.buffers()),
            checkpoint,
        };
        (partition, randomness)
    }
}

impl Backend for CudaBackend {
    fn name(&self) -> &'static str {
        "cuda"
    }

    fn footprint(&self, circuit: &Circuit, shapes: &Shapes, share: SynthesisShare) -> Footprint {
        self.workspace().footprint(&circuit.sizes(), shapes, share)
    }

    fn kept_bytes(&self, circuit: &Circuit) -> u64 {
        self.workspace().kept_bytes(&circuit.sizes())
    }

    fn evaluates(&self) -> bool {
        true
    }

    fn evict(&self, circuit: &Circuit) {
        let is_of_it = |known: &Known| known.circuit.name() == circuit.name();
        self.circuits.remove_all(is_of_it);
    }

    fn evict_params(&self, params: &MappedParams) {
        let is_of_them = |known: &Known| ptr::eq(Arc::as_ptr(&known.params), params);
        self.circuits.remove_all(is_of_them);
    }

    fn prove_start(
        self: Arc<Self>,
        synthesized: Synthesized,
        trace: Trace<'_>,
    ) -> Result<Box<dyn Pending>, BackendError> {
        let (partition, randomness) = Partition::new(synthesized);
        let (ran, msm) = self.run(&partition, randomness.needs_b_g1(), trace)?;
        let Partition {
            params, checkpoint, ..
        } = partition;
        Ok(Box::new(PendingOnDevice {
            ran,
            msm,
            params,
            randomness,
            checkpoint,
        }))
    }
}

struct PendingOnDevice {
    ran: RanProof,
    msm: Option<RunningMsm>,
    params: Arc<MappedParams>,
    randomness: Randomness,
    checkpoint: Checkpoint<'static>,
}

impl Pending for PendingOnDevice {
    fn finish(self: Box<Self>, trace: Trace<'_>) -> Result<Proof<Bls12>, BackendError> {
        let Self {
            ran,
            msm,
            params,
            randomness,
            checkpoint,
        } = *self;
        let (sums, figures) = trace.time(Stage::BG2Wait, || {
            let (mut sums, mut figures) = ran.finish(&checkpoint)?;
            if let Some(msm) = msm {
                let (sum, ran) = msm.join()?;
                sums.b_g2 = sum;
                figures.b_g2_ms = (ran.end - ran.start).as_secs_f64() * 1e3;
                trace.between_on(ran.lane, Stage::BG2, ran.start, ran.end);
            }
            Ok::<_, BackendError>((sums, figures))
        })?;
        tracing::debug!(?figures, "a proof's device part");
        let blinding = Blinding::new(randomness, || Ok::<_, BackendError>(sums.b_g1))?;
        let sums = Sums {
            h_and_l: sums.h + sums.l,
            a: sums.a,
            b_g2: sums.b_g2,
        };
        trace.time(Stage::Assemble, || assemble(params.vk(), &sums, &blinding))
    }
}
