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
//! Safety: a value of [`Avx2`] exists only where the processor has the instructions. Only the
//! entries of kernels, which have such a value, call functions that enable them.

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

pub(crate) use crate::token::Avx2;
pub(crate) use affine::{G1, G2};

/// Lanes of a register.
const LANES: usize = 4;

/// Registers of the same limb that are worked on side by side.
const GROUPS: usize = 4;

/// Elements that are worked on side by side.
const BLOCK: usize = LANES * GROUPS;
