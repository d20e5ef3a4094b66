//! Transforms and the quotient by the emulated device code.
#![allow(unsafe_code)] // Passes slices to C++.

use blstrs::Scalar;

use super::ffi::{cuzk_emulated_quotient, cuzk_emulated_transform};

/// The shape of a table of roots of unity: those up to 2^`log`. They are two factors,
/// of which the first is 2^`low_log` long, or one table if both are equal.
#[derive(Debug, Clone, Copy)]
pub struct RootsShape {
    pub log: u32,
    pub low_log: u32,
}

/// Transforms in place. The length is a power of two.
pub fn transform(roots: RootsShape, values: &mut [Scalar], coset: bool, inverse: bool) -> i32 {
    assert!(values.len().is_power_of_two());
    let log = values.len().ilog2();
    // SAFETY: 2^log values are writable.
    unsafe {
        cuzk_emulated_transform(
            log,
            roots.log,
            roots.low_log,
            values.as_mut_ptr(),
            coset,
            inverse,
        )
    }
}

/// Writes h to `b`.
pub fn quotient(roots: RootsShape, a: &mut [Scalar], b: &mut [Scalar], is_canonical: bool) -> i32 {
    assert!(a.len().is_power_of_two() && a.len() == b.len());
    // SAFETY: both have 2^log writable values.
    unsafe {
        cuzk_emulated_quotient(
            a.len().ilog2(),
            roots.log,
            roots.low_log,
            a.as_mut_ptr(),
            b.as_mut_ptr(),
            is_canonical,
        )
    }
}
