//! Field operations of the emulated device code.

use blstrs::Scalar;

use super::{Fp, cuzk_emulated_fp, cuzk_emulated_fp_mul_add, cuzk_emulated_fr};

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
    cuzk_emulated_fr(operation as u32, &a, &b, &mut out);
    out
}

/// Computes `operation`. `a` and `b` are reduced.
pub fn fp(operation: Operation, a: Fp, b: Fp) -> Fp {
    let mut out = a;
    cuzk_emulated_fp(operation as u32, &a, &b, &mut out);
    out
}

/// Computes a·b + c·d by the plain twin of the device's function. All are reduced.
pub fn fp_mul_add([a, b, c, d]: [Fp; 4]) -> Fp {
    let mut out = a;
    cuzk_emulated_fp_mul_add(&a, &b, &c, &d, &mut out);
    out
}
