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
use cuzk_memory::Plain;

/// Additions between asking for a point and using it.
const PREFETCH: usize = 16;

/// Steps that are done side by side, so that no operation waits for the one before
/// it, and no copy for an operation's result.
const BLOCK: usize = 8;

/// Chains of products of denominators, each of every second step: one's product is
/// being copied while the other's is being multiplied.
const CHAINS: usize = 2;

const _: () = assert!(BLOCK.is_multiple_of(CHAINS));

/// Affine points with visible coordinates; infinity is (0, 0).
pub(crate) trait Coordinates: PrimeCurveAffine<Scalar = Scalar> + Plain {
    /// The field of the coordinates.
    type Base: Field + Plain;
    fn x(&self) -> Self::Base;
    fn y(&self) -> Self::Base;
    fn from_xy(x: Self::Base, y: Self::Base) -> Self;
    /// Returns true if a coordinate is zero. (`is_zero` and `==` of the field compare in
    /// constant time, which costs a tenth of an addition.)
    fn vanishes(value: &Self::Base) -> bool;
    /// Returns true if a point of the curve is in the subgroup of prime order.
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
/// denominators before it in its chain, and whether it doubles. Without padding for
/// coordinates of whole words.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Step<F> {
    addition: Addition,
    denominator: F,
    prefix: F,
    /// Not 0 if it does.
    doubles: u64,
}

impl<F: Field> Step<F> {
    pub(crate) const BLANK: Self = Step {
        addition: Addition::ZERO,
        denominator: F::ONE,
        prefix: F::ONE,
        doubles: 0,
    };
}

impl<C, A> Kernel for Serial<C, A>
where
    C: Coordinates,
    A: Arithmetic + Operations<C::Base>,
{
    type Affine = C;
    type Point = C;
    type Step = Step<C::Base>;
    const STEPS: usize = BATCH;

    fn isa(self) -> Isa {
        A::ISA
    }

    fn steps(self) -> Vec<Step<C::Base>> {
        vec![Step::BLANK; BATCH]
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
        let mut y = point.y();
        A::negate_if(&mut y, true);
        C::from_xy(point.x(), y)
    }

    fn accumulate(
        self,
        targets: &mut [C],
        sources: &[C],
        additions: &[Addition],
        steps: &mut [Step<C::Base>],
    ) {
        for batch in additions.chunks(BATCH) {
            let (count, products) = self.prepare(targets, sources, batch, steps);
            self.complete(targets, sources, &steps[..count], products);
        }
    }
}

