//! Constraint evaluation: a = A·w and b = B·w, in parallel, under a throttle.
//!
//! Work runs on rayon's current pool, in chunks of [`CHUNK_ROWS`] rows. Every
//! [`THROTTLE_CHUNKS`]th chunk passes the throttle first (see [`cuzk_memory::Gate`]).
//!
//! The vector c is never computed for a proof: for a witness that satisfies the system it
//! is a∘b. Only [`check`] uses C.

use crate::{csr::CsrMatrix, r1cs::R1cs, witness::Witness};
use cuzk_memory::{Checkpoint, Gate, NEVER_STOP, Stopped};
use ff::PrimeField;
use rayon::prelude::*;
use std::sync::atomic::AtomicI32;

/// Rows that one task evaluates.
pub const CHUNK_ROWS: usize = 8_192;

/// Every so many chunks, a task looks at the throttle before it starts.
pub const THROTTLE_CHUNKS: usize = 64;

/// Why a witness could not be evaluated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// The witness is of another circuit, or cut short.
    #[error("witness: expected {expected} values, got {got}; it is not of this circuit")]
    WitnessLength {
        /// Inputs and auxiliary variables of the circuit.
        expected: usize,
        /// Length of the witness.
        got: usize,
    },
    /// The witness splits into inputs and auxiliaries elsewhere.
    #[error("witness: expected {expected} public inputs, got {got}; it is not of this circuit")]
    InputCount {
        /// Public inputs of the circuit, ONE among them.
        expected: usize,
        /// Public inputs of the witness.
        got: usize,
    },
    /// A lent buffer has another length than the result.
    #[error("buffer {name}: expected {expected} places, got {got}")]
    BufferLength {
        /// Which buffer: `a`, `b`, `c`, or `out` of one product.
        name: &'static str,
        /// Rows and public inputs of the circuit.
        expected: usize,
        /// Length of the buffer.
        got: usize,
    },
    /// The checkpoint stopped the evaluation. The content of the buffers is unspecified.
    #[error("stopped")]
    Stopped,
}

impl From<Stopped> for EvalError {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

impl EvalError {
    pub(crate) fn check_length(expected: usize, got: usize) -> Result<(), EvalError> {
        if expected == got {
            Ok(())
        } else {
            Err(EvalError::WitnessLength { expected, got })
        }
    }

    pub(crate) fn check_shape<S>(r1cs: &R1cs<S>, witness: &Witness<S>) -> Result<(), EvalError> {
        Self::check_length(r1cs.num_variables(), witness.values().len())?;
        if r1cs.num_inputs() == witness.num_inputs() {
            Ok(())
        } else {
            Err(EvalError::InputCount {
                expected: r1cs.num_inputs(),
                got: witness.num_inputs(),
            })
        }
    }
}

/// The two vectors a prover's quotient starts from.
///
/// Each has `rows + num_inputs` entries: the circuit's rows, then the rows
/// `inputᵢ · 0 = 0` that Groth16 appends, where a is the input and b is zero.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evaluated<S> {
    /// A·w.
    pub a: Vec<S>,
    /// B·w.
    pub b: Vec<S>,
}

/// `matrix · witness` on rayon's current pool.
///
/// # Errors
/// [`EvalError::WitnessLength`] unless the witness is as long as the matrix
/// is wide.
pub fn spmv_parallel<S: PrimeField>(
    matrix: &CsrMatrix<S>,
    witness: &[S],
    throttle: Option<&AtomicI32>,
) -> Result<Vec<S>, EvalError> {
    let mut out = vec![S::ZERO; matrix.rows()];
    let gate = Gate::new(throttle, matrix.rows());
    spmv_parallel_into(matrix, witness, &mut out, &gate, &NEVER_STOP)?;
    Ok(out)
}

/// Writes `matrix · witness` into `out`, on rayon's current pool. `out` has one place a
/// row. Each thread passes `checkpoint` before every chunk of [`CHUNK_ROWS`] rows, and
/// `gate` before every [`THROTTLE_CHUNKS`]th.
///
/// # Errors
/// [`EvalError`] if the witness or `out` has another length, and [`EvalError::Stopped`].
pub fn spmv_parallel_into<S: PrimeField>(
    matrix: &CsrMatrix<S>,
    witness: &[S],
    out: &mut [S],
    gate: &Gate<'_>,
    checkpoint: &Checkpoint<'_>,
) -> Result<(), EvalError> {
    EvalError::check_length(matrix.num_cols(), witness.len())?;
    if out.len() != matrix.rows() {
        return Err(EvalError::BufferLength {
            name: "out",
            expected: matrix.rows(),
            got: out.len(),
        });
    }
    out.par_chunks_mut(CHUNK_ROWS)
        .enumerate()
        .try_for_each(|(chunk, out)| {
            checkpoint.check()?;
            if chunk % THROTTLE_CHUNKS == 0 {
                gate.pass();
            }
            let rows = matrix.rows_from(chunk * CHUNK_ROWS);
            for (value, row) in out.iter_mut().zip(rows) {
                *value = row.dot(witness);
            }
            Ok(())
        })
}

