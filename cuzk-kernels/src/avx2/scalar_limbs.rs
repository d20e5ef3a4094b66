//! The limbs of scalars, and the constants that the assembly of their products reads.
//!
//! Not their arithmetic: [`scalar`](super::scalar) has it, and says what limbs of 43 bits are
//! for. Invariant: the constants are those of the group's order.

use std::arch::x86_64::__m256d;

use super::field::{Column, Columns, Constants, Field};
use crate::arithmetic::GROUP_ORDER;

/// Limbs of a scalar.
pub(super) const LIMBS: usize = 6;

/// Columns of a product.
const COLUMNS: usize = 2 * LIMBS - 1;

/// The limbs of four scalars.
pub(super) type ScalarLimbs = [__m256d; LIMBS];

/// The columns of four products.
pub(super) type WideScalar = [Column; COLUMNS];

/// Columns in which products are reduced.
pub(super) type ScalarWork = Columns<COLUMNS>;

/// A residue of blst.
pub(super) type ScalarWords = [u64; 4];

/// The field of scalars. The order is 1 − 2^32 modulo 2^43, so −1 / order is −1 − 2^32.
pub(super) struct Order;

impl Field<4, LIMBS> for Order {
    const WORDS: ScalarWords = GROUP_ORDER;
    const BITS: usize = 43;
}

/// The constants that the assembly reads.
pub(super) static SCALAR_CONSTANTS: Constants = Constants::of::<Order, 4, LIMBS>();
