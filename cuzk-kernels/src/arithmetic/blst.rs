//! blst's arithmetic: assembly, with ADX and BMI2 where they are, which blst
//! looks for by itself.

use blstrs::{Fp, Fp2, Scalar};
use ff::Field;

use super::{Arithmetic, Operations};
use crate::isa::Isa;

/// blst's [`Arithmetic`].
#[derive(Clone, Copy)]
pub(crate) struct Blst;

impl Arithmetic for Blst {
    const ISA: Isa = Isa::SCALAR;
}

macro_rules! operations {
    ($field:ty) => {
        impl Operations<$field> for Blst {
            #[inline(always)]
            fn multiply(a: &mut $field, b: &$field) {
                *a *= b;
            }

            #[inline(always)]
            fn square(to: &mut $field, a: &$field) {
                *to = a.square();
            }

            #[inline(always)]
            fn add(a: &mut $field, b: &$field) {
                *a += b;
            }

            #[inline(always)]
            fn subtract(a: &mut $field, b: &$field) {
                *a -= b;
            }

            #[inline(always)]
            fn negate_if(a: &mut $field, negative: bool) {
                if negative {
                    *a = -*a;
                }
            }

            #[inline(always)]
            fn invert(a: &$field) -> Option<$field> {
                a.invert().into()
            }
        }
    };
}

operations!(Scalar);
operations!(Fp);
operations!(Fp2);
