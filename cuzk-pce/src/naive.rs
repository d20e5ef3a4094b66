//! The serial oracle: sparse products and the satisfaction check, as written
//! in a textbook. Everything faster in this crate is tested against it.

use crate::{csr::CsrMatrix, eval::EvalError, r1cs::R1cs, witness::Witness};
use ff::PrimeField;

/// `matrix · witness`, one row after the other on the calling thread.
///
/// # Errors
/// [`EvalError::WitnessLength`] unless the witness is as long as the matrix
/// is wide.
pub fn spmv<S: PrimeField>(matrix: &CsrMatrix<S>, witness: &[S]) -> Result<Vec<S>, EvalError> {
    EvalError::check_length(matrix.num_cols(), witness.len())?;
    Ok(matrix.rows_from(0).map(|row| row.dot(witness)).collect())
}

/// The first row whose product fails, or `None` if the witness satisfies the
/// system.
///
/// # Errors
/// [`EvalError`] if the witness has other dimensions than the system.
pub fn check<S: PrimeField>(
    r1cs: &R1cs<S>,
    witness: &Witness<S>,
) -> Result<Option<usize>, EvalError> {
    EvalError::check_shape(r1cs, witness)?;
    let a = spmv(r1cs.a(), witness.values())?;
    let b = spmv(r1cs.b(), witness.values())?;
    let c = spmv(r1cs.c(), witness.values())?;
    Ok((0..r1cs.rows()).find(|&i| a[i] * b[i] != c[i]))
}
