//! Arithmetic with AVX2 and FMA: sixteen field elements at a time, in lanes of four.
//!
//! For processors without AVX-512 IFMA. They multiply one pair of 64-bit integers a cycle, but
//! eight pairs of floating-point numbers. A fused multiply-add makes such products exact: see
//! `limbs`.
//!
//! Points and scalars in memory are blst's, so they cost no conversion elsewhere. Additions of
//! points that are no usual ones (of infinity, or of points with the same x) are left to the
//! serial kernel.
//!
//! Safety: a value of [`Avx2`] exists only where the processor has the instructions. A function
//! of a kernel enables them, and the compiler lets no other code call it safely. All calls from
//! other code are in this file, each with such a value. Invariant: functions of kernels require
//! the instructions and nothing else.

#![allow(unsafe_code)] // calls functions that enable the instructions

mod affine;
mod assembly;
mod block;
mod butterflies;
mod coordinate;
pub(crate) mod coset;
mod encoded;
mod field;
mod limbs;
pub(crate) mod ntt;
mod points;
mod rows;
mod scalar;
mod scalar_limbs;
mod sums;
mod words;

use blstrs::Scalar;

use crate::affine::Addition;
pub(crate) use crate::token::Avx2;
pub(crate) use affine::{G1, G2};
pub(crate) use block::Block;
use coordinate::Coordinate;
use points::Components;
pub(crate) use rows::Row;
use rows::{Cells, Lanes, Pass, Reversed, Table};

/// Lanes of a register.
const LANES: usize = 4;

/// Registers of the same limb that are worked on side by side.
const GROUPS: usize = 4;

/// Elements that are worked on side by side.
const BLOCK: usize = LANES * GROUPS;

/// See [`block::one`].
fn one<A: Components<N>, const N: usize>(_: Avx2) -> Coordinate<N> {
    // SAFETY: the token proves the instructions.
    unsafe { block::one::<A, N>() }
}

/// See [`encoded::decode`].
fn decode<A: Components<N>, const N: usize>(
    _: Avx2,
    encoded: &[u8],
    indices: &[u32],
    to: &mut [A],
) -> bool {
    // SAFETY: the token proves the instructions.
    unsafe { encoded::decode(encoded, indices, to) }
}

/// See [`affine::accumulate`].
fn accumulate<A: Components<N>, const N: usize>(
    _: Avx2,
    targets: &mut [A],
    sources: &[A],
    additions: &[Addition],
    blocks: &mut [Block<N>],
) {
    // SAFETY: the token proves the instructions.
    unsafe { affine::accumulate(targets, sources, additions, blocks) }
}

/// See [`ntt::read`].
#[inline(always)]
fn read(_: Avx2, cells: &Cells<'_>, rows: &mut [Row]) {
    // SAFETY: the token proves the instructions.
    unsafe { ntt::read(cells, rows) }
}

/// See [`ntt::write`].
#[inline(always)]
fn write(_: Avx2, cells: &mut Cells<'_>, rows: &[Row]) {
    // SAFETY: the token proves the instructions.
    unsafe { ntt::write(cells, rows) }
}

/// See [`butterflies::scatter_rows`].
#[inline(always)]
fn scatter_rows<const INVERSE: bool>(
    _: Avx2,
    rows: &mut [Row],
    layers: u32,
    twiddles: (Table<'_>, &Lanes),
) {
    // SAFETY: the token proves the instructions.
    unsafe { butterflies::scatter_rows::<INVERSE>(rows, layers, twiddles) }
}

/// See [`butterflies::gather_rows`].
#[inline(always)]
fn gather_rows(_: Avx2, rows: &mut [Row], layers: u32, twiddles: (Table<'_>, &Lanes)) {
    // SAFETY: the token proves the instructions.
    unsafe { butterflies::gather_rows(rows, layers, twiddles) }
}

/// See [`coset::multiply_all`].
#[inline(always)]
fn multiply_all(_: Avx2, to: &mut [Scalar], by: &[Scalar]) {
    // SAFETY: the token proves the instructions.
    unsafe { coset::multiply_all(to, by) }
}

/// See [`coset::shift_rows`].
#[inline(always)]
fn shift_rows(
    _: Avx2,
    pass: &Pass,
    rows: &mut [Row],
    twiddles: (Table<'_>, &Lanes),
    factors: [&Scalar; 2],
) {
    // SAFETY: the token proves the instructions.
    unsafe { coset::shift_rows(pass, rows, twiddles, factors) }
}

/// See [`coset::write_differences`].
#[inline(always)]
fn write_differences(
    _: Avx2,
    pass: &Pass,
    rows: &[Row],
    twiddles: (Table<'_>, &Lanes),
    factors: [&Scalar; 2],
    sums: (&[Scalar], &Scalar),
    to: &mut Reversed<'_>,
) {
    // SAFETY: the token proves the instructions.
    unsafe { coset::write_differences(pass, rows, twiddles, factors, sums, to) }
}

/// Entries for the tests of the kernels' parts.
#[cfg(test)]
mod tests {
    use super::assembly::tests as assembly;
    use super::scalar::{ScalarWords, tests as scalar};
    use super::words::{Words, tests as words};
    use super::{Avx2, LANES};

    pub(super) fn check_product(_: Avx2, factors: [[assembly::Number; LANES]; 3]) {
        // SAFETY: the token proves the instructions.
        unsafe { assembly::check(factors) }
    }

    pub(super) fn check_scalar_product(_: Avx2, factors: [[assembly::Scalar; LANES]; 2]) {
        // SAFETY: the token proves the instructions.
        unsafe { assembly::check_scalars(factors) }
    }

    pub(super) fn check_square(_: Avx2, factor: [assembly::Number; LANES]) {
        // SAFETY: the token proves the instructions.
        unsafe { assembly::check_square(factor) }
    }

    pub(super) fn check_scalars(_: Avx2, residues: [ScalarWords; LANES], multiples: [i32; LANES]) {
        // SAFETY: the token proves the instructions.
        unsafe { scalar::check(residues, multiples) }
    }

    pub(super) fn check_words(_: Avx2, residues: [Words; LANES], multiples: [i32; LANES]) {
        // SAFETY: the token proves the instructions.
        unsafe { words::check(residues, multiples) }
    }

    /// Returns what [`words::kinds`] does.
    pub(super) fn kinds(_: Avx2, value: Words, lane: usize) -> [bool; 2] {
        // SAFETY: the token proves the instructions.
        unsafe { words::kinds(value, lane) }
    }
}
