//! One row of any part, from its items.
//!
//! Terms that come to an integer are added up as integers, and converted once. These are
//! bits with integer coefficients, and runs over bits whose coefficients double or halve:
//! such a run is the word of its bits. The rest is field arithmetic.

use super::{lane::every_second, runner::Runner};
use crate::{
    program::rows::{INPUT_BIT, Item, Run, Step, Term},
    witness::Columns,
};
use ff::PrimeField;

/// A sum is moved to the field when its magnitude has so many bits; what is
/// added at a time has fewer.
const SUM_BITS: u32 = 120;

/// A sum, part of which is still an integer.
struct Sum<S> {
    field: S,
    integer: i128,
}

impl<S: PrimeField, W: Columns<S>> Runner<'_, S, W> {
    /// One row of any part.
    pub(super) fn row(&self, items: &[[u32; 2]], cursor: usize) -> S {
        let mut sum = Sum {
            field: S::ZERO,
            integer: 0,
        };
        for &words in items {
            match Item::decode(words) {
                Some(Item::One(term)) => self.add_term(&mut sum, term, cursor),
                Some(Item::Run(run)) => self.add_run(&mut sum, run, cursor),
                None => {}
            }
            if sum.integer.unsigned_abs() >> SUM_BITS != 0 {
                sum.field += self.prepared.signed(sum.integer);
                sum.integer = 0;
            }
        }
        if sum.integer != 0 {
            sum.field += self.prepared.signed(sum.integer);
        }
        sum.field
    }

    #[inline]
    fn add_term(&self, sum: &mut Sum<S>, term: Term, cursor: usize) {
        let value = if term.col == INPUT_BIT {
            return self.add_coefficient(sum, term.coefficient);
        } else if term.col & INPUT_BIT != 0 {
            self.witness.input((term.col & !INPUT_BIT) as usize)
        } else {
            let index = cursor - term.col as usize;
            match self.witness.bits(index, 1) {
                Some(0) => return,
                Some(_) => return self.add_coefficient(sum, term.coefficient),
                None => self.witness.aux(index),
            }
        };
        match self.prepared.integer_coefficient(term.coefficient) {
            1 => sum.field += value,
            -1 => sum.field -= value,
            2 => sum.field += value.double(),
            -2 => sum.field -= value.double(),
            _ => {
                // In place: a product that is returned would be copied in
                // wider words than it was just written in, which stalls.
                let mut product = value;
                product *= &self.coefficients[term.coefficient as usize];
                sum.field += &product;
            }
        }
    }

    /// Adds a term whose variable is one.
    #[inline]
    fn add_coefficient(&self, sum: &mut Sum<S>, coefficient: u32) {
        match self.prepared.integer_coefficient(coefficient) {
            0 => sum.field += &self.coefficients[coefficient as usize],
            integer => sum.integer += i128::from(integer),
        }
    }

    #[inline]
    fn add_run(&self, sum: &mut Sum<S>, run: Run, cursor: usize) {
        let Run { first, step, .. } = run;
        let start = cursor - first.col as usize;
        let Some(bits) = self.run_bits(run, start) else {
            return self.add_run_by_term(&mut sum.field, run, start);
        };
        let length = run.length as usize;
        let integer = self.prepared.integer_coefficient(first.coefficient);
        if let Some(share) = integer_run(integer, length, step, bits) {
            sum.integer += share;
            return;
        }
        let value = match step {
            Step::Stay => S::from(bits.iter().map(|word| u64::from(word.count_ones())).sum()),
            Step::Double => self.prepared.unsigned(bits),
            Step::Halve => {
                let last = self.prepared.half_to_the(length - 1);
                self.prepared.unsigned(reversed(bits, length)) * last
            }
        };
        match integer {
            1 => sum.field += value,
            -1 => sum.field -= value,
            _ => sum.field += value * self.coefficients[first.coefficient as usize],
        }
    }

    /// Returns the bits of a run, the first as the lowest. All its variables, and those
    /// between them, must be bits, and their integer must be below the modulus.
    fn run_bits(&self, run: Run, start: usize) -> Option<[u64; 4]> {
        let (length, gap) = (run.length as usize, run.gap as usize);
        if length > S::CAPACITY as usize {
            return None;
        }
        let mut bits = [0; 4];
        for (word, done) in bits.iter_mut().zip((0..length).step_by(64)) {
            let (from, count) = (start + done * gap, (length - done).min(64));
            *word = match gap {
                1 => self.witness.bits(from, count)?,
                _ => self.every_second_bit(from, count)?,
            };
        }
        Some(bits)
    }

    /// Up to 64 bits from variables `start`, `start` + 2 and so on.
    fn every_second_bit(&self, start: usize, count: usize) -> Option<u64> {
        let half = count.min(32);
        let low = every_second(self.witness.bits(start, 2 * half - 1)?);
        if count == half {
            return Some(low);
        }
        let high = self.witness.bits(start + 64, 2 * (count - half) - 1)?;
        Some(low | every_second(high) << 32)
    }

    fn add_run_by_term(&self, sum: &mut S, run: Run, start: usize) {
        let mut coefficient = self.coefficients[run.first.coefficient as usize];
        for k in 0..run.length as usize {
            *sum += self.witness.aux(start + k * run.gap as usize) * coefficient;
            match run.step {
                Step::Stay => {}
                Step::Double => coefficient = coefficient.double(),
                Step::Halve => coefficient *= S::TWO_INV,
            }
        }
    }
}

/// A run over a word's bits whose coefficients are integers, as one.
#[inline]
fn integer_run(first: i64, length: usize, step: Step, bits: [u64; 4]) -> Option<i128> {
    if first == 0 || length > 64 {
        return None;
    }
    let (factor, word) = match step {
        Step::Stay => (first, u64::from(bits[0].count_ones())),
        Step::Double => (first, bits[0]),
        Step::Halve => {
            let halvings = u32::try_from(length - 1).ok()?;
            if first.trailing_zeros() < halvings {
                return None;
            }
            (first >> halvings, bits[0].reverse_bits() >> (64 - length))
        }
    };
    Some(i128::from(factor) * i128::from(word))
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
