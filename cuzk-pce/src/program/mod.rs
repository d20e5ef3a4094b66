//! A compiled circuit: the same rows, as small as their repetition allows.
//!
//! Reading order: `rows` (distinct rows in relative form), `sequence` (their
//! order as a grammar that can be entered at any row), `tables` (both as one
//! checked block of words), `compile` (from a blank circuit, streaming),
//! `folded` (these, ready to run), `types` (which columns are boolean), `columns`
//! (which columns there are), `drift` and `run` (evaluation), `flat` (for a device), `file`.
//!
//! Rows without repetition would be larger folded than plain. Such a circuit's
//! program keeps them plain, so none is larger than the plain form.
//!
//! Invariant: a program unfolds to exactly the rows that [`crate::record()`]
//! records of the same circuit, terms in the same order; it is immutable and
//! checked, whether compiled or read from a file.

mod coefficients;
mod columns;
mod compile;
mod drift;
mod file;
mod flat;
mod folded;
mod interner;
mod rows;
mod run;
mod sequence;
mod tables;
#[cfg(test)]
mod tests;
mod types;

pub use compile::{compile, compile_while};
pub use file::{ProgramHeader, inspect, read, write};
pub use flat::{BLOCK_ROWS, Flat};
pub use run::check;
pub use tables::TablesError;

use crate::{
    csr::{CsrError, CsrMatrix},
    density::{Densities, Density},
    disk,
    fingerprint::Fingerprint,
    r1cs::{R1cs, variables},
};
use ff::PrimeField;
use folded::Folded;

/// The dimensions of a compiled circuit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Dimensions {
    num_inputs: u32,
    num_aux: u32,
    rows: u32,
    nnz: [u64; 3],
}

/// The constraints of one circuit, in compiled form.
#[derive(Debug)]
pub struct Program<S> {
    dimensions: Dimensions,
    fingerprint: Fingerprint,
    body: Body<S>,
}

/// The rows.
#[derive(Debug)]
enum Body<S> {
    Folded(Folded<S>),
    /// Of a circuit with so little repetition that folded rows are larger.
    Plain(R1cs<S>),
}

/// How a program comes to be as large as it is; all zero if its rows are kept
/// plain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Distinct coefficients.
    pub coefficients: usize,
    /// Distinct shares of a row in one matrix.
    pub parts: usize,
    /// Items of all parts: single terms and runs.
    pub items: usize,
    /// Distinct rows.
    pub shapes: usize,
    /// Distinct repeats and chunks of rows.
    pub nodes: usize,
    /// Words of all repeats and chunks.
    pub node_words: usize,
}

/// A term of a row: the column in `[inputs | aux]` and the coefficient.
pub type RowTerm<S> = (u32, S);

impl<S> Program<S> {
    /// Number of public inputs, ONE among them.
    pub fn num_inputs(&self) -> usize {
        self.dimensions.num_inputs as usize
    }

    /// Number of auxiliary variables.
    pub fn num_aux(&self) -> usize {
        self.dimensions.num_aux as usize
    }

    /// Length of the witness `[inputs | aux]`.
    pub fn num_variables(&self) -> usize {
        self.num_inputs() + self.num_aux()
    }

    /// Number of constraints, without the rows that Groth16 appends.
    pub fn rows(&self) -> usize {
        self.dimensions.rows as usize
    }

    /// Nonzeros of A, B and C.
    pub fn nnz(&self) -> [u64; 3] {
        self.dimensions.nnz
    }

    /// A hash of the dimensions and of every row, the same as that of the
    /// recorded system.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// Bytes held, or mapped from a file.
    pub fn resident_bytes(&self) -> usize {
        match &self.body {
            Body::Folded(folded) => folded.resident_bytes(),
            Body::Plain(r1cs) => r1cs.resident_bytes(),
        }
    }

    /// What the bytes are made of.
    pub fn sizes(&self) -> Sizes {
        let Body::Folded(folded) = &self.body else {
            return Sizes::default();
        };
        let counts = folded.tables.counts();
        Sizes {
            coefficients: folded.coefficients.len(),
            parts: counts.parts as usize,
            items: counts.items as usize,
            shapes: counts.shapes as usize,
            nodes: counts.nodes as usize,
            node_words: counts.children as usize,
        }
    }

    /// The plain rows, if they are kept so: folded they would be larger.
    pub fn plain(&self) -> Option<&R1cs<S>> {
        match &self.body {
            Body::Folded(_) => None,
            Body::Plain(r1cs) => Some(r1cs),
        }
    }
}

impl<S: PrimeField> Program<S> {
    fn of_folded(fingerprint: Fingerprint, folded: Folded<S>) -> Self {
        Program {
            dimensions: folded.dimensions,
            fingerprint,
            body: Body::Folded(folded),
        }
    }

