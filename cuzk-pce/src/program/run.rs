//! Evaluation of a compiled circuit: a = A·w, b = B·w and, to check a witness,
//! c = C·w.
//!
//! Work is split as in [`crate::spmv_parallel`]: blocks of [`CHUNK_ROWS`] rows
//! on rayon's current pool, every [`THROTTLE_CHUNKS`]th passing the throttle.
//! A block enters the grammar at its first row. Rows of one shape that follow
//! each other are evaluated together.
//!
//! A part whose coefficients are small integers over variables that turn out
//! to be bits is summed as an integer, and the field element is looked up; a
//! run over bits is read as one integer and converted once. Whether values
//! are bits is asked of the witness every time, so the result is exact for
//! *any* witness, satisfying or not.
//!
//! Invariant: results are those of [`crate::naive`] on the unfolded rows.

use super::{
    Program,
    rows::{INPUT_BIT, Item, Step, Term},
    tables::View,
};
use crate::{
    eval::{CHUNK_ROWS, EvalError, THROTTLE_CHUNKS},
    throttle::Gate,
    witness::Columns,
};
use ff::PrimeField;
use rayon::prelude::*;
use std::sync::atomic::AtomicI32;

/// Greatest sum of absolute coefficients that counts as small. Rows of bits
/// hardly ever have more than 8; the table is 4 KB.
const SMALL_MAX: i32 = 63;

/// Most terms of a part that is summed as an integer.
const SMALL_TERMS_MAX: usize = 4;

/// What evaluation knows of a program beyond its tables.
#[derive(Debug)]
pub(super) struct Prepared<S> {
    /// By coefficient: its value if it is a small integer, else 0.
    small: Vec<i8>,
    /// By part: whether it is summed as an integer when its variables are bits.
    is_small: Vec<bool>,
    /// The integers from −[`SMALL_MAX`] to [`SMALL_MAX`].
    integers: Vec<S>,
    /// 2^−k by k.
    halves: Vec<S>,
    /// Whether canonical bytes have the lowest first.
    little_endian: bool,
}

/// `SMALL_MAX` as a length.
const SMALL_LEN: usize = SMALL_MAX.unsigned_abs() as usize;

impl<S> Prepared<S> {
    pub(super) fn resident_bytes(&self) -> usize {
        size_of_val(&self.small[..])
            + size_of_val(&self.is_small[..])
            + size_of_val(&self.integers[..])
            + size_of_val(&self.halves[..])
    }
}

impl<S: PrimeField> Prepared<S> {
    pub(super) fn new(coefficients: &[S], view: &View<'_>) -> Self {
        let ascending: Vec<S> = (0..=SMALL_MAX.unsigned_abs())
            .map(|k| S::from(u64::from(k)))
            .collect();
        let negative = ascending.iter().skip(1).rev().map(|value| -*value);
        let integers: Vec<S> = negative.chain(ascending.iter().copied()).collect();
        let little_endian = S::ONE.to_repr().as_ref().first() == Some(&1);
        let small = |value| small_integer(value, little_endian);
        let small: Vec<i8> = coefficients.iter().map(small).collect();
        let parts = 0..u32::try_from(view.part_ends.len()).unwrap_or(u32::MAX);
        let is_small = parts
            .map(|part| is_small(view.part(part), &small))
            .collect();
        let halves = std::iter::successors(Some(S::ONE), |value| Some(*value * S::TWO_INV));
        Prepared {
            small,
            is_small,
            integers,
            halves: halves.take(super::rows::RUN_TERMS_MAX).collect(),
            little_endian,
        }
    }
}

/// The coefficient as an integer of at most [`SMALL_MAX`], or 0.
fn small_integer<S: PrimeField>(value: &S, little_endian: bool) -> i8 {
    let magnitude = |value: S| {
        let repr = value.to_repr();
        let bytes = repr.as_ref();
        let (lowest, others) = if little_endian {
            bytes.split_first()?
        } else {
            bytes.split_last()?
        };
        let is_small = i32::from(*lowest) <= SMALL_MAX && others.iter().all(|&byte| byte == 0);
        is_small.then(|| i8::try_from(*lowest).unwrap_or(0))
    };
    let negative = || magnitude(-*value).map(|magnitude| -magnitude);
    magnitude(*value).or_else(negative).unwrap_or(0)
}

fn is_small(items: &[[u32; 2]], small: &[i8]) -> bool {
    let mut sum = 0;
    let mut variables = 0;
    for &words in items {
        let Some(Item::One(term)) = Item::decode(words) else {
            return false;
        };
        let coefficient = small.get(term.coefficient as usize).copied().unwrap_or(0);
        let is_one = term.col == INPUT_BIT;
        if coefficient == 0 || term.col & INPUT_BIT != 0 && !is_one {
            return false;
        }
        sum += i32::from(coefficient).abs();
        variables += usize::from(!is_one);
    }
    sum <= SMALL_MAX && variables <= SMALL_TERMS_MAX
}

