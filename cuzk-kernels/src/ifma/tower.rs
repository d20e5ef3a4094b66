//! The extension of degree 12 in which pairings lie, eight elements at a time.
//!
//! It is a tower: Fp6 = Fp2[v] with v³ = ξ = 1 + i, and Fp12 = Fp6[w] with w² = v.
//!
//! Every component of a value has a bound, in multiples of p:
//!
//! | value | bound |
//! |---|---|
//! | product or square in Fp2 | 2.2 |
//! | product in Fp6 | 20 |
//! | square in Fp12 | 82 |
//! | product with a line | 24 |
//!
//! Factors may be far larger, because the radix is 2^35 p. The number in `minus::<K>` is a
//! bound of the subtrahend.

use super::Ifma;
use super::field::coordinate::Coordinate;
use super::field::fp2::Fp2;
use super::line::Line;

/// Eight elements of Fp6: the coefficients of 1, v and v².
#[derive(Clone, Copy)]
pub(super) struct Fp6(pub(super) [Fp2; 3]);

/// Eight elements of Fp12: the coefficients of 1 and w.
#[derive(Clone, Copy)]
pub(super) struct Fp12(pub(super) [Fp6; 2]);

impl Fp6 {
    #[inline(always)]
    fn plus(&self, other: &Fp6) -> Fp6 {
        Fp6(std::array::from_fn(|i| self.0[i].add(&other.0[i])))
    }

    #[inline(always)]
    fn minus<const K: u64>(&self, other: &Fp6) -> Fp6 {
        Fp6(std::array::from_fn(|i| self.0[i].minus::<K>(&other.0[i])))
    }

    /// The product with v of a value below K.
    #[inline(always)]
    fn times_v<const K: u64>(&self) -> Fp6 {
        let [a0, a1, a2] = &self.0;
        Fp6([a2.times_nonresidue::<K>(), *a0, *a1])
    }

    /// Karatsuba's six products: below 20.
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
    fn mul(&self, other: &Fp6) -> Fp6 {
        let ([a0, a1, a2], [b0, b1, b2]) = (&self.0, &other.0);
        let (t0, t1, t2) = (a0.mul(b0), a1.mul(b1), a2.mul(b2));
        let cross = |a: &Fp2, c: &Fp2, b: &Fp2, d: &Fp2| a.add(c).mul(&b.add(d));
        let c0 = cross(a1, a2, b1, b2).minus::<3>(&t1).minus::<3>(&t2);
        let c1 = cross(a0, a1, b0, b1).minus::<3>(&t0).minus::<3>(&t1);
        let c2 = cross(a0, a2, b0, b2).minus::<3>(&t0).minus::<3>(&t2);
        Fp6([
            c0.times_nonresidue::<9>().add(&t0),
            c1.add(&t2.times_nonresidue::<3>()),
            c2.add(&t1),
        ])
    }

    /// The product with `x + y·v`: below 9.
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
    fn mul_two(&self, x: &Fp2, y: &Fp2) -> Fp6 {
        let [a0, a1, a2] = &self.0;
        let (t0, t1) = (a0.mul(x), a1.mul(y));
        let cross = a0.add(a1).mul(&x.add(y));
        Fp6([
            a2.mul(y).times_nonresidue::<3>().add(&t0),
            cross.minus::<3>(&t0).minus::<3>(&t1),
            a2.mul(x).add(&t1),
        ])
    }

    /// The product with `z·v`: below 6.
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
    fn mul_one(&self, z: &Fp2) -> Fp6 {
        let [a0, a1, a2] = &self.0;
        Fp6([a2.mul(z).times_nonresidue::<3>(), a0.mul(z), a1.mul(z)])
    }
}

impl Fp12 {
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
    pub(super) fn one(token: Ifma) -> Fp12 {
        let one = Fp2::one(token);
        let zero = one.minus::<2>(&one);
        // 2p is zero.
        Fp12([Fp6([one, zero, zero]), Fp6([zero, zero, zero])])
    }

    /// Complex squaring of a value below 82: two products in Fp6.
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
    pub(super) fn square(&self) -> Fp12 {
        let [a0, a1] = &self.0;
        let product = a0.mul(a1);
        let other = a0.plus(a1).mul(&a0.plus(&a1.times_v::<82>()));
        let c0 = other
            .minus::<20>(&product)
            .minus::<40>(&product.times_v::<20>());
        Fp12([c0, product.plus(&product)])
    }

    /// The product with a line: thirteen products in Fp2.
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
    pub(super) fn mul_line(&self, line: &Line) -> Fp12 {
        let [a0, a1] = &self.0;
        let t0 = a0.mul_two(&line.x, &line.y);
        let t1 = a1.mul_one(&line.z);
        let cross = a0.plus(a1).mul_two(&line.x, &line.y.add(&line.z));
        Fp12([
            t0.plus(&t1.times_v::<3>()),
            cross.minus::<9>(&t0).minus::<6>(&t1),
        ])
    }
}
