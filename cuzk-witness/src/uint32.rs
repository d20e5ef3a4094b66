//! Words of 32 booleans as the gadgets of bellperson know them.
//!
//! A boolean of a circuit is a constant, a variable, or the negation of one;
//! an operation allocates a variable only where it must. So a word carries
//! which of its bits are constant and which negated, and every operation says
//! by masks what it allocates. This is bit for bit the case analysis of the
//! gadgets `Boolean::{xor, and, sha256_ch, sha256_maj}` and `UInt32::addmany`,
//! 32 bits at a time.
//!
//! Not fast: [`crate::sha256`] leaves it as soon as every bit is a variable,
//! and this is what it is tested against.
//!
//! Invariant: a constant bit is not marked as negated.

use crate::bits::BitRun;

/// A `UInt32` of a circuit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Word {
    /// The values of the booleans.
    pub(crate) value: u32,
    /// Which are constants.
    constant: u32,
    /// Which are negations of variables.
    negated: u32,
}

impl Word {
    /// A word of constants.
    pub(crate) const fn constant(value: u32) -> Self {
        Word {
            value,
            constant: u32::MAX,
            negated: 0,
        }
    }

    /// A word of variables.
    pub(crate) const fn variables(value: u32) -> Self {
        Word {
            value,
            constant: 0,
            negated: 0,
        }
    }

    /// A word of variables, but for the constants that `constant` marks.
    pub(crate) const fn mixed(value: u32, constant: u32) -> Self {
        Word {
            value,
            constant,
            negated: 0,
        }
    }

    /// Are all its bits variables, none of them negated?
    #[inline]
    pub(crate) fn is_variables(self) -> bool {
        self.constant | self.negated == 0
    }

    fn is_constant(self) -> bool {
        self.constant == u32::MAX
    }

    pub(crate) fn rotr(self, by: u32) -> Self {
        Word {
            value: self.value.rotate_right(by),
            constant: self.constant.rotate_right(by),
            negated: self.negated.rotate_right(by),
        }
    }

    /// `by` is less than 32. Zeros that move in are constants.
    pub(crate) fn shr(self, by: u32) -> Self {
        Word {
            value: self.value >> by,
            constant: self.constant >> by | !(u32::MAX >> by),
            negated: self.negated >> by,
        }
    }

    fn not(self) -> Self {
        Word {
            value: !self.value,
            constant: self.constant,
            negated: !self.negated & !self.constant,
        }
    }

    pub(crate) fn xor(self, other: Self, run: &mut BitRun<'_>) -> Self {
        let Outcome { word, allocated } = Outcome::xor(self, other);
        // The variable is the exclusive or of the variables.
        run.push_masked((word.value ^ word.negated).into(), allocated.into());
        word
    }

    /// Chooses `b` where `self` is set and `c` where it is not.
    pub(crate) fn ch(self, b: Self, c: Self, run: &mut BitRun<'_>) -> Self {
        let a = self;
        let Outcome { word, allocated } =
            Outcome::variables(a.value & b.value | !a.value & c.value)
                .unless(b.ones(), Outcome::and(a.not(), c.not()).not())
                .unless(c.ones(), Outcome::and(a, b.not()).not())
                .unless(c.zeros(), Outcome::and(a, b))
                .unless(b.zeros(), Outcome::and(a.not(), c))
                .unless(a.zeros(), Outcome::same(c));
        run.push_masked((word.value ^ word.negated).into(), allocated.into());
        word
    }

    /// The majority of each three bits. Where none is constant it takes two
    /// variables: the majority, and `b & c`.
    pub(crate) fn maj(self, b: Self, c: Self, run: &mut BitRun<'_>) -> Self {
        let a = self;
        let both = b.value & c.value;
        let Outcome { word, allocated } = Outcome::variables(a.value & (b.value | c.value) | both)
            .unless(a.ones(), Outcome::and(b.not(), c.not()).not())
            .unless(b.ones(), Outcome::and(a.not(), c.not()).not())
            .unless(c.ones(), Outcome::and(a.not(), b.not()).not())
            .unless(c.zeros(), Outcome::and(a, b))
            .unless(b.zeros(), Outcome::and(a, c))
            .unless(a.zeros(), Outcome::and(b, c));
        let product = !(a.constant | b.constant | c.constant);
        run.push_masked(
            interleave(word.value ^ word.negated, both),
            interleave(allocated, product),
        );
        word
    }