impl<S: PrimeField> Program<S> {
    /// Evaluates A and B over `witness` into `a` and `b`, whose contents do
    /// not matter. Each has `rows + num_inputs` places: the circuit's rows,
    /// then the rows `inputᵢ · 0 = 0` that Groth16 appends, where a is the
    /// input and b is zero.
    ///
    /// # Errors
    /// [`EvalError`] if the witness or a buffer has other dimensions than the
    /// circuit.
    pub fn evaluate_into<W: Columns<S>>(
        &self,
        witness: &W,
        a: &mut [S],
        b: &mut [S],
        throttle: Option<&AtomicI32>,
    ) -> Result<(), EvalError> {
        let (a_rows, a_inputs) = self.split(a, "a")?;
        let (b_rows, b_inputs) = self.split(b, "b")?;
        let runner = Runner::new(self, witness)?;
        for (index, value) in a_inputs.iter_mut().enumerate() {
            *value = witness.input(index);
        }
        b_inputs.fill(S::ZERO);
        let gate = Gate::new(throttle);
        a_rows
            .par_chunks_mut(CHUNK_ROWS)
            .zip(b_rows.par_chunks_mut(CHUNK_ROWS))
            .enumerate()
            .for_each(|(chunk, (a, b))| {
                gate_chunk(&gate, chunk);
                runner.rows(chunk, [a, b]);
            });
        Ok(())
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
        throttle: Option<&AtomicI32>,
    ) -> Result<(), EvalError> {
        let [a, b, c] = abc;
        let (c_rows, c_inputs) = self.split(c, "c")?;
        let (a_rows, a_inputs) = self.split(a, "a")?;
        let (b_rows, b_inputs) = self.split(b, "b")?;
        let runner = Runner::new(self, witness)?;
        for (index, value) in a_inputs.iter_mut().enumerate() {
            *value = witness.input(index);
        }
        b_inputs.fill(S::ZERO);
        c_inputs.fill(S::ZERO);
        let gate = Gate::new(throttle);
        a_rows
            .par_chunks_mut(CHUNK_ROWS)
            .zip(b_rows.par_chunks_mut(CHUNK_ROWS))
            .zip(c_rows.par_chunks_mut(CHUNK_ROWS))
            .enumerate()
            .for_each(|(chunk, ((a, b), c))| {
                gate_chunk(&gate, chunk);
                runner.rows(chunk, [a, b, c]);
            });
        Ok(())
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

/// The first row, from 0, where (A·w)∘(B·w) ≠ C·w, or `None` if the witness
/// satisfies the circuit.
///
/// # Errors
/// [`EvalError`] if the witness has other dimensions than the circuit.
pub fn check<S: PrimeField, W: Columns<S>>(
    program: &Program<S>,
    witness: &W,
) -> Result<Option<usize>, EvalError> {
    let runner = Runner::new(program, witness)?;
    let first_bad = |chunk: usize| {
        let rows = (program.rows() - chunk * CHUNK_ROWS).min(CHUNK_ROWS);
        let [mut a, mut b, mut c] = [(); 3].map(|()| vec![S::ZERO; rows]);
        runner.rows(chunk, [&mut a, &mut b, &mut c]);
        let bad = (0..rows).find(|&i| a[i] * b[i] != c[i])?;
        Some(chunk * CHUNK_ROWS + bad)
    };
    let chunks = program.rows().div_ceil(CHUNK_ROWS);
    Ok((0..chunks)
        .into_par_iter()
        .map(first_bad)
        .find_first(Option::is_some)
        .flatten())
}

fn gate_chunk(gate: &Gate<'_>, chunk: usize) {
    if chunk.is_multiple_of(THROTTLE_CHUNKS) {
        gate.pass();
    }
}

/// One evaluation: a program and a witness of its dimensions.
struct Runner<'a, S, W> {
    view: View<'a>,
    coefficients: &'a [S],
    prepared: &'a Prepared<S>,
    witness: &'a W,
}

/// Rows of one shape that follow each other: their cursors are `first_cursor`,
/// `first_cursor + advance` and so on.
#[derive(Clone, Copy)]
struct Stretch {
    first_cursor: usize,
    advance: usize,
}

impl<'a, S: PrimeField, W: Columns<S>> Runner<'a, S, W> {
    fn new(program: &'a Program<S>, witness: &'a W) -> Result<Self, EvalError> {
        let got = witness.num_inputs() + witness.num_aux();
        EvalError::check_length(program.num_variables(), got)?;
        if program.num_inputs() != witness.num_inputs() {
            return Err(EvalError::InputCount {
                expected: program.num_inputs(),
                got: witness.num_inputs(),
            });
        }
        Ok(Runner {
            view: program.tables.view(),
            coefficients: &program.coefficients,
            prepared: &program.run,
            witness,
        })
    }

