//! Batched affine additions with scalar instructions, on blst's field
//! arithmetic. This is the implementation for every machine, and for both
//! curves.

use std::marker::PhantomData;

use blst::{blst_fp, blst_fp2};
use blstrs::{Fp, Fp2, G1Affine, G2Affine, Scalar};
use ff::Field;
use group::prime::PrimeCurveAffine;

use super::{Addition, BATCH, Kernel, prefetch};
use crate::isa::Isa;
use crate::memory::Plain;

/// Additions between asking for a point and using it.
const PREFETCH: usize = 16;

/// Affine points with visible coordinates; infinity is (0, 0).
pub(crate) trait Coordinates: PrimeCurveAffine<Scalar = Scalar> + Plain {
    /// The field of the coordinates.
    type Base: Field;
    fn x(&self) -> Self::Base;
    fn y(&self) -> Self::Base;
    fn from_xy(x: Self::Base, y: Self::Base) -> Self;
    /// Whether a coordinate is zero. (`is_zero` and `==` of the field compare
    /// in constant time, which costs a tenth of an addition.)
    fn vanishes(value: &Self::Base) -> bool;
    /// Whether a point of the curve is in the subgroup of prime order.
    fn is_in_subgroup(&self) -> bool;
}

impl Coordinates for G1Affine {
    type Base = Fp;
    fn x(&self) -> Fp {
        self.x()
    }
    fn y(&self) -> Fp {
        self.y()
    }
    fn from_xy(x: Fp, y: Fp) -> G1Affine {
        G1Affine::from_raw_unchecked(x, y, false)
    }
    fn vanishes(value: &Fp) -> bool {
        blst_fp::from(*value).l.iter().all(|word| *word == 0)
    }
    fn is_in_subgroup(&self) -> bool {
        self.is_torsion_free().into()
    }
}

impl Coordinates for G2Affine {
    type Base = Fp2;
    fn x(&self) -> Fp2 {
        self.x()
    }
    fn y(&self) -> Fp2 {
        self.y()
    }
    fn from_xy(x: Fp2, y: Fp2) -> G2Affine {
        G2Affine::from_raw_unchecked(x, y, false)
    }
    fn vanishes(value: &Fp2) -> bool {
        let [c0, c1] = blst_fp2::from(*value).fp;
        c0.l.iter().chain(&c1.l).all(|word| *word == 0)
    }
    fn is_in_subgroup(&self) -> bool {
        self.is_torsion_free().into()
    }
}

/// The portable [`Kernel`] of the curve whose points are `A`.
#[derive(Clone, Copy)]
pub(crate) struct Portable<A>(PhantomData<A>);

impl<A> Portable<A> {
    pub(crate) fn new() -> Self {
        Portable(PhantomData)
    }
}

/// An addition that needs a slope: its denominator, the product of the
/// denominators before it, and whether it doubles.
pub(crate) struct Step<F> {
    addition: Addition,
    denominator: F,
    prefix: F,
    doubles: bool,
}

impl<A: Coordinates> Kernel for Portable<A> {
    type Affine = A;
    type Point = A;
    type Scratch = Vec<Step<A::Base>>;

    fn isa(self) -> Isa {
        Isa::PORTABLE
    }

    fn infinity(self) -> A {
        A::identity()
    }

    fn import(self, from: &[A], to: &mut [A]) {
        to.copy_from_slice(from);
    }

    fn export(self, from: &[A], to: &mut [A]) {
        to.copy_from_slice(from);
    }

    fn negate(self, point: &A) -> A {
        -*point
    }

    fn accumulate(
        self,
        targets: &mut [A],
        sources: &[A],
        additions: &[Addition],
        steps: &mut Vec<Step<A::Base>>,
    ) {
        for batch in additions.chunks(BATCH) {
            let product = self.prepare(targets, sources, batch, steps);
            self.complete(targets, sources, steps, product);
        }
    }
}

impl<A: Coordinates> Portable<A> {
    /// Carries out the additions that need no slope, lists the others in
    /// `steps`, and returns the product of their denominators, none of which
    /// is zero.
    fn prepare(
        self,
        targets: &mut [A],
        sources: &[A],
        batch: &[Addition],
        steps: &mut Vec<Step<A::Base>>,
    ) -> A::Base {
        let mut product = A::Base::ONE;
        steps.clear();
        for (i, &addition) in batch.iter().enumerate() {
            if let Some(later) = batch.get(i + PREFETCH) {
                prefetch(&targets[later.target as usize]);
                prefetch(&sources[later.source()]);
            }
            let target = &mut targets[addition.target as usize];
            let source = &sources[addition.source()];
            if is_infinity(source) {
                continue;
            }
            if is_infinity(target) {
                *target = self.signed(source, addition.negative());
                continue;
            }
            let mut step = Step {
                addition,
                denominator: source.x(),
                prefix: product,
                doubles: false,
            };
            step.denominator -= &target.x();
            if A::vanishes(&step.denominator) {
                step.doubles = true;
                step.denominator = signed_y(source, addition);
                step.denominator += &target.y();
                if A::vanishes(&step.denominator) {
                    *target = A::identity();
                    continue;
                }
            }
            product *= &step.denominator;
            steps.push(step);
        }
        product
    }

    /// Inverts the product and walks the steps backwards, peeling off one
    /// denominator's inverse at a time.
    fn complete(self, targets: &mut [A], sources: &[A], steps: &[Step<A::Base>], product: A::Base) {
        let Some(mut inverse) = Option::<A::Base>::from(product.invert()) else {
            debug_assert!(false, "a denominator is zero");
            return;
        };
        for step in steps.iter().rev() {
            let target = &mut targets[step.addition.target as usize];
            let source = &sources[step.addition.source()];
            // Operations in place: results of blst that are copied while still
            // on their way to memory stall the processor.
            let mut slope = step.prefix;
            slope *= &inverse;
            inverse *= &step.denominator;
            slope *= &numerator(target, source, step);

            let mut x = slope;
            x *= &slope;
            x -= &target.x();
            x -= &source.x();
            let mut y = target.x();
            y -= &x;
            y *= &slope;
            y -= &target.y();
            *target = A::from_xy(x, y);
        }
    }
}

/// The numerator of the slope of a sum or of a tangent.
#[inline]
fn numerator<A: Coordinates>(target: &A, source: &A, step: &Step<A::Base>) -> A::Base {
    if step.doubles {
        let square = source.x().square();
        square.double() + square
    } else {
        let mut difference = signed_y(source, step.addition);
        difference -= &target.y();
        difference
    }
}

/// Whether a point is infinity.
#[inline]
fn is_infinity<A: Coordinates>(point: &A) -> bool {
    A::vanishes(&point.x()) && A::vanishes(&point.y())
}

/// The y of the source, or of its inverse.
#[inline]
fn signed_y<A: Coordinates>(source: &A, addition: Addition) -> A::Base {
    if addition.negative() {
        -source.y()
    } else {
        source.y()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::check_kernel;
    use super::*;

    #[test]
    fn g1_additions_agree_with_the_group_law() {
        check_kernel(Portable::<G1Affine>::new());
    }

    #[test]
    fn g2_additions_agree_with_the_group_law() {
        check_kernel(Portable::<G2Affine>::new());
    }
}
