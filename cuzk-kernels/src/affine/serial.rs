//! Batched affine additions, one after the other, on any [`Arithmetic`] and for
//! both curves.

use std::marker::PhantomData;

use blst::{blst_fp, blst_fp2};
use blstrs::{Fp, Fp2, G1Affine, G2Affine, Scalar};
use ff::Field;
use group::prime::PrimeCurveAffine;

use super::{Addition, BATCH, Kernel, prefetch};
use crate::arithmetic::{Arithmetic, Operations};
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

/// The [`Kernel`] of the curve whose points are `C`, on the arithmetic `A`.
#[derive(Clone, Copy)]
pub(crate) struct Serial<C, A>(PhantomData<(C, A)>);

impl<C, A> Serial<C, A> {
    pub(crate) fn new() -> Self {
        Serial(PhantomData)
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

impl<C, A> Kernel for Serial<C, A>
where
    C: Coordinates,
    A: Arithmetic + Operations<C::Base>,
{
    type Affine = C;
    type Point = C;
    type Scratch = Vec<Step<C::Base>>;

    fn isa(self) -> Isa {
        A::ISA
    }

    fn infinity(self) -> C {
        C::identity()
    }

    fn import(self, from: &[C], to: &mut [C]) {
        to.copy_from_slice(from);
    }

    fn export(self, from: &[C], to: &mut [C]) {
        to.copy_from_slice(from);
    }

    fn negate(self, point: &C) -> C {
        // Infinity's coordinates are zero, and stay it.
        C::from_xy(point.x(), A::negate(&point.y()))
    }

    fn accumulate(
        self,
        targets: &mut [C],
        sources: &[C],
        additions: &[Addition],
        steps: &mut Vec<Step<C::Base>>,
    ) {
        for batch in additions.chunks(BATCH) {
            let product = self.prepare(targets, sources, batch, steps);
            self.complete(targets, sources, steps, product);
        }
    }
}

impl<C, A> Serial<C, A>
where
    C: Coordinates,
    A: Arithmetic + Operations<C::Base>,
{
    /// Carries out the additions that need no slope, lists the others in
    /// `steps`, and returns the product of their denominators, none of which
    /// is zero.
    fn prepare(
        self,
        targets: &mut [C],
        sources: &[C],
        batch: &[Addition],
        steps: &mut Vec<Step<C::Base>>,
    ) -> C::Base {
        let mut product = C::Base::ONE;
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
            A::subtract(&mut step.denominator, &target.x());
            if C::vanishes(&step.denominator) {
                step.doubles = true;
                step.denominator = self.signed_y(source, addition);
                A::add(&mut step.denominator, &target.y());
                if C::vanishes(&step.denominator) {
                    *target = C::identity();
                    continue;
                }
            }
            A::multiply(&mut product, &step.denominator);
            steps.push(step);
        }
        product
    }

    /// Inverts the product and walks the steps backwards, peeling off one
    /// denominator's inverse at a time.
    fn complete(self, targets: &mut [C], sources: &[C], steps: &[Step<C::Base>], product: C::Base) {
        let Some(mut inverse) = A::invert(&product) else {
            debug_assert!(false, "a denominator is zero");
            return;
        };
        for step in steps.iter().rev() {
            let target = &mut targets[step.addition.target as usize];
            let source = &sources[step.addition.source()];
            // Operations in place: results of blst that are copied while still
            // on their way to memory stall the processor.
            let mut slope = step.prefix;
            A::multiply(&mut slope, &inverse);
            A::multiply(&mut inverse, &step.denominator);
            A::multiply(&mut slope, &self.numerator(target, source, step));

            let mut x = A::square(&slope);
            A::subtract(&mut x, &target.x());
            A::subtract(&mut x, &source.x());
            let mut y = target.x();
            A::subtract(&mut y, &x);
            A::multiply(&mut y, &slope);
            A::subtract(&mut y, &target.y());
            *target = C::from_xy(x, y);
        }
    }

    /// The numerator of the slope of a sum or of a tangent.
    #[inline]
    fn numerator(self, target: &C, source: &C, step: &Step<C::Base>) -> C::Base {
        if step.doubles {
            let square = A::square(&source.x());
            let mut triple = square;
            A::add(&mut triple, &square);
            A::add(&mut triple, &square);
            triple
        } else {
            let mut difference = self.signed_y(source, step.addition);
            A::subtract(&mut difference, &target.y());
            difference
        }
    }

    /// The y of the source, or of its inverse.
    #[inline]
    fn signed_y(self, source: &C, addition: Addition) -> C::Base {
        if addition.negative() {
            A::negate(&source.y())
        } else {
            source.y()
        }
    }
}

/// Whether a point is infinity.
#[inline]
fn is_infinity<C: Coordinates>(point: &C) -> bool {
    C::vanishes(&point.x()) && C::vanishes(&point.y())
}

#[cfg(test)]
mod tests {
    use super::super::tests::check_kernel;
    use super::*;
    use crate::arithmetic::{Blst, Portable};

    #[test]
    fn g1_additions_agree_with_the_group_law() {
        check_kernel(Serial::<G1Affine, Blst>::new());
        check_kernel(Serial::<G1Affine, Portable>::new());
    }

    #[test]
    fn g2_additions_agree_with_the_group_law() {
        check_kernel(Serial::<G2Affine, Blst>::new());
        check_kernel(Serial::<G2Affine, Portable>::new());
    }
}
