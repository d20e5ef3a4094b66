//! The steps of a Miller loop, eight at a time. A point of G2 is doubled, or added to, and
//! the line through the points is taken at a point of G1.
//!
//! The formulas are doubling dbl-2009-alnr and mixed addition madd-2007-bl of the
//! Explicit-Formulas Database, in Jacobian coordinates. Lines are those of Aranha, Karabina,
//! Longa, Gebotys and López: "Faster Explicit Formulas for Computing Pairings over Ordinary
//! Curves", eprint 2010/526.
//! A line may have any factor in Fp2: the final exponentiation takes it to 1.
//!
//! Bounds, in multiples of p: x is below 36, y below 21 and z below 9.

use blstrs::{G1Affine, G2Affine};
use group::prime::PrimeCurveAffine;

use super::Ifma;
use super::field::coordinate::Coordinate;
use super::field::fp::Fp;
use super::field::fp2::Fp2;
use super::field::lanes::LANES;
use crate::affine::Coordinates;

/// The line `x + y·v + z·v·w`.
#[derive(Clone, Copy)]
pub(super) struct Line {
    pub(super) x: Fp2,
    pub(super) y: Fp2,
    pub(super) z: Fp2,
}

impl Line {
    /// The line at a point of G1.
    #[inline(always)]
    pub(super) fn at(&self, point: &Evaluation) -> Line {
        Line {
            x: self.x,
            y: self.y.times_base(&point.minus_2x),
            z: self.z.times_base(&point.twice_y),
        }
    }
}

/// The part of a point of G1 that lines are taken at.
#[derive(Clone, Copy)]
pub(super) struct Evaluation {
    minus_2x: Fp,
    twice_y: Fp,
}

impl Evaluation {
    /// Eight points, none at infinity.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512ifma,avx512vbmi2")]
    pub(super) fn new(token: Ifma, points: &[G1Affine; LANES]) -> Evaluation {
        let x = Fp::import(token, points.each_ref().map(Coordinates::x));
        let y = Fp::import(token, points.each_ref().map(Coordinates::y));
        Evaluation {
            minus_2x: Fp::splat(token, [0; 8]).sub_multiple::<3>(&x.add(&x)),
            twice_y: y.add(&y),
        }
    }
}

/// Eight points of G2 and their multiples.
#[derive(Clone, Copy)]
pub(super) struct Multiple {
    base_x: Fp2,
    base_y: Fp2,
    x: Fp2,
    y: Fp2,
    z: Fp2,
}

impl Multiple {
    /// The points themselves, none at infinity.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512ifma,avx512vbmi2")]
    pub(super) fn new(token: Ifma, points: &[G2Affine; LANES]) -> Multiple {
        debug_assert!(points.iter().all(|point| !bool::from(point.is_identity())));
        let x = Fp2::import(token, points.each_ref().map(Coordinates::x));
        let y = Fp2::import(token, points.each_ref().map(Coordinates::y));
        Multiple {
            base_x: x,
            base_y: y,
            x,
            y,
            z: Fp2::one(token),
        }
    }

    /// Doubles the points, and returns their tangents.
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
    pub(super) fn double(&mut self) -> Line {
        let a = self.x.square_below::<36>();
        let b = self.y.square_below::<21>();
        let zz = self.z.square_below::<9>();
        let c = b.square_below::<3>();
        let d = self.x.add(&b).square_below::<39>();
        let d = d.minus::<3>(&a).minus::<3>(&c).twice();
        let e = a.twice().add(&a);
        let f = e.square_below::<7>();
        let line_x = e.add(&self.x).square_below::<43>();
        let line_x = line_x.minus::<3>(&a).minus::<3>(&f);
        let line_x = line_x.minus::<9>(&b.twice().twice());
        let z = self.y.add(&self.z).square_below::<30>();
        self.z = z.minus::<3>(&b).minus::<3>(&zz);
        self.x = f.minus::<33>(&d.twice());
        let y = e.mul(&d.minus::<36>(&self.x));
        self.y = y.minus::<18>(&c.twice().twice().twice());
        Line {
            x: line_x,
            y: e.mul(&zz),
            z: self.z.mul(&zz),
        }
    }

    /// Adds the first points, and returns the lines through both.
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
    pub(super) fn add_base(&mut self) -> Line {
        let zz = self.z.square_below::<9>();
        let u = self.base_x.mul(&zz);
        let s = self.base_y.mul(&self.z).mul(&zz);
        let h = u.minus::<36>(&self.x);
        let hh = h.square_below::<39>();
        let i = hh.twice().twice();
        let j = h.mul(&i);
        let r = s.minus::<21>(&self.y).twice();
        let v = self.x.mul(&i);
        let x = r.square_below::<48>().minus::<3>(&j);
        let x = x.minus::<5>(&v.twice());
        let z = self.z.add(&h).square_below::<48>();
        self.z = z.minus::<3>(&zz).minus::<3>(&hh);
        let y = r.mul(&v.minus::<11>(&x));
        self.y = y.minus::<5>(&self.y.mul(&j).twice());
        self.x = x;
        let line_x = r.mul(&self.base_x);
        let line_x = line_x.minus::<3>(&self.base_y.mul(&self.z)).twice();
        Line {
            x: line_x,
            y: r,
            z: self.z,
        }
    }
}