/// Evaluates A and B over `witness`, with the rows of the public inputs
/// appended. Both products share one throttle bound.
///
/// # Errors
/// [`EvalError`] if the witness has other dimensions than the system.
pub fn evaluate<S: PrimeField>(
    r1cs: &R1cs<S>,
    witness: &Witness<S>,
    throttle: Option<&AtomicI32>,
) -> Result<Evaluated<S>, EvalError> {
    EvalError::check_shape(r1cs, witness)?;
    let rows = r1cs.rows();
    let gate = Gate::new(throttle, rows);
    let mut a = vec![S::ZERO; rows + r1cs.num_inputs()];
    let mut b = vec![S::ZERO; rows + r1cs.num_inputs()];
    let (a_rows, a_inputs) = a.split_at_mut(rows);
    spmv_parallel_into(r1cs.a(), witness.values(), a_rows, &gate, &NEVER_STOP)?;
    a_inputs.copy_from_slice(witness.inputs());
    let b_rows = &mut b[..rows];
    spmv_parallel_into(r1cs.b(), witness.values(), b_rows, &gate, &NEVER_STOP)?;
    Ok(Evaluated { a, b })
}

/// The first row, from 0, where (A·w)∘(B·w) ≠ C·w, or `None` if the witness
/// satisfies the system.
///
/// # Errors
/// [`EvalError`] if the witness has other dimensions than the system.
pub fn check<S: PrimeField>(
    r1cs: &R1cs<S>,
    witness: &Witness<S>,
) -> Result<Option<usize>, EvalError> {
    EvalError::check_shape(r1cs, witness)?;
    let w = witness.values();
    let dot = |matrix: &CsrMatrix<S>, row| matrix.row(row).map(|terms| terms.dot(w));
    Ok((0..r1cs.rows())
        .into_par_iter()
        .with_min_len(CHUNK_ROWS)
        .find_first(
            |&row| match (dot(r1cs.a(), row), dot(r1cs.b(), row), dot(r1cs.c(), row)) {
                (Some(a), Some(b), Some(c)) => a * b != c,
                _ => true,
            },
        ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{naive, record, testing::*, witness};
    use bellpepper_core::Comparable;
    use bellperson::{Circuit, util_cs::test_cs::TestConstraintSystem};
    use blstrs::Scalar;
    use cuzk_memory::{Gate, WAIT_MAX};
    use ff::Field;
    use proptest::prelude::*;
    use rand::{Rng, SeedableRng};
    use std::time::Instant;

    proptest! {
        #[test]
        fn a_and_b_are_bellpersons(circuit in random_circuit()) {
            let mut theirs = TestConstraintSystem::new();
            circuit.clone().synthesize(&mut theirs).unwrap();
            let (inputs, aux) = (theirs.scalar_inputs(), theirs.scalar_aux());
            let r1cs = record(circuit.blank()).unwrap();
            let ours = evaluate(&r1cs, &witness(circuit).unwrap(), None).unwrap();
            let rows = theirs.constraints();
            prop_assert_eq!(ours.a.len(), rows.len() + inputs.len());
            for (i, (a, b, _, _)) in rows.iter().enumerate() {
                prop_assert_eq!(ours.a[i], a.eval(&inputs, &aux));
                prop_assert_eq!(ours.b[i], b.eval(&inputs, &aux));
            }
            prop_assert_eq!(&ours.a[rows.len()..], &inputs[..]);
            prop_assert!(ours.b[rows.len()..].iter().all(|b| b.is_zero_vartime()));
        }

        #[test]
        fn check_finds_the_row_that_the_oracle_finds(circuit in random_circuit()) {
            let r1cs = record(circuit.blank()).unwrap();
            let witness = witness(circuit.clone()).unwrap();
            let first = check(&r1cs, &witness).unwrap();
            prop_assert_eq!(first, naive::check(&r1cs, &witness).unwrap());
            let mut theirs = TestConstraintSystem::new();
            circuit.synthesize(&mut theirs).unwrap();
            prop_assert_eq!(first.is_none(), theirs.is_satisfied());
        }
    }

    /// A matrix of several hundred chunks, with rows of zero to three terms.
    fn large_matrix(rows: usize) -> (CsrMatrix<Scalar>, Vec<Scalar>) {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(7);
        let num_cols = 1_000;
        let mut row_ptrs = vec![0];
        let (mut cols, mut values) = (vec![], vec![]);
        for _ in 0..rows {
            for _ in 0..rng.gen_range(0..4) {
                cols.push(rng.gen_range(0..num_cols));
                values.push(Scalar::from(rng.r#gen::<u64>()));
            }
            row_ptrs.push(u32::try_from(cols.len()).unwrap());
        }
        let witness = (0..num_cols).map(|_| Scalar::random(&mut rng)).collect();
        (
            CsrMatrix::new(num_cols, row_ptrs, cols, values).unwrap(),
            witness,
        )
    }

    #[test]
    fn parallel_is_naive() {
        for rows in [0, 1, CHUNK_ROWS, CHUNK_ROWS + 1, 70 * CHUNK_ROWS + 5] {
            let (matrix, witness) = large_matrix(rows);
            let expected = naive::spmv(&matrix, &witness).unwrap();
            assert_eq!(spmv_parallel(&matrix, &witness, None).unwrap(), expected);
        }
    }

    #[test]
    fn a_throttle_that_never_falls_slows_but_does_not_hang() {
        let (matrix, witness) = large_matrix(130 * CHUNK_ROWS);
        let expected = naive::spmv(&matrix, &witness).unwrap();
        let lost = AtomicI32::new(1);
        let start = Instant::now();
        assert_eq!(
            spmv_parallel(&matrix, &witness, Some(&lost)).unwrap(),
            expected
        );
        // Three chunks look at the throttle: the bound is the call's, not theirs.
        assert!(start.elapsed() >= WAIT_MAX);
        let down = AtomicI32::new(0);
        assert_eq!(
            spmv_parallel(&matrix, &witness, Some(&down)).unwrap(),
            expected
        );
    }

    #[test]
    fn every_64th_chunk_yields_and_a_stop_ends_the_product() {
        let (matrix, witness) = large_matrix(130 * CHUNK_ROWS);
        let expected = naive::spmv(&matrix, &witness).unwrap();
        let raised = AtomicI32::new(1);
        let gate = Gate::yielding(Some(&raised), 1);
        let mut out = vec![Scalar::ZERO; matrix.rows()];
        spmv_parallel_into(&matrix, &witness, &mut out, &gate, &NEVER_STOP).unwrap();
        assert_eq!(out, expected);
        // Chunks 0, 64 and 128.
        assert_eq!(gate.yielded(), 3);
        let stopped = Checkpoint::asking(|| true);
        let result = spmv_parallel_into(&matrix, &witness, &mut out, &gate, &stopped);
        assert_eq!(result, Err(EvalError::Stopped));
        let short = &mut out[1..];
        let result = spmv_parallel_into(&matrix, &witness, short, &gate, &NEVER_STOP);
        assert!(matches!(result, Err(EvalError::BufferLength { .. })));
    }

    #[test]
    fn a_witness_of_another_shape_is_an_error() {
        let (matrix, mut witness) = large_matrix(10);
        witness.pop();
        let error = Err(EvalError::WitnessLength {
            expected: 1_000,
            got: 999,
        });
        assert_eq!(spmv_parallel(&matrix, &witness, None), error);
        assert_eq!(naive::spmv(&matrix, &witness), error);

        let circuit = RandomCircuit::squares(3);
        let r1cs = record(circuit.blank()).unwrap();
        let good = crate::witness(circuit).unwrap();
        let moved = Witness::new(good.values().to_vec(), good.num_inputs() + 1).unwrap();
        assert_eq!(
            evaluate(&r1cs, &moved, None),
            Err(EvalError::InputCount {
                expected: good.num_inputs(),
                got: good.num_inputs() + 1
            })
        );
        assert!(check(&r1cs, &moved).is_err());
    }

    #[test]
    fn check_names_the_first_bad_row() {
        let circuit = RandomCircuit::squares(20_000);
        let r1cs = record(circuit.blank()).unwrap();
        let good = crate::witness(circuit).unwrap();
        assert_eq!(check(&r1cs, &good).unwrap(), None);
        for row in [0, 8_191, 8_192, 19_999] {
            let mut values = good.values().to_vec();
            // Row i squares auxiliary i into auxiliary i + 1.
            values[good.num_inputs() + row + 1] += Scalar::ONE;
            let bad = Witness::new(values, good.num_inputs()).unwrap();
            assert_eq!(check(&r1cs, &bad).unwrap(), Some(row));
        }
    }
}
