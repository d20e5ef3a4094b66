//! Batched affine additions with scalar instructions, on blst's field
//! arithmetic. This is the implementation for every machine, and for both
//! curves.

use std::marker::PhantomData;

use blstrs::{Fp, Fp2, G1Affine, G2Affine, Scalar};
use ff::Field;
use group::prime::PrimeCurveAffine;

use super::{Addition, BATCH, Kernel};

/// Affine points with visible coordinates; infinity is (0, 0).
pub(crate) trait Coordinates: PrimeCurveAffine<Scalar = Scalar> {
    /// The field of the coordinates.
    type Base: Field;
    fn x(&self) -> Self::Base;
    fn y(&self) -> Self::Base;
    fn from_xy(x: Self::Base, y: Self::Base) -> Self;
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
        for &addition in batch {
            let target = &mut targets[addition.target as usize];
            let source = self.signed(&sources[addition.source()], addition.negative());
            if bool::from(source.is_identity()) {
                continue;
            }
            if bool::from(target.is_identity()) {
                *target = source;
                continue;
            }
            let mut denominator = source.x() - target.x();
            let doubles = bool::from(denominator.is_zero());
            if doubles {
                denominator = source.y() + target.y();
                if bool::from(denominator.is_zero()) {
                    *target = A::identity();
                    continue;
                }
            }
            steps.push(Step {
                addition,
                denominator,
                prefix: product,
                doubles,
            });
            product *= denominator;
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
            let source = self.signed(&sources[step.addition.source()], step.addition.negative());
            let numerator = if step.doubles {
                let square = source.x().square();
                square.double() + square
            } else {
                source.y() - target.y()
            };
            let slope = numerator * (inverse * step.prefix);
            inverse *= step.denominator;

            let x = slope.square() - target.x() - source.x();
            let y = slope * (target.x() - x) - target.y();
            *target = A::from_xy(x, y);
        }
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