impl<C, A> Serial<C, A>
where
    C: Coordinates,
    A: Arithmetic + Operations<C::Base>,
{
    /// Carries out the additions that need no slope, and lists the others in `steps`.
    /// Returns the number of the others, and for each chain the product of their
    /// denominators. No product is zero.
    fn prepare(
        self,
        targets: &mut [C],
        sources: &[C],
        batch: &[Addition],
        steps: &mut [Step<C::Base>],
    ) -> (usize, [C::Base; CHAINS]) {
        let mut products = [C::Base::ONE; CHAINS];
        let mut count = 0;
        for start in (0..batch.len()).step_by(BLOCK) {
            let first = count;
            for i in start..(start + BLOCK).min(batch.len()) {
                if let Some(later) = batch.get(i + PREFETCH) {
                    prefetch(&targets[later.target as usize]);
                    prefetch(&sources[later.source()]);
                }
                let is_listed = self.begin(targets, sources, batch[i], &mut steps[count]);
                count += usize::from(is_listed);
            }
            for (i, step) in steps[..count].iter_mut().enumerate().skip(first) {
                let product = &mut products[i % CHAINS];
                step.prefix = *product;
                A::multiply(product, &step.denominator);
            }
        }
        (count, products)
    }

    /// Carries an addition out if it needs no slope, and makes it a step otherwise;
    /// whether it did that.
    #[inline(always)]
    fn begin(
        self,
        targets: &mut [C],
        sources: &[C],
        addition: Addition,
        step: &mut Step<C::Base>,
    ) -> bool {
        let target = &mut targets[addition.target as usize];
        let source = &sources[addition.source()];
        if is_infinity(source) {
            return false;
        }
        if is_infinity(target) {
            *target = self.signed(source, addition.negative());
            return false;
        }
        // In its place from the start: see `Operations`.
        step.addition = addition;
        step.denominator = source.x();
        step.doubles = 0;
        A::subtract(&mut step.denominator, &target.x());
        if C::vanishes(&step.denominator) {
            step.doubles = 1;
            step.denominator = source.y();
            A::negate_if(&mut step.denominator, addition.negative());
            A::add(&mut step.denominator, &target.y());
            if C::vanishes(&step.denominator) {
                *target = C::identity();
                return false;
            }
        }
        true
    }

    /// Inverts the products and walks the steps backwards, peeling off one
    /// denominator's inverse at a time, of both chains in turn.
    fn complete(
        self,
        targets: &mut [C],
        sources: &[C],
        steps: &[Step<C::Base>],
        products: [C::Base; CHAINS],
    ) {
        let Some(mut inverses) = self.invert(products) else {
            debug_assert!(false, "a denominator is zero");
            return;
        };
        let mut reciprocals = [C::Base::ZERO; BLOCK];
        // A block begins with the first chain, as many steps as it has.
        for steps in steps.chunks(BLOCK).rev() {
            for (i, step) in steps.iter().enumerate().rev() {
                let inverse = &mut inverses[i % CHAINS];
                reciprocals[i] = step.prefix;
                A::multiply(&mut reciprocals[i], inverse);
                A::multiply(inverse, &step.denominator);
            }
            self.add(targets, sources, steps, &reciprocals);
        }
    }

    /// Carries out the steps of a block, the reciprocals of whose denominators are
    /// given, one operation of all of them after the other.
    #[inline(always)]
    fn add(
        self,
        targets: &mut [C],
        sources: &[C],
        steps: &[Step<C::Base>],
        reciprocals: &[C::Base; BLOCK],
    ) {
        let indices = |step: &Step<C::Base>| {
            let Step { addition, .. } = step;
            (addition.target as usize, addition.source())
        };
        let zero = [C::Base::ZERO; BLOCK];
        let (mut slopes, mut xs, mut ys) = (zero, zero, zero);
        for (step, slope) in steps.iter().zip(&mut slopes) {
            let (target, source) = indices(step);
            self.numerator(&targets[target], &sources[source], step, slope);
        }
        for (slope, reciprocal) in slopes.iter_mut().zip(reciprocals) {
            A::multiply(slope, reciprocal);
        }
        for (x, slope) in xs.iter_mut().zip(&slopes) {
            A::square(x, slope);
        }
        for ((step, x), y) in steps.iter().zip(&mut xs).zip(&mut ys) {
            let (target, source) = indices(step);
            *y = targets[target].x();
            A::subtract(x, y);
            A::subtract(x, &sources[source].x());
            A::subtract(y, x);
        }
        for (y, slope) in ys.iter_mut().zip(&slopes) {
            A::multiply(y, slope);
        }
        for (step, y) in steps.iter().zip(&mut ys) {
            A::subtract(y, &targets[indices(step).0].y());
        }
        for ((step, x), y) in steps.iter().zip(&xs).zip(&ys) {
            targets[indices(step).0] = C::from_xy(*x, *y);
        }
    }

    /// The inverses of both products.
    fn invert(self, [first, second]: [C::Base; CHAINS]) -> Option<[C::Base; CHAINS]> {
        let mut both = first;
        A::multiply(&mut both, &second);
        let inverse = A::invert(&both)?;
        let mut inverses = [second, first];
        for other in &mut inverses {
            A::multiply(other, &inverse);
        }
        Some(inverses)
    }

    /// `to` becomes the numerator of the slope of a sum or of a tangent.
    #[inline(always)]
    fn numerator(self, target: &C, source: &C, step: &Step<C::Base>, to: &mut C::Base) {
        if step.doubles != 0 {
            A::square(to, &source.x());
            let square = *to;
            A::add(to, &square);
            A::add(to, &square);
        } else {
            *to = source.y();
            A::negate_if(to, step.addition.negative());
            A::subtract(to, &target.y());
        }
    }
}

/// Returns true if a point is infinity.
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
