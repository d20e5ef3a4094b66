//! The way of one partition, from its statement to its verified proof.
//!
//! ```text
//! statement ─▶ witness ─▶ a, b ─▶ Synthesized ─▶ Pending ─▶ proof ─▶ VerifiedProof
//!              synthesize_partition         prove_start      prove_finish
//! ```
//!
//! [`prove_partition`] calls all stages in order, on the current thread. The
//! engine's workers call the stages one by one, each on the thread that is meant
//! for it. A backend may evaluate a and b itself; then they exist nowhere before it.
//!
//! Not a scheduler: a stage takes its predecessor by value, so that a large buffer
//! is dropped where it was needed last. The invariants: proof bytes come only out
//! of the last stage, through the verifier; a panic in a stage is its error.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicI32;

use bellperson::groth16::{PreparedVerifyingKey, Proof};
use blstrs::{Bls12, Scalar};
use cuzk_filecoin::{Statement, WitnessContext, Writer};
use cuzk_groth16::apart;
use cuzk_groth16::backend::{
    Backend, BackendError, Batch, BitSums, Evaluation, Pending, Randomness, Synthesized,
};
use cuzk_groth16::evaluate::{
    Throttle, domain_buffers, evaluate_partition, evaluate_plain_partition,
};
use cuzk_groth16::params::MappedParams;
use cuzk_groth16::verify::{Rejected, VerifiedProof, verify};
use cuzk_groth16::{Circuit, CircuitForm};
use cuzk_kernels::Isa;
use cuzk_memory::{Buffer, BufferPool, Checkpoint, ThrottleManner};
use cuzk_pce::PackedWitness;
use rayon::ThreadPool;

use crate::error::MORE_MEMORY;
use crate::panics::catch_panic;
#[cfg(test)]
use crate::planted::{Plant, is_planted};
use crate::timeline::{Stage, Trace};
#[cfg(test)]
use crate::verdicts::verdict;
use crate::{Error, Result};

/// One partition of a statement, with the circuit and the parameters to prove it.
#[derive(Clone)]
pub struct Partition<'a> {
    /// The statement.
    pub statement: &'a dyn Statement,
    /// Which of its partitions, from 0.
    pub index: usize,
    /// The circuit that the partition instantiates.
    pub circuit: Arc<Circuit>,
    /// The circuit's Groth16 parameters.
    pub params: Arc<MappedParams>,
    /// The sums over its bits, if [`sum_bits`] made them.
    pub bit_sums: Option<BitSums>,
    /// r and s of the proof; [`Randomness::from_os`] where they are not fixed.
    pub randomness: Randomness,
}

/// What synthesis runs with.
#[derive(Clone)]
pub struct SynthesisResources<'a> {
    /// Its threads.
    pub pool: &'a ThreadPool,
    /// The instructions of the witness's hashes.
    pub isa: Isa,
    /// The memory of the witness and of the vectors over the domain.
    pub buffers: &'a Arc<BufferPool>,
    /// While this count is above zero, the witness and the evaluation leave the
    /// memory bandwidth to the work that raised it, each for at most
    /// [`cuzk_memory::wait_max`].
    pub throttle: Option<&'a AtomicI32>,
    /// How they give way. A witness never yields: it sleeps or goes on.
    pub manner: ThrottleManner,
    /// The form of the rows that are evaluated.
    pub form: CircuitForm,
    /// True if A and B are evaluated here, and not left to the backend.
    pub evaluate: bool,
    /// Pauses or stops the partition, here and on the device.
    pub checkpoint: Checkpoint<'static>,
}

/// What proving runs with once the partition is synthesized.
#[derive(Clone, Copy)]
pub struct ProvingResources<'a> {
    /// Where the partition is proved.
    pub backend: &'a Arc<dyn Backend>,
    /// The device's index in the timeline.
    pub device: usize,
    /// The key that the proof is verified with.
    pub key: &'a PreparedVerifyingKey<Bls12>,
    /// The threads of the verification.
    pub pool: &'a ThreadPool,
}

/// The part of a partition's way in which it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Witness and evaluation.
    Synthesis,
    /// The device region.
    Start,
    /// Everything after it, the verification included.
    Finish,
}

/// A partition that was not proved.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct StepError {
    /// The step that failed.
    pub step: Step,
    /// Why.
    pub error: Box<Error>,
}

