//! A digest of a list of scalars, for lists that are too long to be kept.
//!
//! It is the value of a polynomial at a fixed point, with the scalars as coefficients: s₀·xⁿ⁻¹ +
//! … + sₙ₋₁. So the digest of two lists behind one another follows from those of the lists, and
//! threads can each digest their part.
//!
//! Not a cryptographic hash: it finds errors, and no forgeries. Two different lists of n scalars
//! have the same digest for at most n − 1 points of the field. An error that does not depend on
//! the point is missed with a probability of n / 2²⁵⁴ in a field of 255 bits.
//!
//! Invariant: a digest depends on the scalars and their order, not on how the list was cut.

use ff::PrimeField;
use rayon::prelude::*;

/// The scalars that one task digests at a time.
const TASK: usize = 1 << 14;

/// The first 32 hexadecimal digits of π − 3. The point is the square of this number, which needs
/// all bits of a field of 255.
const POINT_ROOT: u128 = 0x243f_6a88_85a3_08d3_1319_8a2e_0370_7344;

/// The digest of a list of scalars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Digest<S> {
    len: usize,
    value: S,
    point: S,
}

impl<S: PrimeField> Default for Digest<S> {
    fn default() -> Self {
        Digest {
            len: 0,
            value: S::ZERO,
            point: S::from_u128(POINT_ROOT).square(),
        }
    }
}

impl<S: PrimeField> Digest<S> {
    /// Returns the digest of no scalars.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the digest of `len` scalars, of which `scalar` returns each. Threads of rayon's
    /// current pool share the work.
    pub fn of(len: usize, scalar: impl Fn(usize) -> S + Sync) -> Self {
        let task = |index: usize| {
            let mut digest = Self::new();
            for at in index * TASK..len.min((index + 1) * TASK) {
                digest.push(scalar(at));
            }
            digest
        };
        (0..len.div_ceil(TASK))
            .into_par_iter()
            .map(task)
            .reduce(Self::new, |mut first, second| {
                first.append(&second);
                first
            })
    }

    /// Returns the number of scalars.
    #[must_use]
    pub fn count(&self) -> usize {
        self.len
    }

    /// Adds a scalar to the end of the list.
    pub fn push(&mut self, scalar: S) {
        self.value = self.value * self.point + scalar;
        self.len += 1;
    }

    /// Adds a list to the end of this one.
    pub fn append(&mut self, next: &Self) {
        let shift = self.point.pow_vartime([next.len as u64]);
        self.value = self.value * shift + next.value;
        self.len += next.len;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blstrs::Scalar;
    use ff::Field;

    /// Longer than two tasks.
    const LEN: usize = 2 * TASK + 3;

    fn scalar(at: usize) -> Scalar {
        Scalar::from(at as u64 + 1).square()
    }

    fn pushed(scalars: impl Iterator<Item = Scalar>) -> Digest<Scalar> {
        let mut digest = Digest::new();
        scalars.for_each(|scalar| digest.push(scalar));
        digest
    }

    #[test]
    fn a_list_has_one_digest_however_it_is_cut() {
        let whole = pushed((0..LEN).map(scalar));
        assert_eq!(whole.count(), LEN);
        assert_eq!(Digest::of(LEN, scalar), whole);
        for cut in [0, 1, TASK, LEN] {
            let mut parts = pushed((0..cut).map(scalar));
            parts.append(&pushed((cut..LEN).map(scalar)));
            assert_eq!(parts, whole, "{cut}");
        }
    }

    /// The digest of 1, 2, 3 is x² + 2x + 3.
    #[test]
    fn is_the_value_of_the_polynomial() {
        let x = Scalar::from_u128(POINT_ROOT).square();
        let digest = pushed([1, 2, 3].map(Scalar::from).into_iter());
        assert_eq!(
            digest.value,
            x.square() + Scalar::from(2) * x + Scalar::from(3)
        );
    }

    #[test]
    fn a_change_an_exchange_and_another_length_are_seen() {
        let whole = Digest::of(LEN, scalar);
        for changed in [0, TASK, LEN - 1] {
            let flipped = |at| scalar(at) + Scalar::from(u64::from(at == changed));
            assert_ne!(Digest::of(LEN, flipped), whole, "{changed}");
        }
        let exchanged = |at| scalar(if at < 2 { 1 - at } else { at });
        assert_ne!(Digest::of(LEN, exchanged), whole);
        assert_ne!(Digest::of(LEN - 1, scalar), whole);
        // A zero before the list changes no value.
        let after_zero = |at: usize| at.checked_sub(1).map_or(Scalar::ZERO, scalar);
        assert_ne!(Digest::of(LEN + 1, after_zero), whole);
    }
}
