//! The backend of a CUDA device. The compiled circuit and the parameters' points stay on
//! it. A packed witness goes up, and the results of five MSMs come down.
//!
//! Not the device (`supraseal_sys::device`), and not the choice of devices. The
//! invariant: a device that fails fails its partition and never the process.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bellperson::groth16::Proof;
use blstrs::{Bls12, Scalar};
use cuzk_memory::Checkpoint;
use cuzk_pce::PackedWitness;
use cuzk_pce::program::Flat;
use cuzk_timeline::{Stage, Trace};
use supraseal_sys::Status;
use supraseal_sys::device::{
    CircuitArrays, CircuitSource, DeviceCircuit, DeviceOptions, DevicePlan, DeviceProver,
    DeviceSums, Intermediates, ProofFigures, Queries, RanProof, StagedProof, WitnessArrays,
    WitnessSource,
};

use super::assemble::{Blinding, Sums, assemble};
use super::footprint::{DeviceWorkspace, Footprint, SynthesisShare};
use super::{Backend, BackendError, Pending, Randomness, Synthesized};
use crate::circuit::Circuit;
use crate::once_map::OnceMap;
use crate::params::{MappedParams, Shapes};

/// Proves on a device.
pub struct CudaBackend {
    device: Arc<DeviceProver>,
    circuits: OnceMap<Known, DeviceCircuit>,
    last: Mutex<Option<ProofFigures>>,
    workspace: DeviceWorkspace,
}

impl fmt::Debug for CudaBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CudaBackend")
            .field("device", &self.device)
            .finish_non_exhaustive()
    }
}

impl CudaBackend {
    /// Returns a backend that proves on `device`.
    #[must_use]
    pub fn new(device: Arc<DeviceProver>) -> Self {
        Self {
            device,
            circuits: OnceMap::default(),
            last: Mutex::default(),
            workspace: DeviceWorkspace {
                workers: 1,
                b_g2_threads: Some(1),
            },
        }
    }

    /// Returns the backend for a device that was opened for so many workers.
    #[must_use]
    pub fn with_workers(mut self, workers: u32) -> Self {
        self.workspace.workers = workers.into();
        self
    }

    /// Returns the backend with the MSM in G2 on a pool of so many threads on the host;
    /// `None` if the device makes it.
    #[must_use]
    pub fn with_host_b_g2(mut self, threads: Option<u32>) -> Self {
        self.workspace.b_g2_threads = threads;
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
        let (ran, intermediates) = self.stage(&partition)?.run_inspected(true, checkpoint)?;
        Ok((intermediates, ran.finish(checkpoint)?.0))
    }

    /// Brings a partition's witness to the device, and its circuit if it is not there.
    fn stage(&self, partition: &Partition) -> Result<StagedProof, BackendError> {
        let witness = Arc::clone(&partition.witness) as Arc<dyn WitnessSource>;
        let circuit = self.circuit(partition)?;
        Ok(circuit.stage(witness, &partition.checkpoint)?)
    }

    /// The device region of a partition.
    fn run(
        &self,
        partition: &Partition,
        b_g1: bool,
        trace: Trace<'_>,
    ) -> Result<RanProof, BackendError> {
        let staged = self.stage(partition)?;
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
        Ok(ran)
    }
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
    witness: Arc<LentWitness>,
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
            evaluation: _,
            randomness,
            checkpoint,
        } = synthesized;
        let partition = Self {
            circuit,
            params,
            witness: Arc::new(LentWitness(witness)),
            checkpoint,
        };
        (partition, randomness)
    }
}

impl Backend for CudaBackend {
    fn name(&self) -> &'static str {
        "cuda"
    }

    fn footprint(&self, circuit: &Circuit, _: &Shapes, share: SynthesisShare) -> Footprint {
        self.workspace.footprint(circuit, share)
    }

    fn kept_bytes(&self, circuit: &Circuit) -> u64 {
        self.workspace.kept_bytes(circuit)
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
        let ran = self.run(&partition, randomness.needs_b_g1(), trace)?;
        let Partition {
            params, checkpoint, ..
        } = partition;
        Ok(Box::new(PendingOnDevice {
            ran,
            params,
            randomness,
            checkpoint,
        }))
    }
}

struct PendingOnDevice {
    ran: RanProof,
    params: Arc<MappedParams>,
    randomness: Randomness,
    checkpoint: Checkpoint<'static>,
}

impl Pending for PendingOnDevice {
    fn finish(self: Box<Self>, trace: Trace<'_>) -> Result<Proof<Bls12>, BackendError> {
        let Self {
            ran,
            params,
            randomness,
            checkpoint,
        } = *self;
        let (sums, figures) = trace.time(Stage::BG2, || ran.finish(&checkpoint))?;
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

/// A witness, lent to the device until its proof ends.
struct LentWitness(PackedWitness<Scalar>);

impl WitnessSource for LentWitness {
    fn arrays(&self) -> WitnessArrays<'_> {
        let aux = self.0.aux_slice();
        WitnessArrays {
            inputs: self.0.inputs(),
            bits: aux.bits,
            wide: aux.wide,
            wide_values: aux.values,
        }
    }
}

/// A circuit and its parameters, lent to a device as long as it knows them.
struct LentCircuit {
    circuit: Arc<Circuit>,
    params: Arc<MappedParams>,
    flat: Flat<Scalar>,
    log_domain: u32,
    max_wide: u32,
    b_inputs: Vec<u32>,
}

impl LentCircuit {
    fn new(circuit: &Arc<Circuit>, params: &Arc<MappedParams>) -> Result<Self, BackendError> {
        let too_large = |problem: String| {
            BackendError::Native(Status::too_large(format!("{}: {problem}", circuit.name())))
        };
        let flat = circuit
            .program()
            .flatten()
            .map_err(|error| too_large(error.to_string()))?;
        let index = |index: usize| {
            u32::try_from(index).map_err(|_| too_large(format!("{index} is past 32 bits")))
        };
        let max_wide = index(circuit.wide().all)?;
        let b_inputs = circuit.densities().b_input.iter();
        let b_inputs = b_inputs.map(index).collect::<Result<_, _>>()?;
        Ok(Self {
            log_domain: circuit.domain_len().trailing_zeros(),
            flat,
            max_wide,
            b_inputs,
            circuit: Arc::clone(circuit),
            params: Arc::clone(params),
        })
    }
}

#[allow(unsafe_code)] // Kernels do not check what they index.
// SAFETY: the tables are those of `Program::flatten`, whose indices are in
// range by construction; densities and lengths are those of the same program,
// and C++ checks them against each other.
unsafe impl CircuitSource for LentCircuit {
    fn arrays(&self) -> CircuitArrays<'_> {
        let densities = self.circuit.densities();
        let flat = &self.flat;
        CircuitArrays {
            log_domain: self.log_domain,
            rows: flat.rows,
            num_inputs: flat.num_inputs,
            num_aux: flat.num_aux,
            max_wide: self.max_wide,
            coefficients: &flat.coefficients,
            integers: &flat.integers,
            part_ends: &flat.part_ends,
            items: &flat.items,
            shapes: &flat.shapes,
            unit_rows: &flat.unit_rows,
            references: &flat.references,
            block_references: &flat.block_references,
            a_aux: densities.a_aux.words(),
            b_aux: densities.b_aux.words(),
            b_inputs: &self.b_inputs,
            points: Queries {
                h: self.params.h().bytes(),
                l: self.params.l().bytes(),
                a: self.params.a().bytes(),
                b_g1: self.params.b_g1().bytes(),
                b_g2: self.params.b_g2().bytes(),
            },
        }
    }
}
