//! Points of blst as the words that they are.

use blstrs::{Fp, Fp2, G1Affine, G2Affine};

use super::words::Words;
use crate::affine::{Coordinates, Kernel, Serial, Step};
use crate::arithmetic::Blst;
use cuzk_memory::{Plain, view, view_mut};

/// A point whose coordinates have N components.
pub(crate) trait Components<const N: usize>: Coordinates + Plain {
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
    view(point)
}

/// The words of a point, to be written.
#[inline(always)]
pub(super) fn words_mut<A: Components<N>, const N: usize>(point: &mut A) -> &mut Point<N> {
    view_mut(point)
}
