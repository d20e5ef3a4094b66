//! Parts in the form in which they are run, decoded once when a program is
//! made.
//!
//! Most parts are *small*: at most three variables and ONE, with coefficients
//! that are small integers. If the variables are bits, the part is one of
//! eight integers, so it is kept as the table of these. Everything else is run
//! from its items.
//!
//! Invariant: a small part says the same as its items.

use super::{
    drift::Drifts,
    part::{GENERAL, GENERAL_PART, Part, SMALL_MAX, VARIABLES_MAX},
    rows::{INPUT_BIT, Item, RUN_TERMS_MAX, Shape},
    tables::View,
};
use ff::PrimeField;

/// The integers from −[`SMALL_MAX`] to [`SMALL_MAX`], and one place more: then
/// the length is a power of two.
const INTEGERS: usize = 128;

/// Greatest magnitude, in bits, of a coefficient that is added as an integer:
/// times 64 bits it still leaves room for a sum of 127.
const INTEGER_BITS: u32 = 55;

/// The one of A and B that equals C on a row that holds, and is longer than C: its factor
/// is the constant ONE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Copied {
    Neither,
    A,
    B,
}

/// The data of a program that evaluation needs beside its tables.
#[derive(Debug)]
pub(super) struct Prepared<S> {
    parts: Vec<Part>,
    /// By shape: which part C stands for where the row holds.
    copies: Vec<Copied>,
    /// By coefficient: its value if it is an integer of at most
    /// [`INTEGER_BITS`] bits, else 0.
    integer_coefficients: Vec<i64>,
    /// The small integers, from −[`SMALL_MAX`] on.
    integers: Box<[S; INTEGERS]>,
    /// 2^−k by k.
    halves: Vec<S>,
    /// True if canonical bytes have the lowest first.
    little_endian: bool,
    drifts: Option<Drifts>,
}

impl<S> Prepared<S> {
    pub(super) fn resident_bytes(&self) -> usize {
        size_of_val(&self.parts[..])
            + size_of_val(&self.copies[..])
            + size_of_val(&self.integer_coefficients[..])
            + size_of_val(&self.integers[..])
            + size_of_val(&self.halves[..])
            + self.drifts.as_ref().map_or(0, Drifts::resident_bytes)
    }

    /// The grammar's drifts.
    #[inline]
    pub(super) fn drifts(&self) -> Option<&Drifts> {
        self.drifts.as_ref()
    }

    /// A part, in the form in which it is run.
    #[inline]
    pub(super) fn part(&self, part: u32) -> &Part {
        self.parts.get(part as usize).unwrap_or(&GENERAL_PART)
    }

    /// The matrix to evaluate in place of `matrix` on a row that holds.
    #[inline]
    pub(super) fn source(&self, terminal: u32, matrix: usize) -> usize {
        match (self.copies.get((terminal >> 1) as usize), matrix) {
            (Some(Copied::A), 0) | (Some(Copied::B), 1) => 2,
            _ => matrix,
        }
    }

    /// The small integers, as [`Part::sums`] names them.
    #[inline]
    pub(super) fn integers(&self) -> &[S; INTEGERS] {
        &self.integers
    }

    /// A coefficient as an integer, or 0 if it is none or too large.
    #[inline]
    pub(super) fn integer_coefficient(&self, coefficient: u32) -> i64 {
        let integer = self.integer_coefficients.get(coefficient as usize);
        integer.copied().unwrap_or(0)
    }
}

impl<S: PrimeField> Prepared<S> {
    pub(super) fn new(coefficients: &[S], view: &View<'_>) -> Self {
        let little_endian = is_little_endian::<S>();
        let integer = |value| integer(value, little_endian);
        let integer_coefficients: Vec<i64> = coefficients.iter().map(integer).collect();
        let parts = 0..u32::try_from(view.part_ends.len()).unwrap_or(u32::MAX);
        let parts: Vec<Part> = parts
            .map(|part| small(view.part(part), &integer_coefficients).unwrap_or(GENERAL_PART))
            .collect();
        let shapes = view.grammar.shapes.iter();
        let copies = shapes
            .map(|&words| copied(Shape::decode(words), view, &parts, &integer_coefficients))
            .collect();
        let mut integers = Box::new([S::ZERO; INTEGERS]);
        let lowest = -S::from(u64::from(SMALL_MAX.unsigned_abs()));
        let ascending = std::iter::successors(Some(lowest), |value| Some(*value + S::ONE));
        integers
            .iter_mut()
            .zip(ascending)
            .for_each(|(place, value)| *place = value);
        let halves = std::iter::successors(Some(S::ONE), |value| Some(*value * S::TWO_INV));
        Prepared {
            drifts: Drifts::find(view.grammar, &parts),
            parts,
            copies,
            integer_coefficients,
            integers,
            halves: halves.take(RUN_TERMS_MAX).collect(),
            little_endian,
        }
    }

    /// 2^−k for k below the length of a run.
    #[inline]
    pub(super) fn half_to_the(&self, k: usize) -> S {
        self.halves.get(k).copied().unwrap_or(S::ZERO)
    }