    fn ones(self) -> u32 {
        self.constant & self.value
    }

    fn zeros(self) -> u32 {
        self.constant & !self.value
    }
}

/// The result of an operation, and the bits for which it allocates a variable.
#[derive(Clone, Copy)]
struct Outcome {
    word: Word,
    allocated: u32,
}

impl Outcome {
    /// A new variable for every bit.
    fn variables(value: u32) -> Self {
        Outcome {
            word: Word::variables(value),
            allocated: u32::MAX,
        }
    }

    /// Returns a word that was there before.
    fn same(word: Word) -> Self {
        Outcome { word, allocated: 0 }
    }

    fn xor(a: Word, b: Word) -> Self {
        let constant = a.constant & b.constant;
        let negated = a.negated ^ b.negated ^ a.ones() ^ b.ones();
        Outcome {
            word: Word {
                value: a.value ^ b.value,
                constant,
                negated: negated & !constant,
            },
            allocated: !(a.constant | b.constant),
        }
    }

    fn and(a: Word, b: Word) -> Self {
        Outcome {
            word: Word {
                value: a.value & b.value,
                constant: a.constant & b.constant | a.zeros() | b.zeros(),
                negated: a.ones() & b.negated | b.ones() & a.negated,
            },
            allocated: !(a.constant | b.constant),
        }
    }

    fn not(self) -> Self {
        Outcome {
            word: self.word.not(),
            ..self
        }
    }

    /// Bits of `other` where `mask` is set: the gadgets' earlier cases
    /// override their later ones.
    fn unless(self, mask: u32, other: Self) -> Self {
        let choose = |one: u32, other: u32| one & !mask | other & mask;
        Outcome {
            word: Word {
                value: choose(self.word.value, other.word.value),
                constant: choose(self.word.constant, other.word.constant),
                negated: choose(self.word.negated, other.word.negated),
            },
            allocated: choose(self.allocated, other.allocated),
        }
    }
}

/// A sum that is yet to be allocated: the circuit adds up to ten words at
/// once, and keeps the carries.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sum {
    /// Of the operands, not reduced.
    pub(crate) total: u64,
    operands: u64,
    constant: bool,
}

impl Sum {
    pub(crate) fn of(operands: &[Word]) -> Self {
        let none = Sum {
            total: 0,
            operands: 0,
            constant: true,
        };
        operands.iter().fold(none, |sum, word| sum.plus(*word))
    }

    /// A sum of which at least one operand is a variable.
    pub(crate) fn of_variables(total: u64, operands: u64) -> Self {
        Sum {
            total,
            operands,
            constant: false,
        }
    }

    pub(crate) fn plus(self, word: Word) -> Self {
        Sum {
            total: self.total + u64::from(word.value),
            operands: self.operands + 1,
            constant: self.constant && word.is_constant(),
        }
    }

    pub(crate) fn is_constant(self) -> bool {
        self.constant
    }

    /// Allocates the sum modulo 2^32 and the carries, as many bits as the
    /// largest sum of so many operands has; nothing if all are constants.
    pub(crate) fn write(self, run: &mut BitRun<'_>) -> Word {
        let value = low(self.total);
        if self.constant {
            return Word::constant(value);
        }
        let largest = self.operands * u64::from(u32::MAX);
        run.push(self.total, u64::BITS - largest.leading_zeros());
        Word::variables(value)
    }
}

/// The low half.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the low half is wanted")]
pub(crate) const fn low(word: u64) -> u32 {
    word as u32
}

/// Bits of `even` and of `odd` in turn, the lowest of `even` first.
#[inline]
pub(crate) const fn interleave(even: u32, odd: u32) -> u64 {
    spread(even) | spread(odd) << 1
}

/// Puts a zero above every bit.
#[inline]
const fn spread(word: u32) -> u64 {
    let x = word as u64;
    let x = (x | x << 16) & 0x0000_ffff_0000_ffff;
    let x = (x | x << 8) & 0x00ff_00ff_00ff_00ff;
    let x = (x | x << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    let x = (x | x << 2) & 0x3333_3333_3333_3333;
    (x | x << 1) & 0x5555_5555_5555_5555
}

#[cfg(test)]
pub(crate) mod tests;
