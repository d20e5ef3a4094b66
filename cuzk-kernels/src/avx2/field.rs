//! The code that both fields share. Their numbers are limbs in floating-point registers.
//!
//! Not their products, which are assembly of so many limbs. [`limbs`](super::limbs) says what
//! limbs and columns are. Invariant: nothing here rounds a value, and only carries move bits
//! from one limb to another.

use std::arch::x86_64::*;

use super::GROUPS;

/// The floating-point number 1.5·2^52, whose neighbours are 1 apart. Its bits plus a small
/// integer are the bits of the sum.
pub(super) const UNIT: f64 = 1.5 * (1_u64 << 52) as f64;

/// A field whose residues have W words, and as many limbs as L.
pub(super) trait Field<const W: usize, const L: usize> {
    /// The modulus, in words.
    const WORDS: [u64; W];
    /// Bits of a limb.
    const BITS: usize;
    /// The bound that a limb of so many bits is less than.
    const RADIX: f64 = (1_u64 << Self::BITS) as f64;
    /// The bits of a limb.
    const MASK: u64 = (1 << Self::BITS) - 1;
    /// The limbs of the modulus, carried.
    const MODULUS: [f64; L] = carried_limbs(&Self::WORDS, Self::BITS);
    /// The last limb of the modulus without signs.
    const LAST: u64 = Self::WORDS[W - 1] >> (Self::BITS * (L - 1) - 64 * (W - 1));
    /// The least high part of a column plus half its binade, where neighbours are as far apart as
    /// a limb is large.
    const START: f64 = 1.5 * (1_u128 << (52 + Self::BITS)) as f64;
    /// The bits of [`UNIT`] above those of a limb.
    const UNIT_HIGH: u64 = {
        assert!(UNIT.to_bits() & Self::MASK == 0);
        UNIT.to_bits() >> Self::BITS
    };
}

/// A column of four products.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Column {
    pub(super) high: __m256d,
    pub(super) low: __m256d,
}

/// C columns of each group, in which products are reduced. They have no meaning between two of
/// them.
pub(super) struct Columns<const C: usize>(pub(super) [[Column; C]; GROUPS]);

impl<const C: usize> Columns<C> {
    #[target_feature(enable = "avx2,fma")]
    pub(super) fn new() -> Self {
        let zero = _mm256_setzero_pd();
        let column = Column {
            high: zero,
            low: zero,
        };
        Self([[column; C]; GROUPS])
    }
}

/// The constants that the assembly reads, each for four lanes.
#[repr(C, align(32))]
pub(super) struct Constants {
    pub(super) modulus: [[f64; 4]; 8],
    pub(super) negative_inverse: [f64; 4],
    pub(super) start: [f64; 4],
    pub(super) radix_inverse: [f64; 4],
}

impl Constants {
    pub(super) const fn of<F: Field<W, L>, const W: usize, const L: usize>() -> Self {
        let mut modulus = [[0.0; 4]; 8];
        let mut i = 0;
        while i < L {
            modulus[i] = [F::MODULUS[i]; 4];
            i += 1;
        }
        let inverse = negative_inverse(F::WORDS[0]) & F::MASK;
        Self {
            modulus,
            negative_inverse: [carried_limb(inverse, F::BITS).0; 4],
            start: [F::START; 4],
            radix_inverse: [1.0 / F::RADIX; 4],
        }
    }
}

/// Brings limbs to half a limb and a little more, all but the last.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn carried<F: Field<W, L>, const W: usize, const L: usize>(
    limbs: &[__m256d; L],
) -> [__m256d; L] {
    let start = _mm256_set1_pd(F::START);
    let radix_inverse = _mm256_set1_pd(1.0 / F::RADIX);
    let mut carried = *limbs;
    for i in 0..L - 1 {
        // Rounds to a multiple of the radix.
        let over = _mm256_sub_pd(_mm256_add_pd(limbs[i], start), start);
        carried[i] = _mm256_sub_pd(carried[i], over);
        carried[i + 1] = _mm256_fmadd_pd(over, radix_inverse, carried[i + 1]);
    }
    carried
}

/// The value over the modulus, with an error far below one.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn quotient<F: Field<W, L>, const W: usize, const L: usize>(limbs: &[__m256d; L]) -> __m256d {
    let last = 1.0 / F::MODULUS[L - 1];
    let quotient = _mm256_mul_pd(limbs[L - 1], _mm256_set1_pd(last));
    _mm256_fmadd_pd(limbs[L - 2], _mm256_set1_pd(last / F::RADIX), quotient)
}

/// Brings a value to at most 0.51 of the modulus away from zero, and carries its limbs.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn centred<F: Field<W, L>, const W: usize, const L: usize>(
    limbs: &[__m256d; L],
) -> [__m256d; L] {
    let quotient = _mm256_round_pd::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(
        quotient::<F, W, L>(limbs),
    );
    carried::<F, W, L>(&std::array::from_fn(|i| {
        _mm256_fnmadd_pd(quotient, _mm256_set1_pd(F::MODULUS[i]), limbs[i])
    }))
}