    /// An integer as a field element.
    pub(super) fn signed(&self, integer: i128) -> S {
        let magnitude = integer.unsigned_abs();
        let is_small = |x: &i32| x.unsigned_abs() <= SMALL_MAX.unsigned_abs();
        let small = i32::try_from(integer).ok().filter(is_small);
        if let Some(at) = small.and_then(|small| usize::try_from(small + SMALL_MAX).ok()) {
            return self.integers[at & (INTEGERS - 1)];
        }
        let value = match u64::try_from(magnitude) {
            Ok(word) => S::from(word),
            Err(_) if S::CAPACITY < u128::BITS => S::from_u128(magnitude),
            Err(_) => {
                let [low, high] = [magnitude, magnitude >> 64].map(low_word);
                self.unsigned([low, high, 0, 0])
            }
        };
        if integer < 0 { -value } else { value }
    }

    /// An integer below the modulus as a field element.
    pub(super) fn unsigned(&self, words: [u64; 4]) -> S {
        if words[1..] == [0; 3] {
            return S::from(words[0]);
        }
        let mut repr = S::Repr::default();
        let bytes = repr.as_mut();
        let canonical = words.iter().flat_map(|word| word.to_le_bytes());
        if self.little_endian {
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
        S::from_repr_vartime(repr).unwrap_or_else(|| by_words(words))
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the low word is asked for")]
fn low_word(integer: u128) -> u64 {
    integer as u64
}

/// Converts words by Horner's rule, for a field whose bytes have another order.
fn by_words<S: PrimeField>(words: [u64; 4]) -> S {
    let word = S::from(u64::MAX) + S::ONE;
    let words = words.iter().rev();
    words.fold(S::ZERO, |sum, &low| sum * word + S::from(low))
}

/// Returns true if a field's canonical bytes have the lowest first.
pub(super) fn is_little_endian<S: PrimeField>() -> bool {
    S::ONE.to_repr().as_ref().first() == Some(&1)
}

/// The coefficient as an integer of at most [`INTEGER_BITS`] bits, or 0.
pub(super) fn integer<S: PrimeField>(value: &S, little_endian: bool) -> i64 {
    let magnitude = |value: S| {
        let mut repr = value.to_repr();
        let bytes = repr.as_mut();
        if !little_endian {
            bytes.reverse();
        }
        let (low, high) = bytes.split_at(bytes.len().min(8));
        let mut word = [0; 8];
        word[..low.len()].copy_from_slice(low);
        let word = i64::try_from(u64::from_le_bytes(word)).ok()?;
        (word >> INTEGER_BITS == 0 && high.iter().all(|&byte| byte == 0)).then_some(word)
    };
    let negative = || magnitude(-*value).map(|magnitude| -magnitude);
    magnitude(*value).or_else(negative).unwrap_or(0)
}

fn copied(shape: Shape, view: &View<'_>, parts: &[Part], integers: &[i64]) -> Copied {
    let [a, b, c] = shape.parts.map(|part| view.part(part));
    let is_one = |items: &[[u32; 2]]| match items {
        &[words] => matches!(
            Item::decode(words),
            Some(Item::One(term)) if term.col == INPUT_BIT
                && integers.get(term.coefficient as usize) == Some(&1)
        ),
        _ => false,
    };
    let is_general = |part: u32| {
        let part = parts.get(part as usize);
        part.is_some_and(|part| part.variables == GENERAL)
    };
    if is_one(b) && is_general(shape.parts[0]) && c.len() < a.len() {
        Copied::A
    } else if is_one(a) && is_general(shape.parts[1]) && c.len() < b.len() {
        Copied::B
    } else {
        Copied::Neither
    }
}

/// The part as a small one, if it is small.
fn small(items: &[[u32; 2]], integers: &[i64]) -> Option<Part> {
    let mut cols = [0; VARIABLES_MAX];
    let mut factors = [0; VARIABLES_MAX];
    let mut constant = 0;
    let mut magnitude = 0;
    let mut variables = 0;
    for &words in items {
        let Some(Item::One(term)) = Item::decode(words) else {
            return None;
        };
        let factor = i32::try_from(*integers.get(term.coefficient as usize)?).ok()?;
        magnitude += factor.checked_abs().filter(|&m| m > 0 && m <= SMALL_MAX)?;
        if term.col == INPUT_BIT {
            constant += factor;
        } else if term.col & INPUT_BIT == 0 && variables < VARIABLES_MAX {
            cols[variables] = term.col;
            factors[variables] = factor;
            variables += 1;
        } else {
            return None;
        }
        if magnitude > SMALL_MAX {
            return None;
        }
    }
    let sum = |choice: usize| {
        let chosen = factors
            .iter()
            .enumerate()
            .filter(|(k, _)| choice >> k & 1 == 1);
        SMALL_MAX + constant + chosen.map(|(_, factor)| factor).sum::<i32>()
    };
    Some(Part {
        cols,
        variables: u8::try_from(variables).ok()?,
        sums: [0, 1, 2, 3, 4, 5, 6, 7].map(|choice| u8::try_from(sum(choice)).unwrap_or(0)),
    })
}
