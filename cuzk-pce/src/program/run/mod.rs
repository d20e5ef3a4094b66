//! Evaluation of a compiled circuit: a = A·w, b = B·w and, to check a witness,
//! c = C·w.
//!
//! Reading order: `prepared` (parts as they are run), `lane` (one part on rows
//! that follow a pattern), `row` (one row of any part), `tile` (many rows of
//! all parts), `plain` (rows that are not folded), `check`.
//!
//! Work is split as in [`crate::spmv_parallel`]: blocks of [`CHUNK_ROWS`] rows
//! on rayon's current pool. Every block passes the checkpoint, and not only every
//! [`crate::THROTTLE_CHUNKS`]th as there. Only the thread that looks at the throttle
//! stands aside, and on a few threads almost none would look while the others
//! compute on. A look costs an atomic load, a block of rows hundreds of thousands
//! of times that. A block enters the grammar at its first row.
//!
//! The witness is asked for every value if it is a bit, so the result is exact for
//! *any* witness. Only a caller who says that a witness satisfies the rows is
//! trusted: where a row says that a long sum is a variable, the variable is read.
//! Poseidon's rows are of this kind.
//!
//! Invariant: results are those of [`crate::naive`] on the unfolded rows; of
//! [`Program::evaluate_satisfied`], on every row that holds.

mod check;
mod lane;
mod plain;
mod prepared;
mod row;
mod tile;

pub use check::check;
pub(super) use prepared::{GENERAL, Part, Prepared, VARIABLES_MAX, integer, is_little_endian};

use super::{Body, Program, rows::Shape, tables::View};
use crate::{
    eval::{CHUNK_ROWS, EvalError},
    witness::Columns,
};
use cuzk_memory::Checkpoint;
use ff::PrimeField;
use plain::PlainRunner;
use rayon::prelude::*;

impl<S: PrimeField> Program<S> {
    /// Evaluates A and B over `witness` into `a` and `b`, whose contents do
    /// not matter. Each has `rows + num_inputs` places: the circuit's rows,
    /// then the rows `inputᵢ · 0 = 0` that Groth16 appends, where a is the
    /// input and b is zero. Each thread passes `checkpoint` before every block of
    /// [`CHUNK_ROWS`] rows, without a lock.
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
        self.evaluate_ab(witness, [a, b], checkpoint, false)
    }

    /// Evaluates A and B over a witness that satisfies the circuit. This is several
    /// times faster than [`Program::evaluate_into`] where rows are long sums.
    ///
    /// On a row that does not hold, a may be what C comes to (b, if A is the
    /// constant): whoever proves with such a witness gets a proof that no verifier
    /// accepts, as they would with the exact values, since what the proof commits
    /// to is the witness itself.
    ///
    /// # Errors
    /// As [`Program::evaluate_into`].
    pub fn evaluate_satisfied<W: Columns<S>>(
        &self,
        witness: &W,
        [a, b]: [&mut [S]; 2],
        checkpoint: &Checkpoint<'_>,
    ) -> Result<(), EvalError> {
        self.evaluate_ab(witness, [a, b], checkpoint, true)
    }

    fn evaluate_ab<W: Columns<S>>(
        &self,
        witness: &W,
        [a, b]: [&mut [S]; 2],
        checkpoint: &Checkpoint<'_>,
        is_satisfied: bool,
    ) -> Result<(), EvalError> {
        let (a_rows, a_inputs) = self.split(a, "a")?;
        let (b_rows, b_inputs) = self.split(b, "b")?;
        let evaluation = Evaluation::new(self, witness, is_satisfied)?;
        for (index, value) in a_inputs.iter_mut().enumerate() {
            *value = witness.input(index);
        }
        b_inputs.fill(S::ZERO);
        a_rows
            .par_chunks_mut(CHUNK_ROWS)
            .zip(b_rows.par_chunks_mut(CHUNK_ROWS))
            .enumerate()
            .try_for_each(|(chunk, (a, b))| {
                checkpoint.check()?;
                evaluation.chunk(chunk, [a, b]);
                Ok(())
            })
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
        let [a, b, c] = abc;
        let (c_rows, c_inputs) = self.split(c, "c")?;
        let (a_rows, a_inputs) = self.split(a, "a")?;
        let (b_rows, b_inputs) = self.split(b, "b")?;
        let evaluation = Evaluation::new(self, witness, false)?;
        for (index, value) in a_inputs.iter_mut().enumerate() {
            *value = witness.input(index);
        }
        b_inputs.fill(S::ZERO);
        c_inputs.fill(S::ZERO);
        a_rows
            .par_chunks_mut(CHUNK_ROWS)
            .zip(b_rows.par_chunks_mut(CHUNK_ROWS))
            .zip(c_rows.par_chunks_mut(CHUNK_ROWS))
            .enumerate()
            .try_for_each(|(chunk, ((a, b), c))| {
                checkpoint.check()?;
                evaluation.chunk(chunk, [a, b, c]);
                Ok(())
            })
    }

    /// The places of the rows and of the public inputs in a lent buffer.
    fn split<'a>(
        &self,
        buffer: &'a mut [S],
        name: &'static str,
    ) -> Result<(&'a mut [S], &'a mut [S]), EvalError> {
        let expected = self.rows() + self.num_inputs();
        if buffer.len() == expected {
            Ok(buffer.split_at_mut(self.rows()))
        } else {
            Err(EvalError::BufferLength {
                name,
                expected,
                got: buffer.len(),
            })
        }
    }
}

/// One evaluation: a program and a witness of its dimensions.
enum Evaluation<'a, S, W> {
    Folded(Runner<'a, S, W>),
    Plain(PlainRunner<'a, S, W>),
}

impl<'a, S: PrimeField, W: Columns<S>> Evaluation<'a, S, W> {
    fn new(program: &'a Program<S>, witness: &'a W, is_satisfied: bool) -> Result<Self, EvalError> {
        let got = witness.num_inputs() + witness.num_aux();
        EvalError::check_length(program.num_variables(), got)?;
        if program.num_inputs() != witness.num_inputs() {
            return Err(EvalError::InputCount {
                expected: program.num_inputs(),
                got: witness.num_inputs(),
            });
        }
        Ok(match &program.body {
            Body::Plain(r1cs) => Evaluation::Plain(PlainRunner { r1cs, witness }),
            Body::Folded(folded) => Evaluation::Folded(Runner {
                view: folded.tables.view(),
                coefficients: &folded.coefficients,
                prepared: &folded.run,
                witness,
                past_caches: program.rows() * size_of::<S>() >= PAST_CACHES_BYTES,
                is_satisfied,
            }),
        })
    }

    fn chunk<const N: usize>(&self, chunk: usize, out: [&mut [S]; N]) {
        match self {
            Evaluation::Folded(runner) => runner.chunk(chunk, out),
            Evaluation::Plain(runner) => runner.chunk(chunk, out),
        }
    }
}

/// Folded rows and a witness of their dimensions.
struct Runner<'a, S, W> {
    view: View<'a>,
    coefficients: &'a [S],
    prepared: &'a Prepared<S>,
    witness: &'a W,
    /// Whether results pass the caches by.
    past_caches: bool,
    /// Whether every row may be taken to hold.
    is_satisfied: bool,
}

/// Results of so many bytes, each of a, b and c, are not looked for in a cache
/// by whoever reads them next.
const PAST_CACHES_BYTES: usize = 1 << 24;

impl<S, W> Runner<'_, S, W> {
    #[inline]
    fn shape(&self, terminal: u32) -> Shape {
        self.view.shape(terminal).unwrap_or(Shape::EMPTY)
    }
}
