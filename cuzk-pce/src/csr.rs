//! A plain sparse matrix in compressed-row form.
//!
//! This is the interchange form and the oracle of everything faster: it says
//! what the rows are and nothing else. It is not compact (36 bytes a nonzero).
//!
//! Invariant, established by [`CsrMatrix::new`], and kept because nothing changes a matrix:
//! `row_ptrs` starts at 0, never decreases and ends at the number of nonzeros. `cols` and
//! `values` have that length. Every column is below `num_cols`.

use ff::PrimeField;

/// Why a sparse matrix or a constraint system was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CsrError {
    /// There is no row pointer at all; even an empty matrix has one.
    #[error("row pointers: expected one more than there are rows, got none")]
    NoRowPointers,
    /// The first row does not start at the first nonzero.
    #[error("row pointers: expected the first to be 0, got {got}")]
    FirstRowPointer {
        /// The first row pointer.
        got: u32,
    },
    /// A row ends before it starts.
    #[error("row pointers: row {row} starts at {start} and ends at {end}, before its start")]
    RowPointersDecrease {
        /// The row, from 0.
        row: usize,
        /// Where it starts.
        start: u32,
        /// Where it ends.
        end: u32,
    },
    /// Row pointers, columns and values disagree on the number of nonzeros.
    #[error(
        "nonzeros: row pointers end at {row_ptrs}, but there are {cols} columns and {values} values"
    )]
    NonzeroCount {
        /// The last row pointer.
        row_ptrs: usize,
        /// Number of columns given.
        cols: usize,
        /// Number of values given.
        values: usize,
    },
    /// A nonzero lies outside the matrix.
    #[error("columns: row {row} names column {col}, expected one below {num_cols}")]
    ColumnOutOfRange {
        /// The row, from 0.
        row: usize,
        /// The column it names.
        col: u32,
        /// The number of columns.
        num_cols: u32,
    },
    /// A row names a variable before the circuit allocates it.
    #[error("variables: a row names variable {index}, but only {allocated} are allocated so far")]
    NotAllocated {
        /// The index it names.
        index: usize,
        /// How many there are.
        allocated: usize,
    },
    /// A count does not fit the 32 bits that this form gives it.
    #[error("{what}: {got} is more than the {limit} that 32-bit indices can name")]
    TooLarge {
        /// The things that were counted.
        what: &'static str,
        /// The count.
        got: usize,
        /// The greatest count that fits.
        limit: usize,
    },
    /// The three matrices of one constraint system have different shapes.
    #[error("shape: {matrix} is {rows} × {cols}, expected {expected_rows} × {expected_cols}")]
    Shape {
        /// Which matrix: `A`, `B` or `C`.
        matrix: char,
        /// Its number of rows.
        rows: usize,
        /// Its number of columns.
        cols: usize,
        /// The number of rows of A.
        expected_rows: usize,
        /// Inputs and auxiliary variables together.
        expected_cols: usize,
    },
    /// A constraint system has no public input, not even ONE.
    #[error("inputs: expected at least the constant ONE, got none")]
    NoInputs,
}

/// A sparse `rows × num_cols` matrix over a prime field.
///
/// Values may be zero and a column may occur twice in a row (the terms add
/// up); [`crate::record()`] builds neither.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsrMatrix<S> {
    num_cols: u32,
    row_ptrs: Vec<u32>,
    cols: Vec<u32>,
    values: Vec<S>,
}

impl<S> CsrMatrix<S> {
    /// Checks the invariant and takes the parts: `row_ptrs` has `rows + 1`
    /// entries, `cols` and `values` one a nonzero.
    ///
    /// # Errors
    /// Any violation of the invariant on [the module](self), with the first
    /// offending row.
    pub fn new(
        num_cols: u32,
        row_ptrs: Vec<u32>,
        cols: Vec<u32>,
        values: Vec<S>,
    ) -> Result<Self, CsrError> {
        check_row_ptrs(&row_ptrs, cols.len(), values.len())?;
        if let Some(at) = cols.iter().position(|&col| col >= num_cols) {
            return Err(CsrError::ColumnOutOfRange {
                // Rows that end at or before this nonzero come before its row.
                row: row_ptrs.partition_point(|&p| p as usize <= at) - 1,
                col: cols[at],
                num_cols,
            });
        }
        Ok(CsrMatrix {
            num_cols,
            row_ptrs,
            cols,
            values,
        })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.row_ptrs.len() - 1
    }

    /// Number of columns, which is the length of the witness it multiplies.
    pub fn num_cols(&self) -> usize {
        self.num_cols as usize
    }

    /// Number of stored terms.
    pub fn nnz(&self) -> usize {
        self.cols.len()
    }

