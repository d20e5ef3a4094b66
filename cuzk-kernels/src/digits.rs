//! Signed digits of a scalar.
//!
//! A scalar s is replaced by t = min(s, r − s), with the sign kept apart, so
//! that t has 254 bits. Adding the constant Σ 2^(cw + c − 1) over all windows
//! but the last makes every digit independent of its neighbours: the digit of
//! window w is c bits of that sum, less 2^(c − 1). All digits lie in
//! [−2^(c − 1), 2^(c − 1)].

use blstrs::Scalar;
use ff::PrimeField;

/// Bits of min(s, r − s).
const HALF_RANGE_BITS: u32 = Scalar::NUM_BITS - 1;

/// (r − 1) / 2, little-endian words: r is the order of the scalar field.
const HALF_ORDER: [u64; 4] = [
    0x7fff_ffff_8000_0000,
    0xa9de_d201_7fff_2dff,
    0x199c_ec04_04d0_ec02,
    0x39f6_d3a9_94ce_bea4,
];

/// r, little-endian words.
const ORDER: [u64; 4] = [
    0xffff_ffff_0000_0001,
    0x53bd_a402_fffe_5bfe,
    0x3339_d808_09a1_d805,
    0x73ed_a753_299d_7d48,
];

/// The sign of a recoded scalar lives in this bit of its last word, which
/// neither t nor t plus the constant reaches.
const SIGN: u64 = 1 << 63;

/// How scalars are cut: windows of `bits` bits each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Windows {
    bits: u32,
    count: usize,
    offset: [u64; 4],
}

/// A scalar prepared for [`Windows::digit`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Recoded([u64; 4]);

impl Windows {
    /// Windows of `bits` bits, 2 ≤ `bits` ≤ 24.
    pub(crate) fn new(bits: u32) -> Windows {
        // One bit more than t has, so that the last digit's carry fits.
        let count = (HALF_RANGE_BITS + 1).div_ceil(bits);
        let mut offset = [0; 4];
        for window in 0..count - 1 {
            set_bit(&mut offset, window * bits + bits - 1);
        }
        Windows {
            bits,
            count: count as usize,
            offset,
        }
    }

    /// Number of windows.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Bits of a window.
    pub(crate) fn bits(&self) -> u32 {
        self.bits
    }

    /// Largest absolute value of a digit, and so the number of buckets.
    pub(crate) fn digit_max(&self) -> usize {
        1 << (self.bits - 1)
    }

    /// Prepares a scalar.
    pub(crate) fn recode(&self, scalar: &Scalar) -> Recoded {
        let s = words(&scalar.to_repr());
        let negative = greater(&s, &HALF_ORDER);
        let t = if negative { subtract(&ORDER, &s) } else { s };
        let mut sum = add(&t, &self.offset);
        if negative {
            sum[3] |= SIGN;
        }
        Recoded(sum)
    }

    /// The digit of window `window`, as its absolute value and whether it is
    /// negative.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "windows number at most 128, digits have at most 24 bits"
    )]
    pub(crate) fn digit(&self, recoded: &Recoded, window: usize) -> (usize, bool) {
        let raw = extract(&recoded.0, window as u32 * self.bits, self.bits);
        let biased = if window + 1 < self.count {
            raw as i64 - (1 << (self.bits - 1))
        } else {
            raw as i64
        };
        let negative = recoded.0[3] & SIGN != 0;
        (biased.unsigned_abs() as usize, (biased < 0) != negative)
    }
}

/// `bits` bits of a recoded scalar's words from bit `start`, without its sign.
#[inline]
fn extract(words: &[u64; 4], start: u32, bits: u32) -> u64 {
    let (word, shift) = ((start / 64) as usize, start % 64);
    let at = |i: usize| match i {
        0..=2 => words[i],
        3 => words[3] & !SIGN,
        _ => 0,
    };
    let low = at(word) >> shift;
    let high = if shift == 0 {
        0
    } else {
        at(word + 1) << (64 - shift)
    };
    (low | high) & ((1 << bits) - 1)
}

fn words(bytes: &[u8; 32]) -> [u64; 4] {
    let mut words = [0; 4];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    words
}

fn set_bit(words: &mut [u64; 4], bit: u32) {
    words[(bit / 64) as usize] |= 1 << (bit % 64);
}

fn greater(a: &[u64; 4], b: &[u64; 4]) -> bool {
    a.iter().rev().gt(b.iter().rev())
}

fn add(a: &[u64; 4], b: &[u64; 4]) -> [u64; 4] {
    let mut carry = false;
    std::array::from_fn(|i| {
        let (sum, c1) = a[i].overflowing_add(b[i]);
        let (sum, c2) = sum.overflowing_add(u64::from(carry));
        carry = c1 | c2;
        sum
    })
}

fn subtract(a: &[u64; 4], b: &[u64; 4]) -> [u64; 4] {
    let mut borrow = false;
    std::array::from_fn(|i| {
        let (difference, b1) = a[i].overflowing_sub(b[i]);
        let (difference, b2) = difference.overflowing_sub(u64::from(borrow));
        borrow = b1 | b2;
        difference
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ff::Field;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    fn recompose(windows: &Windows, recoded: &Recoded) -> Scalar {
        let radix = Scalar::from(1 << windows.bits());
        (0..windows.count()).rev().fold(Scalar::ZERO, |sum, w| {
            let (magnitude, negative) = windows.digit(recoded, w);
            assert!(magnitude <= windows.digit_max());
            let digit = Scalar::from(magnitude as u64);
            sum * radix + if negative { -digit } else { digit }
        })
    }

    #[test]
    fn digits_recompose_the_scalar() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let half = Scalar::TWO_INV;
        let mut scalars = vec![
            Scalar::ZERO,
            Scalar::ONE,
            -Scalar::ONE,
            half,
            half - Scalar::ONE,
            -half,
        ];
        scalars.extend((0..50).map(|_| Scalar::random(&mut rng)));
        for bits in 2..=24 {
            let windows = Windows::new(bits);
            for scalar in &scalars {
                assert_eq!(recompose(&windows, &windows.recode(scalar)), *scalar);
            }
        }
    }
}