    /// `None` if there are more inputs, auxiliaries or rows than 32 bits can
    /// number.
    fn of_plain(fingerprint: Fingerprint, r1cs: R1cs<S>) -> Option<Self> {
        let dimensions = Dimensions {
            num_inputs: u32::try_from(r1cs.num_inputs()).ok()?,
            num_aux: u32::try_from(r1cs.num_aux()).ok()?,
            rows: u32::try_from(r1cs.rows()).ok()?,
            nnz: [r1cs.a(), r1cs.b(), r1cs.c()].map(|matrix| matrix.nnz() as u64),
        };
        Some(Program {
            dimensions,
            fingerprint,
            body: Body::Plain(r1cs),
        })
    }

    /// The same program with its rows plain, if that is smaller in memory or
    /// in a file.
    fn smallest(self) -> Self {
        let Body::Folded(folded) = &self.body else {
            return self;
        };
        let nnz: u64 = self.nnz().iter().sum();
        let pointers = 3 * 4 * (self.rows() as u64 + 1);
        let resident_bytes = pointers + nnz * (4 + size_of::<S>() as u64);
        let is_small = folded.resident_bytes() as u64 <= resident_bytes
            && u128::from(file::folded_bytes(folded)) <= disk::plain_bytes::<S>(&self);
        if is_small {
            return self;
        }
        match self.to_r1cs() {
            Ok(r1cs) => Self::of_plain(self.fingerprint, r1cs).unwrap_or(self),
            Err(_) => self,
        }
    }

    /// The rows of A, B and C, in order and unfolded.
    pub fn unfold(&self) -> impl Iterator<Item = [Vec<RowTerm<S>>; 3]> + '_ {
        let (folded, plain) = match &self.body {
            Body::Folded(folded) => (Some(folded), None),
            Body::Plain(r1cs) => (None, Some(r1cs)),
        };
        let plain = plain.into_iter().flat_map(|r1cs| {
            let matrices = [r1cs.a(), r1cs.b(), r1cs.c()];
            (0..r1cs.rows()).map(move |row| {
                matrices.map(|matrix| {
                    let terms = matrix.row(row).into_iter();
                    let terms = terms.flat_map(|row| row.cols.iter().zip(row.values));
                    terms.map(|(&col, &value)| (col, value)).collect()
                })
            })
        });
        folded.into_iter().flat_map(Folded::unfold).chain(plain)
    }

    /// The plain form. It may be a thousand times as large.
    ///
    /// # Errors
    /// [`CsrError::TooLarge`] if a matrix has more nonzeros than 32 bits can
    /// number.
    pub fn to_r1cs(&self) -> Result<R1cs<S>, CsrError> {
        let num_cols = variables(self.dimensions.num_inputs, self.dimensions.num_aux)?;
        let mut parts = [(); 3].map(|()| (vec![0u32], Vec::new(), Vec::new()));
        for row in self.unfold() {
            for ((row_ptrs, cols, values), terms) in parts.iter_mut().zip(row) {
                for (col, value) in terms {
                    cols.push(col);
                    values.push(value);
                }
                row_ptrs.push(u32::try_from(cols.len()).map_err(|_| CsrError::TooLarge {
                    what: "nonzeros",
                    got: cols.len(),
                    limit: u32::MAX as usize,
                })?);
            }
        }
        let [a, b, c] =
            parts.map(|(row_ptrs, cols, values)| CsrMatrix::new(num_cols, row_ptrs, cols, values));
        R1cs::new(
            a?,
            b?,
            c?,
            self.dimensions.num_inputs,
            self.dimensions.num_aux,
        )
    }

    /// The fingerprint of the rows that are really in here, unfolded again.
    ///
    /// [`Program::fingerprint`] is what was announced; this takes seconds at
    /// full size, and tells whether that was true.
    pub fn recompute_fingerprint(&self) -> Fingerprint {
        match &self.body {
            Body::Folded(folded) => folded.recompute_fingerprint(),
            Body::Plain(r1cs) => r1cs.fingerprint(),
        }
    }

    /// The auxiliary variables that the rows prove to be 0 or 1. Plain rows
    /// are looked through anew.
    pub fn boolean_columns(&self) -> Density {
        match &self.body {
            Body::Folded(folded) => folded.boolean_columns(),
            Body::Plain(r1cs) => compile::boolean_columns(r1cs),
        }
    }

    /// Which variables the A and B queries of a Groth16 prover range over.
    pub fn densities(&self) -> Densities {
        match &self.body {
            Body::Folded(folded) => folded.densities(),
            Body::Plain(r1cs) => r1cs.densities(),
        }
    }
}
