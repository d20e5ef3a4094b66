//! Scalars that are mostly bits, as bits.
//!
//! Of a Groth16 witness 98 in 100 scalars are 0 or 1. Told apart once, where
//! the witness was made, they need neither 32 bytes each nor to be told apart
//! again.
//!
//! Invariant: `ones` and `wide` have a bit for each scalar, and no bit is set past the
//! last. `ones` may have no words if no scalar is 1. No bit is set in both. There is a value
//! for each bit of `wide`.

use blstrs::Scalar;

use crate::error::{KernelError, expect_len};

/// A bit for each base of a sum: bit i of word i / 64 is set if the sum has base i. No bit
/// is set past the last base.
#[derive(Debug, Clone, Copy)]
pub struct Bits<'a> {
    len: usize,
    /// A word for each 64 bases, or none if no bit is set.
    words: &'a [u64],
}

impl<'a> Bits<'a> {
    /// Takes the bits of `len` bases. Words past those of the last base are ignored if they
    /// are zero.
    ///
    /// # Errors
    /// [`KernelError::LengthMismatch`] for too few words. [`KernelError::PackedScalars`] for
    /// a bit that is set past the end.
    pub fn new(len: usize, words: &'a [u64]) -> Result<Self, KernelError> {
        let (words, rest) = split(words, len.div_ceil(64), "words of bits")?;
        if is_set_past_end(len, words) || rest.iter().any(|word| *word != 0) {
            return Err(KernelError::PackedScalars);
        }
        Ok(Self { len, words })
    }

    /// Number of bits.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if there are no bits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns a word; one past the end is zero.
    #[inline]
    pub(super) fn word(&self, word: usize) -> u64 {
        self.words.get(word).copied().unwrap_or(0)
    }
}

/// The scalars of an MSM: 1 where `ones` has a bit, the next of `values` where `wide` has
/// one, 0 elsewhere. Bit i of word i / 64 is scalar i.
#[derive(Debug, Clone, Copy)]
pub struct PackedScalars<'a> {
    len: usize,
    ones: &'a [u64],
    wide: &'a [u64],
    values: &'a [Scalar],
}

impl<'a> PackedScalars<'a> {
    /// Takes `len` scalars. Words past those of the last scalar are ignored if
    /// they are zero.
    ///
    /// # Errors
    /// [`KernelError::LengthMismatch`] for too few words, or if there are not as many
    /// values as bits in `wide`. [`KernelError::PackedScalars`] for a bit that is set in
    /// both, or past the end.
    pub fn new(
        len: usize,
        ones: &'a [u64],
        wide: &'a [u64],
        values: &'a [Scalar],
    ) -> Result<Self, KernelError> {
        let words = len.div_ceil(64);
        let (ones, ones_rest) = split(ones, words, "words of ones")?;
        let (wide, wide_rest) = split(wide, words, "words of wide scalars")?;
        let past_end = is_set_past_end(len, ones) || is_set_past_end(len, wide);
        let rest = ones_rest.iter().chain(wide_rest).any(|word| *word != 0);
        if past_end || rest || ones.iter().zip(wide).any(|(a, b)| a & b != 0) {
            return Err(KernelError::PackedScalars);
        }
        let count = wide.iter().map(|word| word.count_ones() as usize).sum();
        expect_len("wide scalars", count, values.len())?;
        Ok(PackedScalars {
            len,
            ones,
            wide,
            values,
        })
    }

    /// Number of scalars.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if there are no scalars.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the scalars that are 1, as bits.
    pub fn bits(&self) -> Bits<'a> {
        Bits {
            len: self.len,
            words: self.ones,
        }
    }

    /// Returns these scalars with 0 in place of each 1: those that take a multiplication.
    #[must_use]
    pub fn without_ones(self) -> Self {
        Self { ones: &[], ..self }
    }

    pub(super) fn ones(&self) -> &'a [u64] {
        self.ones
    }

    pub(super) fn values(&self) -> &'a [Scalar] {
        self.values
    }

    pub(super) fn wide(&self) -> &'a [u64] {
        self.wide
    }
}

