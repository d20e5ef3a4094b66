//! MSMs and the decoding of points by the emulated device code.

use blstrs::Scalar;
use group::Group;

/// The place of a scalar that has no base.
pub const NO_BASE: u32 = u32::MAX;

/// The bases of auxiliary variables, with the part of them that is in memory.
#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    /// A bitmap of the variables in the query, and the bits before each word.
    pub mask: Option<(&'a [u64], &'a [u32])>,
    pub before: u32,
    pub first_base: u32,
    pub num_bases: u32,
}

/// Returns the places of the bases of `wide`'s bits.
pub fn wide_bases(query: &Query<'_>, wide: &[u64], ranks: &[u32]) -> Option<Vec<u32>> {
    super::call_wide_bases(query, wide, ranks)
}

/// Scalars, with the places of their bases.
#[derive(Debug, Clone, Copy)]
pub struct Scalars<'a> {
    pub values: &'a [Scalar],
    pub places: Option<&'a [u32]>,
    /// True if the values are not in Montgomery form.
    pub is_canonical: bool,
}

/// Returns true if the scratch of an MSM in G1 never shrinks as scalars are added, up
/// to `n` of them.
pub fn scratch_grows(n: u32, window_bits: u32) -> bool {
    super::cuzk_emulated_scratch_grows(n, window_bits)
}

/// Returns the window that the device would choose for `n` scalars.
pub fn window_bits(n: usize) -> u32 {
    super::cuzk_emulated_window_bits(n)
}

/// The kernels of one group.
pub trait Kernels: Sized {
    type Sum: Group;
    const ENCODED_BYTES: usize;

    fn sum(bases: &[Self], query: &Query<'_>, bits: &[u64]) -> Option<Self::Sum>;
    fn msm(bases: &[Self], scalars: &Scalars<'_>, window_bits: u32) -> Option<Self::Sum>;
    /// Returns the points, and the place of the first bad one.
    fn decode(bytes: &[u8]) -> Option<(Vec<Self>, Option<u32>)>;
}
