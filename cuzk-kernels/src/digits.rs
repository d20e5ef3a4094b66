//! Signed digits of a scalar.
//!
//! A scalar s is replaced by t = min(s, r − s), with the sign kept apart, so that t has 254
//! bits. The constant Σ 2^(cw + c − 1) over all windows but the last is added to t. That
//! makes every digit independent of its neighbours: the digit of window w is c bits of the
//! sum, less 2^(c − 1). All digits lie in [−2^(c − 1), 2^(c − 1)].

use blstrs::Scalar;
use ff::PrimeField;

/// Bits of min(s, r − s).
const HALF_RANGE_BITS: u32 = Scalar::NUM_BITS - 1;

/// Bits that are cut: one more than t has, so that the last digit's carry fits.
pub(crate) const CUT_BITS: u32 = HALF_RANGE_BITS + 1;

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

/// How scalars are cut: the first `wide` windows have `bits` bits each, the others one less.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Windows {
    bits: u32,
    wide: usize,
    count: usize,
    offset: [u64; 4],
}

/// A scalar prepared for [`Window::digit`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recoded([u64; 4]);

impl Windows {
    /// Windows of `bits` bits, 2 ≤ `bits` ≤ 24.
    pub(crate) fn new(bits: u32) -> Windows {
        let count = CUT_BITS.div_ceil(bits) as usize;
        Self::of(bits, count, count)
    }

    /// So many windows, at least 11 and at most 127, as equally wide as possible. A narrow last
    /// window would have few buckets, in which additions collide.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "windows number at most 127"
    )]
    pub(crate) fn balanced(count: usize) -> Windows {
        let bits = CUT_BITS.div_ceil(count as u32);
        let wide = CUT_BITS as usize - count * (bits as usize - 1);
        Self::of(bits, wide, count)
    }

    fn of(bits: u32, wide: usize, count: usize) -> Windows {
        let mut windows = Windows {
            bits,
            wide,
            count,
            offset: [0; 4],
        };
        for window in 1..count {
            let start = windows.start(window);
            set_bit(&mut windows.offset, start - 1);
        }
        windows
    }

    /// The first bit of a window.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "windows number at most 128"
    )]
    fn start(&self, window: usize) -> u32 {
        window as u32 * self.bits - window.saturating_sub(self.wide) as u32
    }

    /// Number of windows.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Bits of the widest window.
    pub(crate) fn bits(&self) -> u32 {
        self.bits
    }

    /// Bits of one window.
    pub(crate) fn bits_of(&self, window: usize) -> u32 {
        self.bits - u32::from(window >= self.wide)
    }

    /// Largest absolute value of a digit of the widest window, and so the number of its buckets.
    pub(crate) fn digit_max(&self) -> usize {
        1 << (self.bits - 1)
    }

    /// Largest absolute value of a digit of one window.
    pub(crate) fn digit_max_of(&self, window: usize) -> usize {
        1 << (self.bits_of(window) - 1)
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

    /// How to cut the digits of one window.
    pub(crate) fn window(&self, window: usize) -> Window {
        let (start, bits) = (self.start(window), self.bits_of(window));
        let word = (start / 64) as usize;
        let last = window + 1 == self.count;
        Window {
            word,
            shift: start % 64,
            // The last window ends before the sign.
            mask: (1 << bits.min(CUT_BITS - start)) - 1,
            next_mask: if word < 3 { u64::MAX } else { 0 },
            bias: if last { 0 } else { 1 << (bits - 1) },
        }
    }
}

/// Where the digits of one window are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    word: usize,
    shift: u32,
    mask: u64,
    next_mask: u64,
    bias: i64,
}

impl Window {
    /// A scalar's digit, as its absolute value and whether it is negative.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "digits have at most 24 bits"
    )]
    pub(crate) fn digit(&self, recoded: &Recoded) -> (usize, bool) {
        let words = &recoded.0;
        let low = words[self.word & 3] >> self.shift;
        // In two steps, because a shift by 64 is none.
        let high = (words[(self.word + 1) & 3] & self.next_mask) << 1 << (63 - self.shift);
        let biased = ((low | high) & self.mask).cast_signed() - self.bias;
        let negative = words[3] & SIGN != 0;
        (biased.unsigned_abs() as usize, (biased < 0) != negative)
    }
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
        (0..windows.count()).rev().fold(Scalar::ZERO, |sum, w| {
            let radix = Scalar::from(1 << windows.bits_of(w));
            let (magnitude, negative) = windows.window(w).digit(recoded);
            assert!(magnitude <= windows.digit_max_of(w));
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
        let balanced = (11..128).map(Windows::balanced);
        for windows in (2..=24).map(Windows::new).chain(balanced) {
            for scalar in &scalars {
                assert_eq!(recompose(&windows, &windows.recode(scalar)), *scalar);
            }
        }
    }
}
