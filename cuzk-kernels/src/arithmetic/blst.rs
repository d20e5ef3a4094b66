//! blst's arithmetic: assembly, with ADX and BMI2 where they are, which blst
//! looks for by itself.

#![allow(unsafe_code)] // calls blst, which takes pointers

use std::ptr::{from_mut, from_ref};

use ::blst::{
    blst_fp, blst_fp_cneg, blst_fp_sqr, blst_fp2, blst_fp2_cneg, blst_fp2_sqr, blst_fr,
    blst_fr_cneg, blst_fr_sqr,
};
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
    ($field:ty, $blst:ty, $square:ident, $negate_if:ident) => {
        impl Operations<$field> for Blst {
            #[inline(always)]
            fn multiply(a: &mut $field, b: &$field) {
                *a *= b;
            }

            #[inline(always)]
            fn square(to: &mut $field, a: &$field) {
                // SAFETY: blstrs' values are transparently blst's, and both pointers come of
                // references.
                unsafe { $square(from_mut(to).cast::<$blst>(), from_ref(a).cast::<$blst>()) }
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
                let a = from_mut(a).cast::<$blst>();
                // SAFETY: blstrs' values are transparently blst's; the pointer comes of a
                // reference, and blst's results may take the place of operands.
                unsafe { $negate_if(a, a, negative) }
            }

            #[inline(always)]
            fn invert(a: &$field) -> Option<$field> {
                a.invert().into()
            }
        }
    };
}

operations!(Scalar, blst_fr, blst_fr_sqr, blst_fr_cneg);
operations!(Fp, blst_fp, blst_fp_sqr, blst_fp_cneg);
operations!(Fp2, blst_fp2, blst_fp2_sqr, blst_fp2_cneg);
