//! Field operations of the emulated device code.
#![allow(unsafe_code)] // Passes slices to C++.

use blstrs::Scalar;

use super::ffi::{Fp, cuzk_emulated_fp, cuzk_emulated_fp_mul_add, cuzk_emulated_fr};

/// The operations on field elements: the host's, and the plain twins of the device's.
#[derive(Debug, Clone, Copy)]
#[repr(u32)]
pub enum Operation {
    Mul,
    PlainMul,
    Add,
    Sub,
    PlainAdd,
    PlainSub,
}

pub fn fr(operation: Operation, a: Scalar, b: Scalar) -> Scalar {
    let mut out = a;
    // SAFETY: three elements of the same layout.
    unsafe { cuzk_emulated_fr(operation as u32, &raw const a, &raw const b, &raw mut out) };
    out
}

/// Computes `operation`. `a` and `b` are reduced.
pub fn fp(operation: Operation, a: Fp, b: Fp) -> Fp {
    let mut out = a;
    // SAFETY: three elements of the same layout.
    unsafe { cuzk_emulated_fp(operation as u32, &raw const a, &raw const b, &raw mut out) };
    out
}

/// Computes a·b + c·d by the plain twin of the device's function. All are reduced.
pub fn fp_mul_add([a, b, c, d]: [Fp; 4]) -> Fp {
    let mut out = a;
    // SAFETY: five elements of the same layout.
    unsafe {
        cuzk_emulated_fp_mul_add(
            &raw const a,
            &raw const b,
            &raw const c,
            &raw const d,
            &raw mut out,
        );
    }
    out
}
