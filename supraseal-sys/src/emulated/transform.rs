//! Transforms and the quotient by the emulated device code.

use blstrs::Scalar;

/// The shape of a table of roots of unity: those up to 2^`log`. They are two factors,
/// of which the first is 2^`low_log` long, or one table if both are equal.
#[derive(Debug, Clone, Copy)]
pub struct RootsShape {
    pub log: u32,
    pub low_log: u32,
}

/// Transforms in place. The length is a power of two.
pub fn transform(roots: RootsShape, values: &mut [Scalar], coset: bool, inverse: bool) -> i32 {
    super::call_transform(roots, values, coset, inverse)
}

/// Writes h to `b`.
pub fn quotient(roots: RootsShape, a: &mut [Scalar], b: &mut [Scalar], is_canonical: bool) -> i32 {
    super::call_quotient(roots, [a, b], is_canonical)
}
