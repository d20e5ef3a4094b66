//! Points in Jacobian coordinates, one a lane, for chains of doublings and additions that no
//! batch can share an inversion of.
//!
//! Formulas: doubling dbl-2009-l and mixed addition madd-2007-bl of the Explicit-Formulas
//! Database. Bounds, in multiples of p: x is below 36, y below 21 and z below 5; products
//! are below 2.2.
//!
//! The invariant: a lane whose points meet an exception of the addition law (equal, opposite
//! or infinite points) has z = 0 from then on. Its owner looks at z at the end.

use blstrs::{Fp as BlstFp, Fp2 as BlstFp2};

use super::Ifma;
use super::field::coordinate::Coordinate;
use super::field::fp::Fp;
use super::field::fp2::Fp2;
use super::field::lanes::LANES;

/// A coordinate in Montgomery form with bounds of the caller's.
pub(crate) trait Loose: Coordinate {
    /// Montgomery form of blst's elements, below 1.2 p.
    fn import_loose(token: Ifma, from: [Self::Base; LANES]) -> Self;
    /// The inverse of [`Loose::import_loose`].
    fn export_loose(&self, token: Ifma) -> [Self::Base; LANES];
    /// `self − other`, where `other` is below K·p.
    fn minus<const K: u64>(&self, other: &Self) -> Self;
    /// The square of a value below K·p.
    fn square_below<const K: u64>(&self) -> Self;
    /// The p-th power of a value below K·p.
    fn frobenius<const K: u64>(&self) -> Self;
}

impl Loose for Fp {
    #[inline(always)]
    fn import_loose(token: Ifma, from: [BlstFp; LANES]) -> Fp {
        Fp::import(token, from)
    }

    fn export_loose(&self, token: Ifma) -> [BlstFp; LANES] {
        self.export(token)
    }

    #[inline(always)]
    fn minus<const K: u64>(&self, other: &Fp) -> Fp {
        self.sub_multiple::<K>(other)
    }

    #[inline(always)]
    fn square_below<const K: u64>(&self) -> Fp {
        self.square()
    }

    #[inline(always)]
    fn frobenius<const K: u64>(&self) -> Fp {
        *self
    }
}

impl Loose for Fp2 {
    #[inline(always)]
    fn import_loose(token: Ifma, from: [BlstFp2; LANES]) -> Fp2 {
        Fp2::import(token, from)
    }

    fn export_loose(&self, token: Ifma) -> [BlstFp2; LANES] {
        self.export(token)
    }

    #[inline(always)]
    fn minus<const K: u64>(&self, other: &Fp2) -> Fp2 {
        Fp2::minus::<K>(self, other)
    }

    #[inline(always)]
    fn square_below<const K: u64>(&self) -> Fp2 {
        Fp2::square_below::<K>(self)
    }

    #[inline(always)]
    fn frobenius<const K: u64>(&self) -> Fp2 {
        self.conjugate::<K>()
    }
}

/// Eight affine points.
#[derive(Clone, Copy)]
pub(super) struct AffineLanes<C> {
    pub(super) x: C,
    pub(super) y: C,
}

/// Eight points.
#[derive(Clone, Copy)]
pub(super) struct Jacobian<C> {
    pub(super) x: C,
    pub(super) y: C,
    pub(super) z: C,
}

impl<C: Loose> Jacobian<C> {
    #[inline(always)]
    pub(super) fn new(token: Ifma, point: &AffineLanes<C>) -> Self {
        Jacobian {
            x: point.x,
            y: point.y,
            z: C::one(token),
        }
    }

    /// Twice the points.
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
    pub(super) fn double(&self) -> Self {
        let a = self.x.square_below::<36>();
        let b = self.y.square_below::<21>();
        let c = b.square_below::<3>();
        let d = self.x.add(&b).square_below::<39>();
        let d = twice(&d.minus::<3>(&a).minus::<3>(&c));
        let e = twice(&a).add(&a);
        let x = e.square_below::<7>().minus::<33>(&twice(&d));
        let y = e.mul(&d.minus::<36>(&x));
        Jacobian {
            x,
            y: y.minus::<18>(&twice(&twice(&twice(&c)))),
            z: twice(&self.y.mul(&self.z)),
        }
    }

    /// The sums with affine points whose coordinates are below 4.
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
    pub(super) fn add_affine(&self, other: &AffineLanes<C>) -> Self {
        let zz = self.z.square_below::<5>();
        let h = other.x.mul(&zz).minus::<36>(&self.x);
        let s = other.y.mul(&self.z).mul(&zz);
        let i = twice(&h).square_below::<78>();
        let j = h.mul(&i);
        let r = twice(&s.minus::<21>(&self.y));
        let v = self.x.mul(&i);
        let x = r.square_below::<48>().minus::<3>(&j);
        let x = x.minus::<5>(&twice(&v));
        let y = r.mul(&v.minus::<11>(&x));
        Jacobian {
            x,
            y: y.minus::<5>(&twice(&self.y.mul(&j))),
            z: twice(&self.z.mul(&h)),
        }
    }

    /// The lanes of `other` where `mask` has a bit, else those of `self`.
    #[inline(always)]
    pub(super) fn blend(&self, other: &Self, mask: u8) -> Self {
        Jacobian {
            x: self.x.blend(&other.x, mask),
            y: self.y.blend(&other.y, mask),
            z: self.z.blend(&other.z, mask),
        }
    }

    /// The points with z = 1, by the inverse of z.
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
    pub(super) fn scaled(&self, inverse: &C) -> AffineLanes<C> {
        let square = inverse.square_below::<3>();
        AffineLanes {
            x: self.x.mul(&square),
            y: self.y.mul(&square.mul(inverse)),
        }
    }
}

#[inline(always)]
fn twice<C: Loose>(value: &C) -> C {
    value.add(value)
}
