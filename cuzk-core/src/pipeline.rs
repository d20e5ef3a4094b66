//! The way of one partition through the engine.
//!
//! ```text
//! Job ─▶ witness ─▶ a, b ─▶ Synthesized ─▶ Pending ─▶ proof ─▶ VerifiedProof
//!        synthesize_partition          prove_start    prove_finish
//! ```
//!
//! A backend may evaluate a and b itself; then there are no vectors before it.
//!
//! Not a scheduler: each stage is a function that takes its predecessor by
//! value, and the engine decides on which thread it runs. The invariant: bytes
//! come only out of the last one, through the verifier.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicI32;

use bellperson::groth16::PreparedVerifyingKey;
use blstrs::{Bls12, Scalar};
use cuzk_kernels::{Checkpoint, Isa};
use cuzk_pce::{Columns, EvalError, Gate, PackedWitness};
use ff::Field;
use rayon::ThreadPool;
use rayon::prelude::*;

use crate::backend::{
    Backend, BackendError, Evaluation, Pending, Randomness, SharedCheckpoint, Synthesized,
};
use crate::circuit::Circuit;
use crate::kinds::{Job, WitnessContext, Writer};
use crate::memory::buffer::{Buffer, BufferPool};
use crate::params::MappedParams;
use crate::timeline::{Stage, Trace};
use crate::verify::{VerifiedProof, verify_partition};
use crate::{Error, Result};

/// Scalars that one task zeroes at a time.
const FILL_TASK: usize = 1 << 14;

/// What synthesis runs on.
#[derive(Clone)]
pub struct SynthesisResources<'a> {
    /// Its threads.
    pub pool: &'a ThreadPool,
    /// The instructions of the witness' hashes.
    pub isa: Isa,
    /// Where it takes the witness and the vectors over the domain from.
    pub buffers: &'a Arc<BufferPool>,
    /// While this is above zero, the witness and evaluation yield the memory to
    /// whoever raised it, each for no longer than [`cuzk_pce::wait_max`].
    pub throttle: Option<&'a AtomicI32>,
    /// Whether A and B are evaluated here, and not left to the backend.
    pub evaluate: bool,
    /// What may pause or stop the partition, here and on the device.
    pub checkpoint: SharedCheckpoint,
}

impl fmt::Debug for SynthesisResources<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SynthesisResources").finish_non_exhaustive()
    }
}

/// Computes the witness of a partition, evaluates A and B on it where the backend
/// does not, and draws its proof's randomness.
///
/// # Errors
/// A vanilla proof from which the circuit cannot be satisfied, a witness of
/// another shape than the circuit's, or [`Error::Stopped`].
pub fn synthesize_partition(
    job: &dyn Job,
    partition: usize,
    circuit: Arc<Circuit>,
    params: Arc<MappedParams>,
    resources: SynthesisResources<'_>,
    trace: Trace<'_>,
) -> Result<Synthesized> {
    let SynthesisResources {
        pool,
        isa,
        buffers,
        throttle,
        evaluate,
        checkpoint,
    } = resources;
    let stage = match job.writer() {
        Writer::Native => Stage::Witness,
        Writer::Circuit => Stage::CircuitWitness,
    };
    let memory = buffers.witness_memory();
    let throttled = Throttled {
        gate: Gate::new(throttle, circuit.program().rows()),
        checkpoint: &*checkpoint,
    };
    let context = WitnessContext {
        isa,
        memory: &memory,
        checkpoint: &throttled,
    };
    let witness = trace.time(stage, || {
        if !throttled.pass() {
            return Err(Error::Stopped);
        }
        pool.install(|| job.witness_in(partition, context))
    })?;
    if !checkpoint.pass() {
        return Err(Error::Stopped);
    }
    let evaluation = if evaluate {
        let [mut a, mut b] = domain_buffers(&circuit, buffers)?;
        let out = [&mut *a, &mut *b];
        trace.time(Stage::Evaluate, || {
            pool.install(|| evaluate_partition(&circuit, &witness, out, throttle, &*checkpoint))
        })?;
        Evaluation::Done([a, b])
    } else {
        Evaluation::Left(Arc::clone(buffers))
    };
    Ok(Synthesized {
        circuit,
        params,
        witness,
        evaluation,
        randomness: Randomness::from_os(),
        checkpoint,
    })
}

/// A witness's checkpoint, at which it yields as evaluation does.
struct Throttled<'a> {
    gate: Gate<'a>,
    checkpoint: &'a dyn Checkpoint,
}

impl Checkpoint for Throttled<'_> {
    fn pass(&self) -> bool {
        self.gate.pass();
        self.checkpoint.pass()
    }
}

/// Two vectors over the circuit's domain, of unspecified values.
///
/// # Errors
/// When the system has no memory.
pub fn domain_buffers(circuit: &Circuit, buffers: &Arc<BufferPool>) -> Result<[Buffer; 2]> {
    let take = || {
        buffers
            .take(circuit.domain_len())
            .map_err(|error| Error::Synthesis {
                stage: "buffers",
                problem: format!("{error}; lower memory.total_budget"),
            })
    };
    Ok([take()?, take()?])
}

/// A·w and B·w over the circuit's domain: its rows, those that Groth16 appends
/// for the inputs, then zeros. `checkpoint` is asked before every few thousand
/// rows. The witness is taken to satisfy the rows; the verifier rejects what is
/// proved with any other.
///
/// # Errors
/// A witness or buffers of another circuit's shape; [`Error::Stopped`].
pub fn evaluate_partition(
    circuit: &Circuit,
    witness: &PackedWitness<Scalar>,
    [a, b]: [&mut [Scalar]; 2],
    throttle: Option<&AtomicI32>,
    checkpoint: &dyn Checkpoint,
) -> Result<()> {
    let rows = circuit.program().rows() + witness.num_inputs();
    let (a, a_rest) = a.split_at_mut(rows.min(a.len()));
    let (b, b_rest) = b.split_at_mut(rows.min(b.len()));
    for rest in [a_rest, b_rest] {
        rest.par_chunks_mut(FILL_TASK)
            .for_each(|task| task.fill(Scalar::ZERO));
    }
    let goes_on = || checkpoint.pass();
    circuit
        .program()
        .evaluate_satisfied(witness, [a, b], throttle, &goes_on)
        .map_err(|error| match error {
            EvalError::Stopped => Error::Stopped,
            error => Error::Synthesis {
                stage: "evaluate",
                problem: error.to_string(),
            },
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
    Arc::clone(backend)
        .prove_start(synthesized, trace)
        .map_err(|error| backend_error(backend.name(), partition, error))
}

/// Finishes a partition outside the device region, and verifies it in `pool`.
///
/// # Errors
/// [`Error::Backend`], [`Error::Stopped`], [`Error::Rejected`].
pub fn prove_finish(
    pending: Box<dyn Pending>,
    backend: &dyn Backend,
    job: &dyn Job,
    partition: usize,
    key: &PreparedVerifyingKey<Bls12>,
    pool: &ThreadPool,
    trace: Trace<'_>,
) -> Result<VerifiedProof> {
    let proof = pending
        .finish(trace)
        .map_err(|error| backend_error(backend.name(), partition, error))?;
    trace.time(Stage::Verify, || {
        pool.install(|| verify_partition(key, &proof, &job.public_inputs(partition)?, partition))
    })
}

fn backend_error(backend: &'static str, partition: usize, error: BackendError) -> Error {
    match error {
        BackendError::Stopped => Error::Stopped,
        error => Error::Backend {
            partition,
            backend,
            problem: error.to_string(),
            culprit: error.culprit(),
        },
    }
}
