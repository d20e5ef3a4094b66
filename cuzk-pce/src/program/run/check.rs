//! The check of a witness against a compiled circuit, row by row.
//!
//! Nothing is stored, and where a row's variables are bits, nothing is evaluated. A shape
//! whose three parts are small has a truth table over its few variables. It is made once
//! for each check, and 64 rows are looked up with a few operations on words.
//!
//! Invariant: the verdict is that of [`crate::naive::check`] on the unfolded
//! rows.

use super::{evaluation::Evaluation, lane::Lane, runner::Runner};
use crate::{
    eval::{CHUNK_ROWS, EvalError},
    program::{
        body::Body,
        dimensions::Dimensions,
        part::{GENERAL, Part},
        prepared::Prepared,
        rows::Shape,
        stretch::Stretch,
        walk::Walk,
    },
    witness::Columns,
};
use ff::PrimeField;
use rayon::prelude::*;

/// Most variables of a truth table: a majority of three has five.
const VARIABLES_MAX: usize = 5;

/// Products of two small integers, compared with a third, have fewer bits.
const PRODUCT_BITS: u32 = 16;

/// The first row, from 0, where (A·w)∘(B·w) ≠ C·w, or `None` if the witness
/// satisfies the circuit.
///
/// # Errors
/// [`EvalError`] if the witness has other dimensions than the circuit.
pub(in crate::program) fn check<S: PrimeField, W: Columns<S>>(
    (dimensions, body): (&Dimensions, &Body<S>),
    witness: &W,
) -> Result<Option<usize>, EvalError> {
    let rows = dimensions.rows as usize;
    match Evaluation::new((dimensions, body), witness, false)? {
        Evaluation::Plain(runner) => Ok((0..rows)
            .into_par_iter()
            .with_min_len(CHUNK_ROWS)
            .find_first(|&row| !runner.holds(row))),
        Evaluation::Folded(runner) => {
            let shapes = runner.view.grammar.shapes.iter();
            let truths = shapes
                .map(|&words| Truth::of(Shape::decode(words), runner.prepared))
                .collect();
            let checker = Checker { runner, truths };
            let chunks = rows.div_ceil(CHUNK_ROWS);
            let first_bad = |chunk| checker.first_bad_row(chunk, rows);
            let found = (0..chunks).into_par_iter().map(first_bad);
            Ok(found.find_first(Option::is_some).flatten())
        }
    }
}

/// For which choices of its variables a shape holds.
#[derive(Debug, Clone, Copy)]
struct Truth {
    /// The variables, counted back from the cursor, with a matrix that each
    /// of them stands in and its number in that part.
    variables: [(u32, u8, u8); VARIABLES_MAX],
    length: usize,
    /// Bit i: whether it holds for choice i, the first variable the lowest.
    holds: u32,
}

impl Truth {
    /// `None` if the shape is not of small parts, or has too many variables.
    fn of<S: PrimeField>(shape: Shape, prepared: &Prepared<S>) -> Option<Self> {
        let parts = shape.parts.map(|part| prepared.part(part));
        if S::NUM_BITS <= PRODUCT_BITS || parts.iter().any(|part| part.variables == GENERAL) {
            return None;
        }
        let mut variables = Vec::new();
        for (matrix, part) in (0..).zip(parts) {
            let cols = part.cols().iter().zip(0..);
            variables.extend(cols.map(|(&col, variable)| (col, matrix, variable)));
        }
        variables.sort_unstable();
        variables.dedup_by_key(|variable| variable.0);
        let length = variables.len();
        let cols: Vec<u32> = variables.iter().map(|variable| variable.0).collect();
        variables.resize(length.max(VARIABLES_MAX), (0, 0, 0));
        let integer = |part: &Part, choice: u32| {
            let choices = part.cols().iter().enumerate().map(|(at, col)| {
                let chosen = cols.iter().position(|other| other == col);
                usize::from(chosen.is_some_and(|k| choice >> k & 1 == 1)) << at
            });
            part.integer(choices.sum())
        };
        let holds = |&choice: &u32| {
            let [a, b, c] = parts.map(|part| integer(part, choice));
            a * b == c
        };
        Some(Truth {
            variables: variables.as_slice().try_into().ok()?,
            length,
            holds: (0..1 << length)
                .filter(holds)
                .map(|choice| 1 << choice)
                .sum(),
        })
    }

