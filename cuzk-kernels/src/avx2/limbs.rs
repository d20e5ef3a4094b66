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

use super::field::{self, Column, Columns, Constants, Field};
use crate::arithmetic::CHARACTERISTIC;

/// Limbs of a number.
pub(super) const LIMBS: usize = 8;

/// Columns of a product.
pub(super) const COLUMNS: usize = 2 * LIMBS - 1;

/// The limbs of four numbers.
pub(super) type Limbs = [__m256d; LIMBS];

/// The columns of four products.
pub(super) type Wide = [Column; COLUMNS];

/// Columns in which products are reduced.
pub(super) type Work = Columns<COLUMNS>;

/// The field of the curve. −1 / modulus, modulo 2^48, has 34 bits, so the product with a sum of
/// low parts is below 2^99.
pub(super) struct Base;

impl Field<6, LIMBS> for Base {
    const WORDS: [u64; 6] = CHARACTERISTIC;
    const BITS: usize = 48;
}

/// The constants that the assembly reads.
pub(super) static CONSTANTS: Constants = Constants::of::<Base, 6, LIMBS>();

/// Brings limbs, which are below 2^53, to 2^47 and at most 32 more, all but the last.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn carried(limbs: &Limbs) -> Limbs {
    field::carried::<Base, 6, LIMBS>(limbs)
}
