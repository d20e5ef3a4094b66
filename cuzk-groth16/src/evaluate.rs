//! A and B of a circuit on a witness, over the domain of a proof's polynomials.
//!
//! Not the evaluation of rows, which is [`cuzk_pce`]'s. The invariant: every scalar of both
//! vectors is written.

use std::sync::Arc;
use std::sync::atomic::AtomicI32;

use blstrs::Scalar;
use cuzk_memory::{Buffer, BufferPool, Checkpoint};
use cuzk_pce::{Columns, EvalError, PackedWitness};
use ff::Field;
use rayon::prelude::*;

use crate::circuit::Circuit;
use crate::{Error, Result};

/// Scalars that one task zeroes at a time.
const FILL_TASK: usize = 1 << 14;

/// Returns two vectors over the circuit's domain, of unspecified values.
///
/// # Errors
/// [`Error::Memory`].
pub fn domain_buffers(circuit: &Circuit, buffers: &Arc<BufferPool>) -> Result<[Buffer; 2]> {
    let take = || buffers.take(circuit.domain_len()).map_err(Error::Memory);
    Ok([take()?, take()?])
}

/// Evaluates A·w and B·w over the circuit's domain: its rows, those that Groth16 appends
/// for the inputs, then zeros. Each thread passes `checkpoint` before every few
/// thousand rows, and stands aside there while `throttle` is above zero. The witness
/// must satisfy the rows: the verifier rejects a proof with any other witness.
///
/// # Errors
/// A witness or buffers of another circuit's shape; [`Error::Stopped`].
pub fn evaluate_partition(
    circuit: &Circuit,
    witness: &PackedWitness<Scalar>,
    [a, b]: [&mut [Scalar]; 2],
    throttle: Option<&AtomicI32>,
    checkpoint: &Checkpoint<'_>,
) -> Result<()> {
    let rows = circuit.program().rows() + witness.num_inputs();
    let (a, a_rest) = a.split_at_mut(rows.min(a.len()));
    let (b, b_rest) = b.split_at_mut(rows.min(b.len()));
    for rest in [a_rest, b_rest] {
        rest.par_chunks_mut(FILL_TASK)
            .for_each(|task| task.fill(Scalar::ZERO));
    }
    let throttled = checkpoint.throttled(throttle, circuit.program().rows());
    circuit
        .program()
        .evaluate_satisfied(witness, [a, b], &throttled)
        .map_err(|error| match error {
            EvalError::Stopped => Error::Stopped,
            error => Error::Evaluation {
                stage: "evaluate",
                problem: error.to_string(),
            },
        })
}