impl fmt::Debug for Partition<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Partition")
            .field("index", &self.index)
            .field("circuit", &self.circuit)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for SynthesisResources<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SynthesisResources").finish_non_exhaustive()
    }
}

impl fmt::Debug for ProvingResources<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProvingResources")
            .field("device", &self.device)
            .finish_non_exhaustive()
    }
}

/// Proves a partition: all stages in order, on the current thread and the pools of
/// its resources. `region_over` is called between the device region and the rest,
/// when the vectors over the domain are free.
///
/// # Errors
/// The step that failed, with its error.
pub fn prove_partition(
    partition: Partition<'_>,
    synthesis: SynthesisResources<'_>,
    proving: ProvingResources<'_>,
    region_over: impl FnOnce(),
    trace: Trace<'_>,
) -> std::result::Result<VerifiedProof, StepError> {
    let (statement, index) = (partition.statement, partition.index);
    let synthesized =
        synthesize_partition(partition, synthesis, trace).map_err(at(Step::Synthesis))?;
    let trace = trace.on_device(proving.device);
    let pending =
        prove_start(proving.backend, synthesized, index, trace).map_err(at(Step::Start))?;
    region_over();
    prove_finish(pending, statement, index, proving, trace).map_err(at(Step::Finish))
}

fn at(step: Step) -> impl Fn(Error) -> StepError {
    move |error| StepError {
        step,
        error: Box::new(error),
    }
}

/// Computes the witness of a partition, and evaluates A and B on it where the
/// backend does not.
///
/// # Errors
/// A vanilla proof from which the circuit cannot be satisfied, a witness of
/// another shape than the circuit's, or [`Error::Stopped`].
pub fn synthesize_partition(
    partition: Partition<'_>,
    resources: SynthesisResources<'_>,
    trace: Trace<'_>,
) -> Result<Synthesized> {
    catch_panic("synthesis", || synthesize(partition, resources, trace))
}

fn synthesize(
    partition: Partition<'_>,
    resources: SynthesisResources<'_>,
    trace: Trace<'_>,
) -> Result<Synthesized> {
    let witness = write_witness(&partition, &resources, trace)?;
    let Partition {
        circuit,
        params,
        bit_sums,
        randomness,
        ..
    } = partition;
    resources.checkpoint.check()?;
    let evaluation = if resources.evaluate {
        Evaluation::Done(evaluate(&circuit, &witness, &resources, trace)?)
    } else {
        Evaluation::Left(Arc::clone(resources.buffers))
    };
    let checkpoint = resources.checkpoint;
    Ok(Synthesized {
        circuit,
        params,
        witness,
        evaluation,
        bit_sums,
        randomness,
        checkpoint,
    })
}

/// Evaluates A and B on a witness, with the rows in the form of `resources`.
fn evaluate(
    circuit: &Circuit,
    witness: &PackedWitness<Scalar>,
    resources: &SynthesisResources<'_>,
    trace: Trace<'_>,
) -> Result<[Buffer; 2]> {
    let (buffers, checkpoint) = (resources.buffers, &resources.checkpoint);
    let manner = resources.manner;
    let throttle = resources.throttle.map(|count| Throttle { count, manner });
    // Unfolded once for all partitions, outside of any pool and of the time.
    let plain = match resources.form {
        CircuitForm::Compiled => None,
        CircuitForm::Plain => Some(circuit.plain_rows(checkpoint)?),
    };
    let [mut a, mut b] = domain_buffers(circuit, buffers)?;
    let out = [&mut *a, &mut *b];
    let evaluate = || match &plain {
        None => evaluate_partition(circuit, witness, out, throttle, checkpoint),
        Some(rows) => {
            let lent = (&**buffers, checkpoint);
            evaluate_plain_partition(circuit, rows, witness, out, throttle, lent)
        }
    };
    trace.time_throttled(Stage::Evaluate, |stood_aside| {
        stood_aside.set(apart::install(resources.pool, evaluate)??);
        Ok::<_, Error>(())
    })?;
    Ok([a, b])
}

/// Writes the witness of a partition for [`sum_bits`]. The partition is synthesized anew
/// afterwards.
///
/// # Errors
/// As [`synthesize_partition`].
pub fn witness_of_partition(
    partition: &Partition<'_>,
    resources: &SynthesisResources<'_>,
    trace: Trace<'_>,
) -> Result<PackedWitness<Scalar>> {
    catch_panic("witness", || write_witness(partition, resources, trace))
}

