//! A compiled circuit.

use super::{
    body::Body,
    columns,
    compiler::boolean_columns,
    dimensions::{Dimensions, RowTerm},
    flat::{Flat, flatten},
    folded::Folded,
    run,
};
use crate::{
    csr::{CsrError, CsrMatrix},
    density::{Densities, Density},
    eval::EvalError,
    fingerprint::Fingerprint,
    r1cs::{R1cs, variables},
    variable_counts::VariableCounts,
    witness::Columns,
};
use cuzk_memory::{Checkpoint, Stopped};
use ff::PrimeField;

/// Returns the first row, from 0, where (A·w)∘(B·w) ≠ C·w, or `None` if the witness
/// satisfies the circuit.
///
/// # Errors
/// [`EvalError`] if the witness has other dimensions than the circuit.
pub fn check<S: PrimeField, W: Columns<S>>(
    program: &Program<S>,
    witness: &W,
) -> Result<Option<usize>, EvalError> {
    run::check(program.rows_of(), witness)
}

/// The rows that are unfolded between two looks at a checkpoint: a few milliseconds of
/// work.
pub const ROWS_A_LOOK: usize = 1 << 13;

/// The reason why there are no plain rows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnfoldError {
    /// They do not fit into plain matrices.
    #[error(transparent)]
    Csr(#[from] CsrError),
    /// The checkpoint said so.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// The constraints of one circuit, in compiled form.
#[derive(Debug)]
pub struct Program<S> {
    pub(super) dimensions: Dimensions,
    fingerprint: Fingerprint,
    pub(super) body: Body<S>,
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

    /// Returns the numbers of entries that make up the bytes.
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
    pub(super) fn of_folded(fingerprint: Fingerprint, folded: Folded<S>) -> Self {
        Program {
            dimensions: folded.dimensions,
            fingerprint,
            body: Body::Folded(folded),
        }
    }

    /// `None` if there are more inputs, auxiliaries or rows than 32 bits can
    /// number.
    pub(super) fn of_plain(fingerprint: Fingerprint, r1cs: R1cs<S>) -> Option<Self> {
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
        self.unfold_while(|| Ok(()))
    }

    /// Returns the plain form like [`Self::to_r1cs`]. Asks every [`ROWS_A_LOOK`] rows if
    /// `checkpoint` is cancelled. It never pauses, because urgent work may wait for the rows.
    ///
    /// # Errors
    /// As [`Self::to_r1cs`], and [`UnfoldError::Stopped`].
    pub fn to_r1cs_unless_stopped(
        &self,
        checkpoint: &Checkpoint<'_>,
    ) -> Result<R1cs<S>, UnfoldError> {
        let unpaused = checkpoint.unpaused();
        self.unfold_while(|| Ok(unpaused.check()?))
    }

    fn unfold_while<E: From<CsrError>>(
        &self,
        goes_on: impl Fn() -> Result<(), E>,
    ) -> Result<R1cs<S>, E> {
        let num_cols = variables(self.dimensions.num_inputs, self.dimensions.num_aux)?;
        let mut parts = [(); 3].map(|()| (vec![0u32], Vec::new(), Vec::new()));
        for (index, row) in self.unfold().enumerate() {
            if index % ROWS_A_LOOK == 0 {
                goes_on()?;
            }
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
        Ok(R1cs::new(
            a?,
            b?,
            c?,
            self.dimensions.num_inputs,
            self.dimensions.num_aux,
        )?)
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
            Body::Folded(folded) => columns::boolean_columns(folded),
            Body::Plain(r1cs) => boolean_columns(r1cs),
        }
    }

    /// Which variables the A and B queries of a Groth16 prover range over.
    pub fn densities(&self) -> Densities {
        match &self.body {
            Body::Folded(folded) => columns::densities(folded),
            Body::Plain(r1cs) => r1cs.densities(),
        }
    }

    /// Returns how many variables of each sort the rows have. They are counted anew, in a walk
    /// through all rows for the densities and in another for the bits.
    pub fn variable_counts(&self) -> VariableCounts {
        VariableCounts::of(&self.densities(), &self.boolean_columns())
    }

    /// Returns A and B of this program in flat tables.
    ///
    /// # Errors
    /// [`CsrError::TooLarge`] if a table has more entries than 32 bits can number.
    pub fn flatten(&self) -> Result<Flat<S>, CsrError> {
        flatten(self.rows_of())
    }

    fn rows_of(&self) -> (&Dimensions, &Body<S>) {
        (&self.dimensions, &self.body)
    }

    /// Evaluates A and B over `witness` into `a` and `b`, whose contents do
    /// not matter. Each has `rows + num_inputs` places: the circuit's rows,
    /// then the rows `inputᵢ · 0 = 0` that Groth16 appends, where a is the
    /// input and b is zero. Each thread passes `checkpoint` before every block of
    /// [`CHUNK_ROWS`](crate::CHUNK_ROWS) rows, without a lock.
    ///
    /// # Errors
    /// [`EvalError`] if the witness or a buffer has other dimensions than the
    /// circuit, and [`EvalError::Stopped`].
    pub fn evaluate_into<W: Columns<S>>(
        &self,
        witness: &W,
        a: &mut [S],
        b: &mut [S],
        checkpoint: &Checkpoint<'_>,
    ) -> Result<(), EvalError> {
        run::evaluate_ab(self.rows_of(), witness, [a, b], checkpoint, false)
    }

    /// Evaluates A and B over a witness that satisfies the circuit. This is several
    /// times faster than [`Program::evaluate_into`] where rows are long sums.
    ///
    /// On a row that does not hold, a may be the value of C (or b, if A is the constant).
    /// Every verifier rejects a proof with such a witness, as it would with the exact
    /// values. The proof commits to the witness itself.
    ///
    /// # Errors
    /// As [`Program::evaluate_into`].
    pub fn evaluate_satisfied<W: Columns<S>>(
        &self,
        witness: &W,
        [a, b]: [&mut [S]; 2],
        checkpoint: &Checkpoint<'_>,
    ) -> Result<(), EvalError> {
        run::evaluate_ab(self.rows_of(), witness, [a, b], checkpoint, true)
    }

    /// Evaluates C too; otherwise as [`Program::evaluate_into`]. A prover has
    /// no need of it: for a witness that satisfies the circuit c is a∘b.
    ///
    /// # Errors
    /// As [`Program::evaluate_into`].
    pub fn evaluate_abc_into<W: Columns<S>>(
        &self,
        witness: &W,
        abc: [&mut [S]; 3],
        checkpoint: &Checkpoint<'_>,
    ) -> Result<(), EvalError> {
        run::evaluate_abc(self.rows_of(), witness, abc, checkpoint)
    }
}
