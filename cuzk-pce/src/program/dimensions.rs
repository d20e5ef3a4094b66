//! The dimensions of a compiled circuit, and the terms of its rows.

/// The dimensions of a compiled circuit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Dimensions {
    pub(super) num_inputs: u32,
    pub(super) num_aux: u32,
    pub(super) rows: u32,
    pub(super) nnz: [u64; 3],
}

/// A term of a row: the column in `[inputs | aux]` and the coefficient.
pub type RowTerm<S> = (u32, S);