/// Adds up the bits of several partitions in one pass over the points. Returns the sums of
/// each, in order; none if the backend does not do it.
///
/// # Errors
/// [`Error::Backend`], [`Error::Stopped`].
pub fn sum_bits(
    backend: &Arc<dyn Backend>,
    batch: &Batch<'_>,
    partition: usize,
    trace: Trace<'_>,
) -> Result<Vec<BitSums>> {
    catch_panic("sums of bits", || {
        let sums = backend.sum_bits(batch, trace);
        sums.map_err(|error| backend_error(backend.name(), partition, error))
    })
}

fn write_witness(
    partition: &Partition<'_>,
    resources: &SynthesisResources<'_>,
    trace: Trace<'_>,
) -> Result<PackedWitness<Scalar>> {
    let statement = partition.statement;
    let stage = match statement.writer() {
        Writer::Native => Stage::Witness,
        Writer::Circuit => Stage::CircuitWitness,
    };
    let memory = resources.buffers.array_memory();
    let rows = partition.circuit.program().rows();
    let count = resources
        .throttle
        .filter(|_| resources.manner == ThrottleManner::Sleep);
    let throttled = resources.checkpoint.throttled(count, rows);
    let context = WitnessContext {
        isa: resources.isa,
        memory: &memory,
        checkpoint: &throttled,
    };
    trace.time_throttled(stage, |stood_aside| {
        throttled.check()?;
        let write = || Ok(statement.witness_in(partition.index, context)?);
        let written = apart::install(resources.pool, write)?;
        stood_aside.set(throttled.stood_aside());
        written
    })
}

/// Runs the device region of a partition.
///
/// # Errors
/// [`Error::Backend`], [`Error::Stopped`].
pub fn prove_start(
    backend: &Arc<dyn Backend>,
    synthesized: Synthesized,
    partition: usize,
    trace: Trace<'_>,
) -> Result<Box<dyn Pending>> {
    catch_panic("prove", || {
        Arc::clone(backend)
            .prove_start(synthesized, trace)
            .map_err(|error| backend_error(backend.name(), partition, error))
    })
}

/// Finishes a partition outside the device region, and verifies its proof.
///
/// # Errors
/// [`Error::Backend`], [`Error::Stopped`], [`Error::Rejected`].
pub fn prove_finish(
    pending: Box<dyn Pending>,
    statement: &dyn Statement,
    partition: usize,
    resources: ProvingResources<'_>,
    trace: Trace<'_>,
) -> Result<VerifiedProof> {
    let finish = || {
        let proof = pending
            .finish(trace)
            .map_err(|error| backend_error(resources.backend.name(), partition, error))?;
        #[cfg(test)]
        if is_planted(Plant::UnverifiedProof) {
            let mut bytes = [0; cuzk_groth16::verify::PROOF_BYTES];
            let written = proof.write(&mut bytes[..]);
            return written.map_or(Err(Error::Stopped), |()| {
                Ok(VerifiedProof::unchecked(bytes))
            });
        }
        let verify = || {
            let inputs = statement.public_inputs(partition)?;
            verify_partition(resources.key, &proof, &inputs, partition)
        };
        trace.time(Stage::Verify, || apart::install(resources.pool, verify))?
    };
    catch_panic("finish", || trace.time(Stage::Finish, finish))
}

/// Verifies `proof` of a partition, as it will be read by others.
///
/// # Errors
/// [`Error::Rejected`].
pub fn verify_partition(
    key: &PreparedVerifyingKey<Bls12>,
    proof: &Proof<Bls12>,
    public_inputs: &[Scalar],
    partition: usize,
) -> Result<VerifiedProof> {
    #[cfg(test)]
    if let Some(verdict) = verdict(proof, public_inputs) {
        let problem = "it is another statement's".to_owned();
        return verdict.ok_or(Error::Rejected { partition, problem });
    }
    verify(key, proof, public_inputs)
        .map_err(|Rejected { problem }| Error::Rejected { partition, problem })
}

fn backend_error(backend: &'static str, partition: usize, error: BackendError) -> Error {
    match error {
        BackendError::Stopped => Error::Stopped,
        error => Error::Backend {
            partition,
            backend,
            problem: match error {
                BackendError::Memory(_) => format!("{error}; {MORE_MEMORY}"),
                _ => error.to_string(),
            },
            culprit: error.culprit(),
        },
    }
}
