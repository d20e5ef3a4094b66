//! The kernels' own types that live in borrowed memory.
#![allow(unsafe_code)] // Vouches for the layout of types.

#[cfg(target_arch = "x86_64")]
use bytemuck::{Pod, Zeroable};
use cuzk_memory::Plain;

use crate::affine::Step;
#[cfg(target_arch = "x86_64")]
use crate::avx2::{self, Row};
use crate::digits::Recoded;
#[cfg(target_arch = "x86_64")]
use crate::ifma::{Coordinate, Group, LentValues, Point};

// SAFETY: four words.
unsafe impl Plain for Recoded {}
// SAFETY: `repr(C)`, and all fields are plain and of whole words.
unsafe impl<F: Plain> Plain for Step<F> {}
#[cfg(target_arch = "x86_64")]
// SAFETY: floating-point numbers, and nothing else.
unsafe impl Plain for Row {}
#[cfg(target_arch = "x86_64")]
// SAFETY: `repr(C)`: floating-point numbers and additions, without padding.
unsafe impl<const N: usize> Plain for avx2::Block<N> {}
#[cfg(target_arch = "x86_64")]
// SAFETY: registers, of which all values are valid, and nothing else. The code that opens them
// proves that there are such registers.
unsafe impl Plain for LentValues {}
#[cfg(target_arch = "x86_64")]
// SAFETY: any bytes are one: a coordinate is registers, all values of which are valid, and a
// reader of its coordinates has a token (the fields are visible in `ifma` only). `repr(C)`, and
// what coordinates leave of a register is bytes.
unsafe impl<C: Coordinate> Plain for Group<C> {}
#[cfg(target_arch = "x86_64")]
// SAFETY: any words are a point in memory, if not one of the curve, zeros too.
unsafe impl<S: Zeroable> Zeroable for Point<S> {}
#[cfg(target_arch = "x86_64")]
// SAFETY: `repr(C)`, and two of the same type leave no padding between or after them; S is plain
// itself.
unsafe impl<S: Pod> Pod for Point<S> {}
#[cfg(target_arch = "x86_64")]
// SAFETY: any words are one, and there is no padding.
unsafe impl<S: Pod + Send + Sync> Plain for Point<S> {}

#[cfg(target_arch = "x86_64")]
const _: () = {
    assert!(size_of::<LentValues>() == 5 * 64);
    assert!(size_of::<Row>() == 6 * 32);
    assert!(size_of::<avx2::Block<1>>() == 2 * 16 * 64 + 16 * 8);
    assert!(size_of::<avx2::Block<2>>() == 4 * 16 * 64 + 16 * 8);
};

const _: () = {
    use blstrs::{Fp, Fp2};
    assert!(size_of::<Step<Fp>>() == 112 && size_of::<Step<Fp2>>() == 208);
};