    /// Evaluates the first N of A, B and C on a chunk of rows.
    fn rows<const N: usize>(&self, chunk: usize, mut out: [&mut [S]; N]) {
        let first = u32::try_from(chunk * CHUNK_ROWS).unwrap_or(u32::MAX);
        let (walk, cursor) = self.view.grammar.walk(first);
        let mut cursor = cursor as usize;
        let rows = out.first().map_or(0, |out| out.len());
        let mut done = 0;
        for (terminal, count) in walk {
            let Some(shape) = self.view.shape(terminal) else {
                break;
            };
            let count = (count as usize).min(rows - done);
            let stretch = Stretch {
                first_cursor: cursor + shape.advance as usize,
                advance: shape.advance as usize,
            };
            for (out, part) in out.iter_mut().zip(shape.parts) {
                self.part(part, stretch, &mut out[done..done + count]);
            }
            cursor += count * shape.advance as usize;
            done += count;
            if done == rows {
                break;
            }
        }
    }

    /// One part on a stretch of rows.
    #[inline]
    fn part(&self, part: u32, stretch: Stretch, out: &mut [S]) {
        let items = self.view.part(part);
        if items.is_empty() {
            out.fill(S::ZERO);
        } else if self.prepared.is_small[part as usize] {
            self.small_part(items, stretch, out);
        } else {
            self.each_row(items, stretch, out);
        }
    }

    fn each_row(&self, items: &[[u32; 2]], stretch: Stretch, out: &mut [S]) {
        for (k, value) in out.iter_mut().enumerate() {
            *value = self.row(items, stretch.first_cursor + k * stretch.advance);
        }
    }

    /// A part of small coefficients: integers if its variables are bits.
    fn small_part(&self, items: &[[u32; 2]], stretch: Stretch, out: &mut [S]) {
        // Bits of consecutive rows are consecutive bits if each row follows
        // one allocation; otherwise rows are taken one at a time.
        let step = if stretch.advance == 1 { 64 } else { 1 };
        for (chunk, out) in out.chunks_mut(step).enumerate() {
            let cursor = stretch.first_cursor + chunk * step * stretch.advance;
            if !self.small_rows(items, cursor, out) {
                let first_cursor = cursor;
                self.each_row(
                    items,
                    Stretch {
                        first_cursor,
                        ..stretch
                    },
                    out,
                );
            }
        }
    }

    /// Up to 64 rows whose variables move by one from row to row; `false` if
    /// one of these is not a bit.
    #[inline]
    fn small_rows(&self, items: &[[u32; 2]], cursor: usize, out: &mut [S]) -> bool {
        let mut constant = SMALL_MAX;
        let mut bits = [0; SMALL_TERMS_MAX];
        let mut factors = [0; SMALL_TERMS_MAX];
        let mut terms = 0;
        for &[col, coefficient] in items {
            let factor = i32::from(self.prepared.small[coefficient as usize]);
            if col & INPUT_BIT != 0 {
                constant += factor;
                continue;
            }
            let Some(word) = self.witness.bits(cursor - col as usize, out.len()) else {
                return false;
            };
            bits[terms] = word;
            factors[terms] = factor;
            terms += 1;
        }
        match terms {
            0 => self.look_up::<0>(constant, bits, factors, out),
            1 => self.look_up::<1>(constant, bits, factors, out),
            2 => self.look_up::<2>(constant, bits, factors, out),
            3 => self.look_up::<3>(constant, bits, factors, out),
            _ => self.look_up::<SMALL_TERMS_MAX>(constant, bits, factors, out),
        }
        true
    }

    /// Row k is the integer `constant` − SMALL_MAX + Σ factor · bit k.
    #[inline]
    fn look_up<const TERMS: usize>(
        &self,
        constant: i32,
        bits: [u64; SMALL_TERMS_MAX],
        factors: [i32; SMALL_TERMS_MAX],
        out: &mut [S],
    ) {
        let integers = &self.prepared.integers[..2 * SMALL_LEN + 1];
        for (k, value) in out.iter_mut().enumerate() {
            let mut sum = constant;
            for term in 0..TERMS {
                // All ones if the bit is set.
                let mask = -i32::from(bits[term] >> k & 1 == 1);
                sum += factors[term] & mask;
            }
            *value = integers[sum.unsigned_abs() as usize];
        }
    }

