//! Rows that a program keeps plain: one multiplication a term.

use crate::{csr::Row, eval::CHUNK_ROWS, r1cs::R1cs, witness::Columns};
use ff::PrimeField;

/// Plain rows and a witness of their dimensions.
pub(super) struct PlainRunner<'a, S, W> {
    pub(super) r1cs: &'a R1cs<S>,
    pub(super) witness: &'a W,
}

impl<S: PrimeField, W: Columns<S>> PlainRunner<'_, S, W> {
    /// Evaluates the first N of A, B and C on a chunk of rows.
    pub(super) fn chunk<const N: usize>(&self, chunk: usize, out: [&mut [S]; N]) {
        let matrices = [self.r1cs.a(), self.r1cs.b(), self.r1cs.c()];
        for (out, matrix) in out.into_iter().zip(matrices) {
            let rows = matrix.rows_from(chunk * CHUNK_ROWS);
            for (place, row) in out.iter_mut().zip(rows) {
                *place = self.dot(&row);
            }
        }
    }

    /// Returns true if a row holds.
    pub(super) fn holds(&self, row: usize) -> bool {
        let matrices = [self.r1cs.a(), self.r1cs.b(), self.r1cs.c()];
        let values = matrices.map(|matrix| matrix.row(row).map(|row| self.dot(&row)));
        matches!(values, [Some(a), Some(b), Some(c)] if a * b == c)
    }

    fn dot(&self, row: &Row<'_, S>) -> S {
        let num_inputs = self.r1cs.num_inputs();
        let mut sum = S::ZERO;
        for (&col, coefficient) in row.cols.iter().zip(row.values) {
            let value = match (col as usize).checked_sub(num_inputs) {
                Some(aux) => self.witness.aux(aux),
                None => self.witness.input(col as usize),
            };
            sum += value * coefficient;
        }
        sum
    }
}
