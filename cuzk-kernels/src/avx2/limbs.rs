//! Numbers in limbs of 48 bits, each limb a floating-point number.
//!
//! A register holds the same limb of four numbers. Limbs are integers with a sign, of at most
//! 2^47 if they are *carried*, and a little more. Eight limbs have 384 bits, so Montgomery's
//! radix is blst's, and a number is a residue of blst's cut into limbs. The modulus has 381
//! bits, so a number may be a few times the modulus, of either sign. No product subtracts.
//!
//! # Columns
//!
//! A column is the sum of products that have the same weight. A product of two limbs has 94
//! bits or more, and a floating-point number 53. So a column has a high and a low part. The
//! high part begins at 1.5·2^100, where neighbours are 2^48 apart. A fused multiply-add to it
//! rounds the sum to a multiple of 2^48. A second one returns the exact rest, which is at most
//! 2^47. The low part is the sum of the rests. (Emmart, Zheng, Weems: "Faster modular
//! exponentiation using double precision floating point arithmetic on the GPU", 2018.)
//!
//! Invariant: the products of a column and of its reduction are below 2^99 together, so the
//! high part does not leave its binade. Sums of low parts are below 2^53. Both hold if one
//! factor of a product is carried and the limbs of the other are below 2^48. For a sum of two
//! products all factors are carried.

use std::arch::x86_64::*;

use super::GROUPS;
use crate::arithmetic::CHARACTERISTIC;

/// Limbs of a number.
pub(super) const LIMBS: usize = 8;

/// Bits of a limb.
pub(super) const LIMB_BITS: usize = 48;

/// Columns of a product.
pub(super) const COLUMNS: usize = 2 * LIMBS - 1;

/// The limbs of four numbers.
pub(super) type Limbs = [__m256d; LIMBS];

/// A column of four products.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Column {
    pub(super) high: __m256d,
    pub(super) low: __m256d,
}

/// The columns of four products.
pub(super) type Wide = [Column; COLUMNS];

/// 2^48.
const RADIX: f64 = (1_u64 << LIMB_BITS) as f64;

/// The least high part of a column plus half its binade.
pub(super) const START: f64 = 1.5 * (1_u128 << 100) as f64;

/// The limbs of the modulus.
pub(super) const MODULUS: [f64; LIMBS] = carried_limbs(CHARACTERISTIC);

/// −1 / modulus, modulo 2^48. It has 34 bits, so the product with a sum of low parts is below
/// 2^99.
const NEGATIVE_INVERSE: f64 = carried_limb(negative_inverse(CHARACTERISTIC[0])).0;

/// The constants that the assembly reads, each for four lanes.
#[repr(C, align(32))]
pub(super) struct Constants {
    pub(super) modulus: [[f64; 4]; LIMBS],
    pub(super) negative_inverse: [f64; 4],
    pub(super) start: [f64; 4],
    pub(super) radix_inverse: [f64; 4],
}

pub(super) static CONSTANTS: Constants = {
    let mut modulus = [[0.0; 4]; LIMBS];
    let mut i = 0;
    while i < LIMBS {
        modulus[i] = [MODULUS[i]; 4];
        i += 1;
    }
    Constants {
        modulus,
        negative_inverse: [NEGATIVE_INVERSE; 4],
        start: [START; 4],
        radix_inverse: [1.0 / RADIX; 4],
    }
};

/// Columns in which products are reduced, of no meaning between two of them.
#[derive(Clone)]
pub(super) struct Work(pub(super) [Wide; GROUPS]);

impl Work {
    #[target_feature(enable = "avx2,fma")]
    pub(super) fn new() -> Self {
        let zero = _mm256_setzero_pd();
        let column = Column {
            high: zero,
            low: zero,
        };
        Self([[column; COLUMNS]; GROUPS])
    }
}

/// Brings limbs, which are below 2^53, to 2^47 and at most 32 more, all but the last.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn carried(limbs: &Limbs) -> Limbs {
    let start = _mm256_set1_pd(START);
    let radix_inverse = _mm256_set1_pd(1.0 / RADIX);
    let mut carried = *limbs;
    for i in 0..LIMBS - 1 {
        // Rounds to a multiple of 2^48.
        let over = _mm256_sub_pd(_mm256_add_pd(limbs[i], start), start);
        carried[i] = _mm256_sub_pd(carried[i], over);
        carried[i + 1] = _mm256_fmadd_pd(over, radix_inverse, carried[i + 1]);
    }
    carried
}

/// The limbs of a number, with signs.
const fn carried_limbs(words: [u64; 6]) -> [f64; LIMBS] {
    let mut limbs = [0.0; LIMBS];
    let (mut carry, mut i) = (0, 0);
    while i < LIMBS {
        let (word, shift) = (LIMB_BITS * i / 64, LIMB_BITS * i % 64);
        let mut limb = words[word] >> shift;
        if shift > 64 - LIMB_BITS {
            limb |= words[word + 1] << (64 - shift);
        }
        (limbs[i], carry) = carried_limb((limb & LIMB_MASK) + carry);
        i += 1;
    }
    limbs
}

/// 2^48 − 1.
pub(super) const LIMB_MASK: u64 = (1 << LIMB_BITS) - 1;

/// A limb of at most 2^48 as one with a sign, and the carry.
const fn carried_limb(limb: u64) -> (f64, u64) {
    let carry = (limb >= 1 << (LIMB_BITS - 1)) as u64;
    let signed = limb.cast_signed() - (carry << LIMB_BITS).cast_signed();
    (signed as f64, carry)
}

/// −1 / word, modulo 2^48, by Newton's iteration.
const fn negative_inverse(word: u64) -> u64 {
    let (mut inverse, mut step) = (word, 0);
    while step < 5 {
        inverse = inverse.wrapping_mul(2_u64.wrapping_sub(word.wrapping_mul(inverse)));
        step += 1;
    }
    inverse.wrapping_neg() & LIMB_MASK
}
