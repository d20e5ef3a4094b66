//! The way of one partition through the engine.
//!
//! ```text
//! Job ─▶ witness ─▶ a, b ─▶ Synthesized ─▶ Pending ─▶ proof ─▶ VerifiedProof
//!        synthesize_partition          prove_start    prove_finish
//! ```
//!
//! Not a scheduler: each stage is a function that takes its predecessor by
//! value, and the engine decides on which thread it runs. The invariant: bytes
//! come only out of the last one, through the verifier.

use std::sync::Arc;
use std::sync::atomic::AtomicI32;

use bellperson::groth16::PreparedVerifyingKey;
use blstrs::{Bls12, Scalar};
use cuzk_pce::{Columns, Evaluated, PackedWitness};
use ff::Field;
use rayon::ThreadPool;

use crate::backend::{Backend, BackendError, Pending, Randomness, Synthesized};
use crate::circuit::Circuit;
use crate::kinds::Job;
use crate::params::MappedParams;
use crate::timeline::{Stage, Trace};
use crate::verify::{VerifiedProof, verify_partition};
use crate::{Error, Result};

/// Computes the witness of a partition and evaluates A and B on it.
///
/// While `throttle` is above zero the evaluation yields the memory to whoever
/// raised it; see [`cuzk_pce::WAIT_MAX`].
///
/// # Errors
/// A vanilla proof from which the circuit cannot be satisfied, or a witness of
/// another shape than the circuit's.
pub fn synthesize_partition(
    job: &dyn Job,
    partition: usize,
    circuit: Arc<Circuit>,
    params: Arc<MappedParams>,
    pool: &ThreadPool,
    throttle: Option<&AtomicI32>,
    trace: Trace<'_>,
) -> Result<Synthesized> {
    let witness = trace.time(Stage::Witness, || pool.install(|| job.witness(partition)))?;
    let evaluated = trace.time(Stage::Evaluate, || {
        pool.install(|| evaluate_partition(&circuit, &witness, throttle))
    })?;
    Ok(Synthesized {
        circuit,
        params,
        witness,
        evaluated,
    })
}

/// A·w and B·w, with the rows that Groth16 appends for the inputs.
///
/// # Errors
/// A witness of another circuit's shape.
pub fn evaluate_partition(
    circuit: &Circuit,
    witness: &PackedWitness<Scalar>,
    throttle: Option<&AtomicI32>,
) -> Result<Evaluated<Scalar>> {
    let rows = circuit.program().rows() + witness.num_inputs();
    let [mut a, mut b] = [(); 2].map(|()| vec![Scalar::ZERO; rows]);
    circuit
        .program()
        .evaluate_into(witness, &mut a, &mut b, throttle)
        .map_err(|error| Error::Synthesis {
            stage: "evaluate",
            problem: error.to_string(),
        })?;
    Ok(Evaluated { a, b })
}

/// Runs the device region of a partition.
///
/// # Errors
/// [`Error::Backend`].
pub fn prove_start<'a>(
    backend: &'a dyn Backend,
    synthesized: Synthesized,
    partition: usize,
    trace: Trace<'_>,
) -> Result<Box<dyn Pending + 'a>> {
    backend
        .prove_start(synthesized, trace)
        .map_err(|error| backend_error(backend.name(), partition, &error))
}

/// Finishes a partition outside the device region, and verifies it.
///
/// # Errors
/// [`Error::Backend`], [`Error::Rejected`].
pub fn prove_finish(
    pending: Box<dyn Pending + '_>,
    backend: &dyn Backend,
    job: &dyn Job,
    partition: usize,
    key: &PreparedVerifyingKey<Bls12>,
    randomness: Randomness,
    trace: Trace<'_>,
) -> Result<VerifiedProof> {
    let proof = pending
        .finish(randomness, trace)
        .map_err(|error| backend_error(backend.name(), partition, &error))?;
    trace.time(Stage::Verify, || {
        verify_partition(key, &proof, &job.public_inputs(partition)?, partition)
    })
}

fn backend_error(backend: &'static str, partition: usize, error: &BackendError) -> Error {
    Error::Backend {
        partition,
        backend,
        problem: error.to_string(),
    }
}
