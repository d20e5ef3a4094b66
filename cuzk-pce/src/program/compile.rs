//! Compilation: from a blank circuit straight to a program.
//!
//! A constraint system that folds every row away as it comes: into the
//! distinct shapes, the grammar of their order, and the circuit's fingerprint.
//! The rows themselves never exist side by side, so memory grows with what is
//! distinct in a circuit, not with its length.
//!
//! Unlike that of [`crate::record()`], this system is not extensible. So a circuit takes
//! its sequential branch, as it does for bellperson's parameter generator, and rows come in
//! their final order.
//!
//! Invariant: rows, variables and fingerprint are those of the recorded
//! system.

use super::{
    body::Body,
    compiled::Program,
    compiler::{Compiler, fold_while},
    file::folded_bytes,
};
use crate::{disk, record::RecordError};
use bellperson::Circuit;
use cuzk_memory::unwind;
use cuzk_memory::{Checkpoint, NEVER_STOP, Stopped};
use ff::PrimeField;

/// Compiles `circuit`, which need not have a witness.
///
/// The rows `inputᵢ · 0 = 0` that Groth16 appends are not among the rows.
///
/// # Errors
/// [`RecordError::Synthesis`] if the circuit fails. [`RecordError::Rows`] if it has more
/// variables, rows or distinct parts than 31 bits can number, or names a variable that it
/// has not allocated yet.
pub fn compile<S: PrimeField, C: Circuit<S>>(circuit: C) -> Result<Program<S>, RecordError> {
    compile_while(circuit, &NEVER_STOP)
}

/// Compiles a circuit, and passes `checkpoint` before every few thousand rows. A stop
/// unwinds out of the circuit, because gadgets take no error from the constraint system.
/// Where panics end the process, the checkpoint is not passed.
///
/// # Errors
/// As [`compile`], and [`RecordError::Stopped`].
pub fn compile_while<S: PrimeField, C: Circuit<S>>(
    circuit: C,
    checkpoint: &Checkpoint<'_>,
) -> Result<Program<S>, RecordError> {
    let compiled = unwind::catch::<_, Stopped>(|| fold_while(circuit, checkpoint));
    let (fingerprint, folded) = compiled.unwrap_or_else(|stopped| Err(stopped.into()))?;
    Ok(smallest(Program::of_folded(fingerprint, folded)))
}

/// Compiles the circuit that `synthesize` synthesises, ONE included, and returns its result
/// too.
///
/// # Errors
/// As [`compile`], and those of `synthesize`.
pub(crate) fn compile_by<S: PrimeField, T, E: From<RecordError>>(
    synthesize: impl FnOnce(&mut Compiler<'_, S>) -> Result<T, E>,
) -> Result<(Program<S>, T), E> {
    let mut compiler = Compiler::create(&NEVER_STOP).map_err(RecordError::from)?;
    let result = synthesize(&mut compiler)?;
    let (fingerprint, folded) = compiler.finish().map_err(RecordError::from)?;
    let program = smallest(Program::of_folded(fingerprint, folded));
    Ok((program, result))
}

/// As [`compile`], but folded even if that is larger.
#[cfg(test)]
pub(super) fn compile_folded<S: PrimeField, C: Circuit<S>>(
    circuit: C,
) -> Result<Program<S>, RecordError> {
    let (fingerprint, folded) = fold_while(circuit, &NEVER_STOP)?;
    Ok(Program::of_folded(fingerprint, folded))
}

/// Returns the program with its rows plain, if that is smaller in memory or in a file.
fn smallest<S: PrimeField>(program: Program<S>) -> Program<S> {
    let Body::Folded(folded) = &program.body else {
        return program;
    };
    let nnz: u64 = program.nnz().iter().sum();
    let pointers = 3 * 4 * (program.rows() as u64 + 1);
    let resident_bytes = pointers + nnz * (4 + size_of::<S>() as u64);
    let is_small = folded.resident_bytes() as u64 <= resident_bytes
        && u128::from(folded_bytes(folded))
            <= disk::plain_bytes::<S>(
                [program.num_inputs(), program.num_aux(), program.rows()],
                program.nnz(),
            );
    if is_small {
        return program;
    }
    match program.to_r1cs() {
        Ok(r1cs) => Program::of_plain(program.fingerprint(), r1cs).unwrap_or(program),
        Err(_) => program,
    }
}
