//! MSMs and the decoding of points by the emulated device code.
#![allow(unsafe_code)] // Passes slices to C++.

use std::ptr;

use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective, Scalar};
use group::Group;

use super::ffi::{
    RawQuery, RawScalars, cuzk_emulated_decode_g1, cuzk_emulated_decode_g2, cuzk_emulated_msm_g1,
    cuzk_emulated_msm_g2, cuzk_emulated_scratch_grows, cuzk_emulated_sum_g1, cuzk_emulated_sum_g2,
    cuzk_emulated_wide_bases, cuzk_emulated_window_bits, length,
};

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

impl Query<'_> {
    fn raw(&self, words: usize) -> RawQuery {
        let (mask, ranks) = match self.mask {
            Some((mask, ranks)) => {
                assert!(mask.len() >= words && ranks.len() >= words);
                (mask.as_ptr(), ranks.as_ptr())
            }
            None => (ptr::null(), ptr::null()),
        };
        RawQuery {
            mask,
            ranks,
            before: self.before,
            first_base: self.first_base,
            num_bases: self.num_bases,
        }
    }
}

/// Returns the places of the bases of `wide`'s bits.
pub fn wide_bases(query: &Query<'_>, wide: &[u64], ranks: &[u32]) -> Option<Vec<u32>> {
    assert!(ranks.len() >= wide.len());
    let count = wide.iter().map(|word| word.count_ones() as usize).sum();
    let mut places = vec![0; count];
    let raw = query.raw(wide.len());
    // SAFETY: there is a place for each bit of `wide`; the other arrays are as long as
    // `wide`.
    let error = unsafe {
        cuzk_emulated_wide_bases(
            &raw const raw,
            wide.as_ptr(),
            ranks.as_ptr(),
            length(wide.len()),
            places.as_mut_ptr(),
        )
    };
    (error == 0).then_some(places)
}

/// Scalars, with the places of their bases.
#[derive(Debug, Clone, Copy)]
pub struct Scalars<'a> {
    pub values: &'a [Scalar],
    pub places: Option<&'a [u32]>,
    /// True if the values are not in Montgomery form.
    pub is_canonical: bool,
}

impl Scalars<'_> {
    fn raw(&self, bases: usize) -> RawScalars {
        let places = match self.places {
            Some(places) => {
                assert!(places.len() == self.values.len());
                let is_place = |place: &u32| *place == NO_BASE || (*place as usize) < bases;
                assert!(places.iter().all(is_place));
                places.as_ptr()
            }
            None => {
                assert!(self.values.len() <= bases);
                ptr::null()
            }
        };
        RawScalars {
            values: self.values.as_ptr(),
            places,
            n: length(self.values.len()),
            form: u32::from(self.is_canonical),
        }
    }
}

/// Returns true if the scratch of an MSM in G1 never shrinks as scalars are added, up
/// to `n` of them.
pub fn scratch_grows(n: u32, window_bits: u32) -> bool {
    // SAFETY: a pure function.
    unsafe { cuzk_emulated_scratch_grows(n, window_bits) }
}

/// Returns the window that the device would choose for `n` scalars.
pub fn window_bits(n: usize) -> u32 {
    // SAFETY: a pure function.
    unsafe { cuzk_emulated_window_bits(n) }
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

macro_rules! kernels {
    ($affine:ty, $projective:ty, $bytes:literal, $sum:ident, $msm:ident, $decode:ident) => {
        impl Kernels for $affine {
            type Sum = $projective;
            const ENCODED_BYTES: usize = $bytes;

            fn sum(bases: &[Self], query: &Query<'_>, bits: &[u64]) -> Option<Self::Sum> {
                assert!(query.num_bases as usize <= bases.len());
                let mut out = Self::Sum::identity();
                let raw = query.raw(bits.len());
                let words = length(bits.len());
                // SAFETY: the query has at most as many bases as the slice, and its
                // bitmap is as long as `bits`.
                let error = unsafe {
                    $sum(
                        bases.as_ptr(),
                        &raw const raw,
                        bits.as_ptr(),
                        words,
                        &raw mut out,
                    )
                };
                (error == 0).then_some(out)
            }

            fn msm(bases: &[Self], scalars: &Scalars<'_>, window_bits: u32) -> Option<Self::Sum> {
                let mut out = Self::Sum::identity();
                let raw = scalars.raw(bases.len());
                // SAFETY: each scalar has a base, or none.
                let error = unsafe {
                    let scalars = &raw const raw;
                    $msm(bases.as_ptr(), scalars, window_bits, &raw mut out)
                };
                (error == 0).then_some(out)
            }

            fn decode(bytes: &[u8]) -> Option<(Vec<Self>, Option<u32>)> {
                let n = bytes.len() / $bytes;
                let mut points = vec![Self::default(); n];
                let mut bad = u32::MAX;
                // SAFETY: n encoded points and n places.
                let error = unsafe {
                    $decode(bytes.as_ptr(), length(n), points.as_mut_ptr(), &raw mut bad)
                };
                (error == 0).then(|| (points, (bad != u32::MAX).then_some(bad)))
            }
        }
    };
}

kernels!(
    G1Affine,
    G1Projective,
    96,
    cuzk_emulated_sum_g1,
    cuzk_emulated_msm_g1,
    cuzk_emulated_decode_g1
);
kernels!(
    G2Affine,
    G2Projective,
    192,
    cuzk_emulated_sum_g2,
    cuzk_emulated_msm_g2,
    cuzk_emulated_decode_g2
);