/// Subtracts the multiple of the modulus that the last limbs suggest, and carries. The lower
/// bits of the results are limbs. Returns also whether a lane may be outside of the residues, in
/// which case it is off by one modulus at most.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn reduced_bits<F: Field<W, L>, const W: usize, const L: usize>(
    limbs: &[__m256d; L],
) -> ([__m256i; L], bool) {
    let quotient = _mm256_floor_pd(quotient::<F, W, L>(limbs));
    let bits_of_limb = _mm_cvtsi64_si128(F::BITS.cast_signed() as i64);
    let mut bits = [_mm256_setzero_si256(); L];
    let mut carry = _mm256_set1_epi64x(F::UNIT_HIGH.cast_signed());
    // The high bits of the limb before are its carry, and those of `UNIT`, which are taken off
    // here.
    let unit = _mm256_set1_pd(UNIT - F::UNIT_HIGH as f64);
    for i in 0..L {
        let limb = _mm256_fnmadd_pd(quotient, _mm256_set1_pd(F::MODULUS[i]), limbs[i]);
        let limb = _mm256_castpd_si256(_mm256_add_pd(limb, unit));
        bits[i] = _mm256_add_epi64(limb, carry);
        carry = _mm256_srl_epi64(bits[i], bits_of_limb);
    }
    // The last limb of the modulus, or above, or below zero.
    let last = _mm256_sub_epi64(
        bits[L - 1],
        _mm256_set1_epi64x(UNIT.to_bits().cast_signed()),
    );
    let above = _mm256_cmpgt_epi64(last, _mm256_set1_epi64x(F::LAST.cast_signed() - 1));
    let unsure = _mm256_or_si256(above, last);
    (bits, _mm256_movemask_pd(_mm256_castsi256_pd(unsure)) != 0)
}

/// Brings a number between minus the modulus and its double to a residue.
#[cold]
#[inline(never)]
pub(super) fn settled<F: Field<W, L>, const W: usize, const L: usize>(words: [u64; W]) -> [u64; W] {
    let is_negative = words[W - 1] >> 63 != 0;
    let mut moved = words;
    let mut carry = false;
    for (word, modulus) in moved.iter_mut().zip(F::WORDS) {
        let (first, second);
        if is_negative {
            (*word, first) = word.overflowing_add(modulus);
            (*word, second) = word.overflowing_add(u64::from(carry));
        } else {
            (*word, first) = word.overflowing_sub(modulus);
            (*word, second) = word.overflowing_sub(u64::from(carry));
        }
        carry = first | second;
    }
    if is_negative || !carry { moved } else { words }
}

/// Integers below 2^51 as floating-point numbers.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn float(integers: __m256i) -> __m256d {
    let unit = _mm256_set1_pd(UNIT);
    let bits = _mm256_add_epi64(integers, _mm256_castpd_si256(unit));
    _mm256_sub_pd(_mm256_castsi256_pd(bits), unit)
}

/// Transposes four rows of four words.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn transpose([a, b, c, d]: [__m256i; 4]) -> [__m256i; 4] {
    let (low, high) = (_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
    let (low2, high2) = (_mm256_unpacklo_epi64(c, d), _mm256_unpackhi_epi64(c, d));
    [
        _mm256_permute2x128_si256::<0x20>(low, low2),
        _mm256_permute2x128_si256::<0x20>(high, high2),
        _mm256_permute2x128_si256::<0x31>(low, low2),
        _mm256_permute2x128_si256::<0x31>(high, high2),
    ]
}

/// The limbs of a number without signs.
pub(super) const fn natural_limbs<const W: usize, const L: usize>(
    words: &[u64; W],
    bits: usize,
) -> [u64; L] {
    let (mut limbs, mut i) = ([0; L], 0);
    while i < L {
        let (word, shift) = (bits * i / 64, bits * i % 64);
        let mut limb = words[word] >> shift;
        if shift > 64 - bits && word + 1 < W {
            limb |= words[word + 1] << (64 - shift);
        }
        limbs[i] = limb & ((1 << bits) - 1);
        i += 1;
    }
    limbs
}

/// The limbs of a number, with signs.
const fn carried_limbs<const W: usize, const L: usize>(words: &[u64; W], bits: usize) -> [f64; L] {
    let natural = natural_limbs::<W, L>(words, bits);
    let mut limbs = [0.0; L];
    let (mut carry, mut i) = (0, 0);
    while i < L {
        (limbs[i], carry) = carried_limb(natural[i] + carry, bits);
        i += 1;
    }
    limbs
}

/// A limb of so many bits, or one more than fits, as one with a sign, and the carry.
const fn carried_limb(limb: u64, bits: usize) -> (f64, u64) {
    let carry = (limb >= 1 << (bits - 1)) as u64;
    let signed = limb.cast_signed() - (carry << bits).cast_signed();
    (signed as f64, carry)
}

/// −1 / word, modulo 2^64, by Newton's iteration.
const fn negative_inverse(word: u64) -> u64 {
    let (mut inverse, mut step) = (word, 0);
    while step < 5 {
        inverse = inverse.wrapping_mul(2_u64.wrapping_sub(word.wrapping_mul(inverse)));
        step += 1;
    }
    inverse.wrapping_neg()
}
