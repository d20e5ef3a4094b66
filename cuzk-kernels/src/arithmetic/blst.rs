//! blst's arithmetic: assembly, with ADX and BMI2 where they are, which blst
//! looks for by itself.

use std::ops::{AddAssign, MulAssign, SubAssign};

use ff::Field;

use super::{Arithmetic, Operations};
use crate::isa::Isa;

/// blst's [`Arithmetic`].
#[derive(Clone, Copy)]
pub(crate) struct Blst;

impl Arithmetic for Blst {
    const ISA: Isa = Isa::SCALAR;
}

impl<F> Operations<F> for Blst
where
    F: Field + for<'a> MulAssign<&'a F> + for<'a> AddAssign<&'a F> + for<'a> SubAssign<&'a F>,
{
    #[inline(always)]
    fn multiply(a: &mut F, b: &F) {
        *a *= b;
    }

    #[inline(always)]
    fn square(a: &F) -> F {
        // What the squaring itself would save, its result's copies cost.
        let mut square = *a;
        square *= a;
        square
    }

    #[inline(always)]
    fn add(a: &mut F, b: &F) {
        *a += b;
    }

    #[inline(always)]
    fn subtract(a: &mut F, b: &F) {
        *a -= b;
    }

    #[inline(always)]
    fn negate(a: &F) -> F {
        -*a
    }

    #[inline(always)]
    fn invert(a: &F) -> Option<F> {
        a.invert().into()
    }
}
