//! A and B of a circuit on a witness, over the domain of a proof's polynomials.
//!
//! Not the evaluation of rows, which is [`cuzk_pce`]'s. The invariant: every scalar of both
//! vectors is written.

use std::sync::Arc;
use std::sync::atomic::AtomicI32;
use std::time::Duration;

use blstrs::Scalar;
use cuzk_memory::{Buffer, BufferPool, Checkpoint, Gate, ThrottleManner};
use cuzk_pce::{
    Columns, EvalError, PackedWitness, R1cs, THROTTLE_CHUNKS, Witness, spmv_parallel_into,
};
use ff::Field;
use rayon::prelude::*;

use crate::circuit::{Circuit, CircuitForm};
use crate::{Error, Result};

/// Scalars that one task zeroes at a time.
const FILL_TASK: usize = 1 << 14;

/// A count that asks evaluation to give way, and how it does.
#[derive(Clone, Copy, Debug)]
pub struct Throttle<'a> {
    /// Evaluation gives way while it is above zero.
    pub count: &'a AtomicI32,
    /// How it gives way.
    pub manner: ThrottleManner,
}

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
/// thousand rows, and gives way there while `throttle` is above zero. A thread that sleeps
/// does so at each of these places, one that yields at every [`THROTTLE_CHUNKS`]th. The witness
/// must satisfy the rows: the verifier rejects a proof with any other witness. Returns the
/// wall-clock time in which at least one thread slept for the throttle.
///
/// # Errors
/// A witness or buffers of another circuit's shape; [`Error::Stopped`].
pub fn evaluate_partition(
    circuit: &Circuit,
    witness: &PackedWitness<Scalar>,
    [a, b]: [&mut [Scalar]; 2],
    throttle: Option<Throttle<'_>>,
    checkpoint: &Checkpoint<'_>,
) -> Result<Duration> {
    let gate = gate(throttle, circuit.program().rows(), THROTTLE_CHUNKS);
    let checkpoint = checkpoint.gated(gate);
    let [a, b] = cut_and_zero(circuit, witness, [a, b]);
    circuit
        .program()
        .evaluate_satisfied(witness, [a, b], &checkpoint)
        .map_err(failed)?;
    Ok(checkpoint.stood_aside())
}

/// Evaluates A·w, B·w and C·w with plain matrices, as [`evaluate_partition`] evaluates the
/// compiled circuit. Groth16 provers compute C·w for any witness. Here the backend takes
/// A·w∘B·w in its place, so C·w is only computed. It and the unpacked witness are freed in
/// the manner of `buffers`. Each thread gives way at every [`THROTTLE_CHUNKS`]th chunk.
///
/// # Errors
/// As [`evaluate_partition`], and a circuit with too many terms for plain matrices.
pub fn evaluate_plain_partition(
    circuit: &Circuit,
    rows: &R1cs<Scalar>,
    witness: &PackedWitness<Scalar>,
    [a, b]: [&mut [Scalar]; 2],
    throttle: Option<Throttle<'_>>,
    (buffers, checkpoint): (&BufferPool, &Checkpoint<'_>),
) -> Result<Duration> {
    // `spmv_parallel_into` passes the gate at every so many chunks itself.
    let gate = gate(throttle, rows.rows(), 1);
    let plain = witness.to_plain();
    let [a, b] = cut_and_zero(circuit, witness, [a, b]);
    let evaluated = products(rows, &plain, [a, b], &gate, checkpoint);
    let bytes = size_of_val(plain.values());
    buffers.drop_later(plain, bytes as u64);
    let c = evaluated.map_err(failed)?;
    let bytes = size_of_val(&c[..]);
    buffers.drop_later(c, bytes as u64);
    Ok(gate.waited())
}

/// Returns C·w, and writes A·w and B·w with the rows of the inputs.
fn products(
    rows: &R1cs<Scalar>,
    witness: &Witness<Scalar>,
    [a, b]: [&mut [Scalar]; 2],
    gate: &Gate<'_>,
    checkpoint: &Checkpoint<'_>,
) -> std::result::Result<Vec<Scalar>, EvalError> {
    let (a, a_inputs) = a.split_at_mut(rows.rows().min(a.len()));
    let (b, b_inputs) = b.split_at_mut(rows.rows().min(b.len()));
    let mut c = vec![Scalar::ZERO; rows.rows()];
    let values = witness.values();
    let of_matrices = [(rows.a(), a), (rows.b(), b), (rows.c(), &mut c)];
    for (matrix, out) in of_matrices {
        spmv_parallel_into(matrix, values, out, gate, checkpoint)?;
    }
    for (row, input) in a_inputs.iter_mut().zip(witness.inputs()) {
        *row = *input;
    }
    b_inputs.fill(Scalar::ZERO);
    Ok(c)
}

/// Returns the bytes that a partition holds while its rows are evaluated in this form,
/// beside what every form holds.
#[must_use]
pub fn form_bytes_of_partition(circuit: &Circuit, form: CircuitForm) -> u64 {
    let program = circuit.program();
    match form {
        CircuitForm::Compiled => 0,
        CircuitForm::Plain => {
            ((program.num_variables() + program.rows()) * size_of::<Scalar>()) as u64
        }
    }
}

/// Returns the bytes of a circuit's rows in this form, beside the compiled rows.
#[must_use]
pub fn form_bytes_of_circuit(circuit: &Circuit, form: CircuitForm) -> u64 {
    const TERM_BYTES: u64 = (size_of::<Scalar>() + size_of::<u32>()) as u64;
    let program = circuit.program();
    match form {
        CircuitForm::Compiled => 0,
        CircuitForm::Plain => {
            let row_ptrs = 3 * size_of::<u32>() * (program.rows() + 1);
            row_ptrs as u64 + program.nnz().iter().sum::<u64>() * TERM_BYTES
        }
    }
}

/// Returns a gate for one evaluation. If it yields, it does so at every `every`th pass.
fn gate(throttle: Option<Throttle<'_>>, rows: usize, every: usize) -> Gate<'_> {
    let count = throttle.map(|throttle| throttle.count);
    match throttle.map(|throttle| throttle.manner) {
        None | Some(ThrottleManner::Sleep) => Gate::new(count, rows),
        Some(ThrottleManner::Yield) => Gate::yielding(count, every),
    }
}

/// Returns the parts of the vectors that an evaluation writes, and zeroes the rest.
fn cut_and_zero<'a>(
    circuit: &Circuit,
    witness: &PackedWitness<Scalar>,
    [a, b]: [&'a mut [Scalar]; 2],
) -> [&'a mut [Scalar]; 2] {
    let rows = circuit.program().rows() + witness.num_inputs();
    let (a, a_rest) = a.split_at_mut(rows.min(a.len()));
    let (b, b_rest) = b.split_at_mut(rows.min(b.len()));
    for rest in [a_rest, b_rest] {
        rest.par_chunks_mut(FILL_TASK)
            .for_each(|task| task.fill(Scalar::ZERO));
    }
    [a, b]
}

fn failed(error: EvalError) -> Error {
    match error {
        EvalError::Stopped => Error::Stopped,
        error => Error::Evaluation {
            stage: "evaluate",
            problem: error.to_string(),
        },
    }
}
