//! Checked constants, laid out as the rounds read them.

use super::constants::{MAX_WIDTH, PoseidonConstants, SparseMatrix};
use crate::error::{KernelError, expect_len};
use blstrs::Scalar;

/// A Poseidon hash's constants. There are at least two full rounds on either
/// side of the partial ones, and every slice has the length its width says.
#[derive(Debug, Clone)]
pub(crate) struct Schedule {
    pub(crate) width: usize,
    pub(crate) half_full_rounds: usize,
    pub(crate) domain_tag: Scalar,
    /// Added before the first S-boxes.
    pub(crate) first_keys: Vec<Scalar>,
    /// Added behind the S-boxes of the full rounds before the partial ones,
    /// round by round.
    pub(crate) begin_keys: Vec<Scalar>,
    /// One a partial round.
    pub(crate) partial_keys: Vec<Scalar>,
    /// As `begin_keys`, for the full rounds at the end without the last.
    pub(crate) end_keys: Vec<Scalar>,
    /// Factors of new element j, j by j.
    pub(crate) matrix: Vec<Scalar>,
    pub(crate) pre_sparse: Vec<Scalar>,
    pub(crate) sparse: Vec<SparseMatrix>,
}

impl Schedule {
    pub(crate) fn new(constants: &PoseidonConstants) -> Result<Schedule, KernelError> {
        let width = constants.matrix.len();
        if !(2..=MAX_WIDTH).contains(&width) {
            return Err(KernelError::PoseidonWidth {
                got: width,
                max: MAX_WIDTH,
            });
        }
        let half = constants.full_rounds / 2;
        expect_len("full rounds", 2 * half.max(2), constants.full_rounds)?;
        for matrix in &constants.sparse {
            expect_len("a sparse matrix's column", width, matrix.column.len())?;
            expect_len("a sparse matrix's row", width - 1, matrix.row.len())?;
        }
        let partial = constants.sparse.len();
        let keys = &constants.round_keys;
        expect_len("round keys", 2 * half * width + partial, keys.len())?;
        let (first, keys) = keys.split_at(width);
        let (begin, keys) = keys.split_at(half * width);
        let (partial, end) = keys.split_at(partial);
        Ok(Schedule {
            width,
            half_full_rounds: half,
            domain_tag: constants.domain_tag,
            first_keys: first.to_vec(),
            begin_keys: begin.to_vec(),
            partial_keys: partial.to_vec(),
            end_keys: end.to_vec(),
            matrix: transposed(&constants.matrix)?,
            pre_sparse: transposed(&constants.pre_sparse)?,
            sparse: constants.sparse.clone(),
        })
    }

    pub(crate) fn trace_len(&self) -> usize {
        let later_full_rounds = 2 * self.half_full_rounds - 1;
        3 * (self.width - 1) + 4 * (later_full_rounds * self.width + self.sparse.len()) + 1
    }

    /// Keys of the full rounds after the first in the trace's order, and the
    /// matrix that follows; the last full round has no keys.
    pub(crate) fn begin_rounds(&self) -> impl Iterator<Item = (&[Scalar], &[Scalar])> {
        let last = self.half_full_rounds - 1;
        let keys = self.begin_keys.chunks_exact(self.width).enumerate();
        keys.map(move |(round, keys)| {
            let dense = if round == last {
                &self.pre_sparse
            } else {
                &self.matrix
            };
            (keys, &dense[..])
        })
    }
}

/// The matrix column by column, if it is a square one of a known width.
fn transposed(matrix: &[Vec<Scalar>]) -> Result<Vec<Scalar>, KernelError> {
    let width = matrix.len();
    for row in matrix {
        expect_len("a matrix's row", width, row.len())?;
    }
    let column = |j: usize| matrix.iter().map(move |row| row[j]);
    Ok((0..width).flat_map(column).collect())
}
