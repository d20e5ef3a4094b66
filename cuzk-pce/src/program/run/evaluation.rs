//! The evaluation of A, B and C over a witness, in blocks of rows.

use super::{plain::PlainRunner, runner::Runner};
use crate::{
    eval::{CHUNK_ROWS, EvalError},
    program::{body::Body, dimensions::Dimensions},
    witness::Columns,
};
use cuzk_memory::Checkpoint;
use ff::PrimeField;
use rayon::prelude::*;

/// Evaluates A and B. With `is_satisfied`, every row is taken to hold.
///
/// # Errors
/// As [`Program::evaluate_into`](crate::Program::evaluate_into).
pub(in crate::program) fn evaluate_ab<S: PrimeField, W: Columns<S>>(
    rows: (&Dimensions, &Body<S>),
    witness: &W,
    [a, b]: [&mut [S]; 2],
    checkpoint: &Checkpoint<'_>,
    is_satisfied: bool,
) -> Result<(), EvalError> {
    let (a_rows, a_inputs) = split(rows.0, a, "a")?;
    let (b_rows, b_inputs) = split(rows.0, b, "b")?;
    let evaluation = Evaluation::new(rows, witness, is_satisfied)?;
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

/// Evaluates A, B and C.
///
/// # Errors
/// As [`Program::evaluate_into`](crate::Program::evaluate_into).
pub(in crate::program) fn evaluate_abc<S: PrimeField, W: Columns<S>>(
    rows: (&Dimensions, &Body<S>),
    witness: &W,
    abc: [&mut [S]; 3],
    checkpoint: &Checkpoint<'_>,
) -> Result<(), EvalError> {
    let [a, b, c] = abc;
    let (c_rows, c_inputs) = split(rows.0, c, "c")?;
    let (a_rows, a_inputs) = split(rows.0, a, "a")?;
    let (b_rows, b_inputs) = split(rows.0, b, "b")?;
    let evaluation = Evaluation::new(rows, witness, false)?;
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
fn split<'a, S>(
    dimensions: &Dimensions,
    buffer: &'a mut [S],
    name: &'static str,
) -> Result<(&'a mut [S], &'a mut [S]), EvalError> {
    let rows = dimensions.rows as usize;
    let expected = rows + dimensions.num_inputs as usize;
    if buffer.len() == expected {
        Ok(buffer.split_at_mut(rows))
    } else {
        Err(EvalError::BufferLength {
            name,
            expected,
            got: buffer.len(),
        })
    }
}

/// One evaluation: rows and a witness of their dimensions.
pub(super) enum Evaluation<'a, S, W> {
    Folded(Runner<'a, S, W>),
    Plain(PlainRunner<'a, S, W>),
}

impl<'a, S: PrimeField, W: Columns<S>> Evaluation<'a, S, W> {
    /// # Errors
    /// The witness has other dimensions.
    pub(super) fn new(
        (dimensions, body): (&Dimensions, &'a Body<S>),
        witness: &'a W,
        is_satisfied: bool,
    ) -> Result<Self, EvalError> {
        let num_inputs = dimensions.num_inputs as usize;
        let num_variables = num_inputs + dimensions.num_aux as usize;
        let got = witness.num_inputs() + witness.num_aux();
        EvalError::check_length(num_variables, got)?;
        if num_inputs != witness.num_inputs() {
            return Err(EvalError::InputCount {
                expected: num_inputs,
                got: witness.num_inputs(),
            });
        }
        Ok(match body {
            Body::Plain(r1cs) => Evaluation::Plain(PlainRunner { r1cs, witness }),
            Body::Folded(folded) => Evaluation::Folded(Runner {
                view: folded.tables.view(),
                coefficients: &folded.coefficients,
                prepared: &folded.run,
                witness,
                past_caches: dimensions.rows as usize * size_of::<S>() >= PAST_CACHES_BYTES,
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

/// Results of so many bytes, each of a, b and c, are not looked for in a cache
/// by whoever reads them next.
const PAST_CACHES_BYTES: usize = 1 << 24;