    /// Bytes held: 4 a row, 36 a nonzero for a 32-byte scalar.
    pub fn resident_bytes(&self) -> usize {
        size_of_val(&self.row_ptrs[..])
            + size_of_val(&self.cols[..])
            + size_of_val(&self.values[..])
    }

    /// The terms of one row, or `None` past the last row.
    pub fn row(&self, row: usize) -> Option<Row<'_, S>> {
        let start = *self.row_ptrs.get(row)? as usize;
        let end = *self.row_ptrs.get(row + 1)? as usize;
        Some(Row {
            cols: &self.cols[start..end],
            values: &self.values[start..end],
        })
    }

    /// The rows from `start` on, in order.
    pub fn rows_from(&self, start: usize) -> impl Iterator<Item = Row<'_, S>> {
        (start..self.rows()).map_while(|row| self.row(row))
    }

    /// Row pointers, columns and values, as [`CsrMatrix::new`] takes them.
    pub fn parts(&self) -> (&[u32], &[u32], &[S]) {
        (&self.row_ptrs, &self.cols, &self.values)
    }
}

fn check_row_ptrs(row_ptrs: &[u32], cols: usize, values: usize) -> Result<(), CsrError> {
    let (Some(&first), Some(&last)) = (row_ptrs.first(), row_ptrs.last()) else {
        return Err(CsrError::NoRowPointers);
    };
    if first != 0 {
        return Err(CsrError::FirstRowPointer { got: first });
    }
    if let Some(row) = row_ptrs.windows(2).position(|w| w[1] < w[0]) {
        return Err(CsrError::RowPointersDecrease {
            row,
            start: row_ptrs[row],
            end: row_ptrs[row + 1],
        });
    }
    if cols != last as usize || values != last as usize {
        return Err(CsrError::NonzeroCount {
            row_ptrs: last as usize,
            cols,
            values,
        });
    }
    Ok(())
}

/// The terms of one row: `cols[k]` has the coefficient `values[k]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row<'a, S> {
    /// Columns, below the matrix's `num_cols`.
    pub cols: &'a [u32],
    /// Coefficients, as many as columns.
    pub values: &'a [S],
}

impl<S: PrimeField> Row<'_, S> {
    /// The inner product of the row with a witness.
    ///
    /// # Panics
    /// If the witness is not as long as the matrix is wide.
    #[inline]
    pub fn dot(&self, witness: &[S]) -> S {
        let mut acc = S::ZERO;
        for (&col, value) in self.cols.iter().zip(self.values) {
            acc += witness[col as usize] * value;
        }
        acc
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(row_ptrs: &[u32], cols: &[u32], values: &[u8]) -> Result<CsrMatrix<u8>, CsrError> {
        CsrMatrix::new(3, row_ptrs.to_vec(), cols.to_vec(), values.to_vec())
    }

    #[test]
    fn keeps_its_rows() {
        let m = new(&[0, 2, 2, 3], &[0, 2, 1], &[7, 8, 9]).unwrap();
        assert_eq!((m.rows(), m.num_cols(), m.nnz()), (3, 3, 3));
        let row = |cols, values| Some(Row { cols, values });
        assert_eq!(m.row(0), row(&[0, 2], &[7, 8]));
        assert_eq!(m.row(1), row(&[], &[]));
        assert_eq!(m.row(2), row(&[1], &[9]));
        assert_eq!(m.row(3), None);
        assert_eq!(m.rows_from(1).count(), 2);
        assert_eq!(m.rows_from(9).count(), 0);
        assert_eq!(new(&[0], &[], &[]).unwrap().rows(), 0);
    }

    #[test]
    fn refuses_what_breaks_the_invariant() {
        use CsrError::*;
        assert_eq!(new(&[], &[], &[]), Err(NoRowPointers));
        assert_eq!(new(&[1, 1], &[0], &[1]), Err(FirstRowPointer { got: 1 }));
        assert_eq!(
            new(&[0, 2, 1], &[0], &[1]),
            Err(RowPointersDecrease {
                row: 1,
                start: 2,
                end: 1
            })
        );
        let counts = |row_ptrs, cols, values| {
            Err(NonzeroCount {
                row_ptrs,
                cols,
                values,
            })
        };
        assert_eq!(new(&[0, 1], &[0, 1], &[1, 1]), counts(1, 2, 2));
        assert_eq!(new(&[0, 2], &[0, 1], &[1]), counts(2, 2, 1));
        assert_eq!(
            new(&[0, 1, 1, 3], &[0, 2, 3], &[1, 1, 1]),
            Err(ColumnOutOfRange {
                row: 2,
                col: 3,
                num_cols: 3
            })
        );
    }
}
