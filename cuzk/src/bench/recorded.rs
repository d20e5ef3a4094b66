//! A circuit with the rows of another one, for a generator of parameters.
//!
//! A generator is compiled for each type of circuit that it gets, and a kind has a type for each
//! shape of its sectors' trees. This type is one for all of them. The invariant: rows and variables
//! are those that were recorded, in their order.

use bellperson::{Circuit, ConstraintSystem, LinearCombination, SynthesisError};
use blstrs::Scalar;
use cuzk_pce::{CsrMatrix, R1cs};

/// The rows of a circuit, without values.
pub(super) struct Recorded<'a>(pub(super) &'a R1cs<Scalar>);

impl Circuit<Scalar> for Recorded<'_> {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let missing = || Err(SynthesisError::AssignmentMissing);
        let mut variables = Vec::with_capacity(self.0.num_variables());
        variables.push(CS::one());
        for _ in 1..self.0.num_inputs() {
            variables.push(cs.alloc_input(|| "input", missing)?);
        }
        for _ in 0..self.0.num_aux() {
            variables.push(cs.alloc(|| "aux", missing)?);
        }
        let sum = |matrix: &CsrMatrix<Scalar>, row| {
            let terms = matrix.row(row).into_iter();
            let terms = terms.flat_map(|row| row.cols.iter().zip(row.values));
            terms.fold(LinearCombination::zero(), |sum, (column, value)| {
                sum + (*value, variables[*column as usize])
            })
        };
        for row in 0..self.0.rows() {
            let [a, b, c] = [self.0.a(), self.0.b(), self.0.c()].map(|matrix| sum(matrix, row));
            cs.enforce(|| "row", |_| a, |_| b, |_| c);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use cuzk_filecoin::{CircuitId, ProofKind, SectorSize, blank};

    use super::Recorded;

    #[test]
    fn the_rows_are_those_of_the_circuit() {
        let sector_size = SectorSize::KiB2;
        for kind in [ProofKind::WindowPost, ProofKind::WinningPost] {
            let rows = blank::record(CircuitId { kind, sector_size }).unwrap();
            let again = cuzk_pce::record(Recorded(&rows)).unwrap();
            assert_eq!(again.fingerprint(), rows.fingerprint(), "{kind}");
        }
    }
}
