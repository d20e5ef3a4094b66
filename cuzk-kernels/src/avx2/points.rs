//! Points of blst as the words that they are.

#![allow(unsafe_code)] // vouches for the layout of points

use blstrs::{Fp, Fp2, G1Affine, G2Affine};

use super::words::Words;
use crate::affine::{Coordinates, Kernel, Serial, Step};
use crate::arithmetic::Blst;

/// A point whose coordinates have N components.
pub(crate) trait Components<const N: usize>: Coordinates {
    /// The kernel for additions that are no usual ones.
    type Serial: Kernel<Affine = Self, Point = Self, Step = Step<Self::Base>>;
    fn serial() -> Self::Serial;
    /// The constant b of the curve y² = x³ + b.
    fn b() -> Self::Base;
}

impl Components<1> for G1Affine {
    type Serial = Serial<G1Affine, Blst>;
    fn serial() -> Self::Serial {
        Serial::new()
    }
    fn b() -> Fp {
        Fp::from(4)
    }
}

impl Components<2> for G2Affine {
    type Serial = Serial<G2Affine, Blst>;
    fn serial() -> Self::Serial {
        Serial::new()
    }
    fn b() -> Fp2 {
        Fp2::new(Fp::from(4), Fp::from(4))
    }
}

/// The words of a point: x and y, each of N components.
pub(super) type Point<const N: usize> = [[Words; N]; 2];

/// The words of a point.
#[inline(always)]
pub(super) fn words<A: Components<N>, const N: usize>(point: &A) -> &Point<N> {
    const { assert!(size_of::<A>() == size_of::<Point<N>>() && align_of::<A>() == 8) }
    // SAFETY: points are plain words, as many as these.
    unsafe { &*std::ptr::from_ref(point).cast() }
}

/// The words of a point, to be written.
#[inline(always)]
pub(super) fn words_mut<A: Components<N>, const N: usize>(point: &mut A) -> &mut Point<N> {
    const { assert!(size_of::<A>() == size_of::<Point<N>>() && align_of::<A>() == 8) }
    // SAFETY: points are plain words, as many as these, of which any values are valid.
    unsafe { &mut *std::ptr::from_mut(point).cast() }
}