    /// One row of any part.
    fn row(&self, items: &[[u32; 2]], cursor: usize) -> S {
        let mut sum = S::ZERO;
        for &words in items {
            match Item::decode(words) {
                Some(Item::One(term)) => self.add_term(&mut sum, term, cursor),
                Some(Item::Run {
                    first,
                    length,
                    step,
                }) => self.add_run(&mut sum, (first, length as usize, step), cursor),
                None => {}
            }
        }
        sum
    }

    #[inline]
    fn add_term(&self, sum: &mut S, term: Term, cursor: usize) {
        let coefficient = &self.coefficients[term.coefficient as usize];
        let value = if term.col & INPUT_BIT != 0 {
            self.witness.input((term.col & !INPUT_BIT) as usize)
        } else {
            let index = cursor - term.col as usize;
            match self.witness.bits(index, 1) {
                Some(0) => return,
                Some(_) => return *sum += coefficient,
                None => self.witness.aux(index),
            }
        };
        match self.prepared.small[term.coefficient as usize] {
            1 => *sum += value,
            -1 => *sum -= value,
            2 => *sum += value.double(),
            -2 => *sum -= value.double(),
            _ => *sum += value * coefficient,
        }
    }

    #[inline]
    fn add_run(&self, sum: &mut S, (first, length, step): (Term, usize, Step), cursor: usize) {
        let start = cursor - first.col as usize;
        let coefficient = self.coefficients[first.coefficient as usize];
        let Some(bits) = self.run_bits(start, length) else {
            return self.add_run_by_term(sum, (coefficient, length, step), start);
        };
        let value = match step {
            Step::Stay => S::from(bits.iter().map(|word| u64::from(word.count_ones())).sum()),
            Step::Double => self.integer(bits),
            Step::Halve => self.integer(reversed(bits, length)) * self.prepared.halves[length - 1],
        };
        *sum += match self.prepared.small[first.coefficient as usize] {
            1 => value,
            -1 => -value,
            _ => value * coefficient,
        };
    }

    /// The bits of a run, the first the lowest, if all its variables are bits
    /// and the integer they make is below the modulus.
    fn run_bits(&self, start: usize, length: usize) -> Option<[u64; 4]> {
        if length > S::CAPACITY as usize {
            return None;
        }
        let mut bits = [0; 4];
        for (word, done) in bits.iter_mut().zip((0..length).step_by(64)) {
            *word = self.witness.bits(start + done, (length - done).min(64))?;
        }
        Some(bits)
    }

    fn add_run_by_term(&self, sum: &mut S, (first, length, step): (S, usize, Step), start: usize) {
        let mut coefficient = first;
        for index in start..start + length {
            *sum += self.witness.aux(index) * coefficient;
            match step {
                Step::Stay => {}
                Step::Double => coefficient = coefficient.double(),
                Step::Halve => coefficient *= S::TWO_INV,
            }
        }
    }

    /// An integer below the modulus as a field element.
    fn integer(&self, words: [u64; 4]) -> S {
        if words[1..] == [0; 3] {
            return S::from(words[0]);
        }
        let mut repr = S::Repr::default();
        let bytes = repr.as_mut();
        let canonical = words.iter().flat_map(|word| word.to_le_bytes());
        if self.prepared.little_endian {
            bytes
                .iter_mut()
                .zip(canonical)
                .for_each(|(to, from)| *to = from);
        } else {
            bytes
                .iter_mut()
                .rev()
                .zip(canonical)
                .for_each(|(to, from)| *to = from);
        }
        S::from_repr_vartime(repr).unwrap_or_else(|| self.integer_by_words(words))
    }

    /// The same by Horner's rule, for a field whose bytes are stranger still.
    fn integer_by_words(&self, words: [u64; 4]) -> S {
        let word = S::from(u64::MAX) + S::ONE;
        let words = words.iter().rev();
        words.fold(S::ZERO, |sum, &low| sum * word + S::from(low))
    }
}

/// The lowest `length` bits in the opposite order.
fn reversed(words: [u64; 4], length: usize) -> [u64; 4] {
    let [a, b, c, d] = words.map(u64::reverse_bits);
    let words = [d, c, b, a];
    // All 256 bits are reversed: those wanted are the highest.
    let shift = 256 - length;
    let at = |index: usize| words.get(index).copied().unwrap_or(0);
    [0, 1, 2, 3].map(|index| {
        let (word, bit) = (index + shift / 64, shift % 64);
        at(word) >> bit | at(word + 1) << 1 << (63 - bit)
    })
}