    /// Bit k: whether the shape holds on row k, whose variables are bit k of
    /// the words.
    #[inline]
    fn on(&self, words: [u64; VARIABLES_MAX]) -> u64 {
        // Halve the table by one variable after the other.
        let mut table = [0; 1 << VARIABLES_MAX];
        let mut length = 1 << self.length;
        for (choice, entry) in table.iter_mut().enumerate().take(length) {
            *entry = 0u64.wrapping_sub(u64::from(self.holds >> choice & 1));
        }
        for word in &words[..self.length] {
            length /= 2;
            for at in 0..length {
                let [zero, one] = [table[2 * at], table[2 * at + 1]];
                table[at] = zero ^ (zero ^ one) & word;
            }
        }
        table[0]
    }
}

struct Checker<'a, S, W> {
    runner: Runner<'a, S, W>,
    truths: Vec<Option<Truth>>,
}

impl<S: PrimeField, W: Columns<S>> Checker<'_, S, W> {
    fn first_bad_row(&self, chunk: usize, rows: usize) -> Option<usize> {
        let mut row = chunk * CHUNK_ROWS;
        let end = rows.min(row + CHUNK_ROWS);
        let drifts = self.runner.prepared.drifts();
        let grammar = self.runner.view.grammar;
        let (walk, cursor) = Walk::new(grammar, u32::try_from(row).ok()?, drifts);
        let mut cursor = cursor as usize;
        for stretch in walk {
            let advance = self.runner.advance(&stretch);
            let first_bad = self.first_bad_in_stretch(&stretch, (cursor, advance), end - row);
            if let Some(first_bad) = first_bad {
                return Some(row + first_bad);
            }
            row += stretch.count * stretch.period;
            cursor += stretch.count * advance;
            if row >= end {
                break;
            }
        }
        None
    }

    /// The first of at most `rows` rows of a stretch that does not hold,
    /// counted from the stretch's first.
    #[inline]
    fn first_bad_in_stretch(
        &self,
        stretch: &Stretch<'_>,
        (mut cursor, advance): (usize, usize),
        rows: usize,
    ) -> Option<usize> {
        let mut first_bad = None;
        for at in 0..stretch.period {
            let terminal = stretch.terminals[at];
            cursor += self.runner.shape(terminal).advance as usize;
            let lane = Lane {
                stretch,
                at,
                cursor,
                advance,
                first: 0,
                count: rows
                    .saturating_sub(at)
                    .div_ceil(stretch.period)
                    .min(stretch.count),
            };
            let bad = self.first_bad(terminal, lane);
            let bad = bad.map(|bad| bad * stretch.period + at);
            first_bad = first_bad.into_iter().chain(bad).min();
        }
        first_bad
    }

    /// The first turn of a lane that does not hold, counted from its first.
    #[inline]
    fn first_bad(&self, terminal: u32, lane: Lane<'_>) -> Option<usize> {
        let truth = self.truths.get((terminal >> 1) as usize)?.as_ref();
        let step = lane.step();
        (0..lane.count).step_by(step).find_map(|done| {
            let lane = lane.part(done, step);
            let words = truth.and_then(|truth| Some((truth, self.words(truth, &lane)?)));
            let bad = match words {
                Some((truth, words)) => {
                    let bad = (!truth.on(words)).trailing_zeros() as usize;
                    (bad < lane.count).then_some(bad)
                }
                None => self.first_bad_by_row(&lane),
            };
            Some(done + bad?)
        })
    }

    #[inline]
    fn words(&self, truth: &Truth, lane: &Lane<'_>) -> Option<[u64; VARIABLES_MAX]> {
        let mut words = [0; VARIABLES_MAX];
        let variables = &truth.variables[..truth.length];
        for (word, &(col, matrix, variable)) in words.iter_mut().zip(variables) {
            let stride = lane.stride(usize::from(matrix), usize::from(variable));
            *word = self.runner.lane_bits(lane, col, stride)?;
        }
        Some(words)
    }

    fn first_bad_by_row(&self, lane: &Lane<'_>) -> Option<usize> {
        let runner = &self.runner;
        (0..lane.count).find(|&turn| {
            let parts = runner.shape(lane.terminal(turn)).parts;
            let value = |part| runner.row(runner.view.part(part), lane.cursor(turn));
            let [a, b, c] = parts.map(value);
            a * b != c
        })
    }
}