/// Returns true if the last of `len.div_ceil(64)` words has a bit past `len`.
fn is_set_past_end(len: usize, words: &[u64]) -> bool {
    let last = words.last().copied().unwrap_or(0);
    !len.is_multiple_of(64) && last >> (len % 64) != 0
}

fn split<'a>(
    words: &'a [u64],
    at: usize,
    what: &'static str,
) -> Result<(&'a [u64], &'a [u64]), KernelError> {
    words
        .split_at_checked(at)
        .ok_or(KernelError::LengthMismatch {
            what,
            expected: at,
            got: words.len(),
        })
}

/// The numbers of the bits that are set, ascending: the first word's first bit
/// is number `start`.
#[derive(Clone, Debug)]
pub(super) struct SetBits<'a> {
    words: &'a [u64],
    /// The number of the first bit of the next of the words.
    next: u32,
    /// The bits that are left of the word before.
    left: u64,
}

impl<'a> SetBits<'a> {
    /// `start` and the bits that follow number at most 2^31.
    #[expect(clippy::cast_possible_truncation, reason = "at most 2^31 scalars")]
    pub(super) fn new(words: &'a [u64], start: usize) -> Self {
        Self {
            words,
            next: start as u32,
            left: 0,
        }
    }
}

impl Iterator for SetBits<'_> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        while self.left == 0 {
            let (word, words) = self.words.split_first()?;
            self.left = *word;
            self.words = words;
            self.next += 64;
        }
        let bit = self.left.trailing_zeros();
        self.left &= self.left - 1;
        Some(self.next - 64 + bit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_what_contradicts_itself() {
        let value = [Scalar::from(7)];
        let new = PackedScalars::new;
        assert_eq!(new(65, &[1, 1], &[2, 0], &value).unwrap().len(), 65);
        assert!(new(65, &[1, 1, 0], &[2, 0], &value).is_ok());
        assert!(new(65, &[1], &[2, 0], &value).is_err());
        assert!(new(65, &[1, 1], &[2, 0], &[]).is_err());
        assert!(new(65, &[1, 1], &[1, 0], &value).is_err());
        assert!(new(65, &[1, 2], &[2, 0], &value).is_err());
        assert!(new(65, &[1, 1, 1], &[2, 0], &value).is_err());
        assert!(new(64, &[1, 0], &[1 << 63, 0], &value).is_ok());
        assert!(new(0, &[], &[], &[]).unwrap().is_empty());
    }

    #[test]
    fn bits_past_the_end_are_refused() {
        assert_eq!(Bits::new(65, &[1, 1, 0]).unwrap().len(), 65);
        assert!(Bits::new(65, &[1]).is_err());
        assert!(Bits::new(65, &[1, 2]).is_err());
        assert!(Bits::new(65, &[1, 1, 1]).is_err());
        assert!(Bits::new(64, &[u64::MAX]).is_ok());
        assert!(Bits::new(0, &[]).unwrap().is_empty());
    }

    #[test]
    fn scalars_are_bits_and_others() {
        let value = [Scalar::from(7)];
        let scalars = PackedScalars::new(65, &[0b101, 1], &[0b10, 0], &value).unwrap();
        let (bits, others) = (scalars.bits(), scalars.without_ones());
        assert_eq!([0, 1, 2].map(|word| bits.word(word)), [0b101, 1, 0]);
        assert_eq!((bits.len(), others.len()), (65, 65));
        assert_eq!(
            (others.wide(), others.values()),
            (&[0b10, 0][..], &value[..])
        );
        assert_eq!([0, 1].map(|word| others.bits().word(word)), [0, 0]);
    }

    #[test]
    fn indices_are_those_of_the_bits() {
        let words = [0b101, 0, 1 << 63, 0];
        let mut bits = SetBits::new(&words, 128);
        assert_eq!(bits.by_ref().take(1).collect::<Vec<_>>(), [128]);
        assert_eq!(bits.collect::<Vec<_>>(), [130, 319]);
        assert_eq!(SetBits::new(&[], 7).next(), None);
    }
}
