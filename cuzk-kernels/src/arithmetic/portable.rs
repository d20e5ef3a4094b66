//! Arithmetic in plain Rust, for every machine alike: no assembly, and nothing
//! that depends on the target.

use blst::{blst_fp, blst_fp2, blst_fr};
use blstrs::{Fp, Fp2, Scalar};

use super::residue::{self, Modulus, Words};
use super::{Arithmetic, Operations};
use crate::isa::Isa;

/// The [`Arithmetic`] in plain Rust.
#[derive(Clone, Copy)]
pub(crate) struct Portable;

impl Arithmetic for Portable {
    const ISA: Isa = Isa::PORTABLE;
}

/// The order of the groups.
pub(super) struct R;

impl Modulus<4> for R {
    const WORDS: Words<4> = [
        0xffff_ffff_0000_0001,
        0x53bd_a402_fffe_5bfe,
        0x3339_d808_09a1_d805,
        0x73ed_a753_299d_7d48,
    ];
}

/// The characteristic of the curve's field.
pub(super) struct P;

impl Modulus<6> for P {
    const WORDS: Words<6> = [
        0xb9fe_ffff_ffff_aaab,
        0x1eab_fffe_b153_ffff,
        0x6730_d2a0_f6b0_f624,
        0x6477_4b84_f385_12bf,
        0x4b1b_a7b6_434b_acd7,
        0x1a01_11ea_397f_e69a,
    ];
}

macro_rules! prime_field {
    ($field:ty, $blst:ident, $modulus:ty, $words:literal) => {
        impl Operations<$field> for Portable {
            #[inline(always)]
            fn multiply(a: &mut $field, b: &$field) {
                let (x, y) = ($blst::from(*a).l, $blst::from(*b).l);
                let l = residue::multiply::<$modulus, $words>(&x, &y);
                *a = $blst { l }.into();
            }

            #[inline(always)]
            fn square(to: &mut $field, a: &$field) {
                let words = $blst::from(*a).l;
                let l = residue::multiply::<$modulus, $words>(&words, &words);
                *to = $blst { l }.into();
            }

            #[inline(always)]
            fn add(a: &mut $field, b: &$field) {
                let (x, y) = ($blst::from(*a).l, $blst::from(*b).l);
                let l = residue::add::<$modulus, $words>(&x, &y);
                *a = $blst { l }.into();
            }

            #[inline(always)]
            fn subtract(a: &mut $field, b: &$field) {
                let (x, y) = ($blst::from(*a).l, $blst::from(*b).l);
                let l = residue::subtract::<$modulus, $words>(&x, &y);
                *a = $blst { l }.into();
            }

            #[inline(always)]
            fn negate_if(a: &mut $field, negative: bool) {
                let l = residue::negate_if::<$modulus, $words>(&$blst::from(*a).l, negative);
                *a = $blst { l }.into();
            }

            fn invert(a: &$field) -> Option<$field> {
                let l = residue::invert::<$modulus, $words>(&$blst::from(*a).l)?;
                Some($blst { l }.into())
            }
        }
    };
}

prime_field!(Scalar, blst_fr, R, 4);
prime_field!(Fp, blst_fp, P, 6);

/// `(a, b) → (a + b, a − b)`, for every [`Arithmetic`]: neither takes as long as a call
/// of blst.
#[inline(always)]
pub(crate) fn sum_and_difference(a: &mut Scalar, b: &mut Scalar) {
    let (x, y) = (blst_fr::from(*a).l, blst_fr::from(*b).l);
    let (sum, difference) = residue::sum_and_difference::<R, 4>(&x, &y);
    (*a, *b) = (blst_fr { l: sum }.into(), blst_fr { l: difference }.into());
}

/// The words of both coefficients; the extension is by a root of −1.
#[inline(always)]
fn coefficients(a: &Fp2) -> (Words<6>, Words<6>) {
    let [c0, c1] = blst_fp2::from(*a).fp;
    (c0.l, c1.l)
}

#[inline(always)]
fn extension(c0: Words<6>, c1: Words<6>) -> Fp2 {
    let fp = [blst_fp { l: c0 }, blst_fp { l: c1 }];
    blst_fp2 { fp }.into()
}

impl Operations<Fp2> for Portable {
    /// a₀·b₀ − a₁·b₁ and a₀·b₁ + a₁·b₀.
    #[inline(always)]
    fn multiply(a: &mut Fp2, b: &Fp2) {
        let ((a0, a1), (b0, b1)) = (coefficients(a), coefficients(b));
        let minus_a1 = residue::negate::<P, 6>(&a1);
        *a = extension(
            residue::sum_of_products::<P, 6, 2>([(&a0, &b0), (&minus_a1, &b1)]),
            residue::sum_of_products::<P, 6, 2>([(&a0, &b1), (&a1, &b0)]),
        );
    }

    /// (a₀ + a₁)·(a₀ − a₁) and 2·a₀·a₁.
    #[inline(always)]
    fn square(to: &mut Fp2, a: &Fp2) {
        let (a0, a1) = coefficients(a);
        let sum = residue::add::<P, 6>(&a0, &a1);
        let difference = residue::subtract::<P, 6>(&a0, &a1);
        let product = residue::multiply::<P, 6>(&a0, &a1);
        *to = extension(
            residue::multiply::<P, 6>(&sum, &difference),
            residue::add::<P, 6>(&product, &product),
        );
    }

    #[inline(always)]
    fn add(a: &mut Fp2, b: &Fp2) {
        let ((a0, a1), (b0, b1)) = (coefficients(a), coefficients(b));
        *a = extension(
            residue::add::<P, 6>(&a0, &b0),
            residue::add::<P, 6>(&a1, &b1),
        );
    }

    #[inline(always)]
    fn subtract(a: &mut Fp2, b: &Fp2) {
        let ((a0, a1), (b0, b1)) = (coefficients(a), coefficients(b));
        *a = extension(
            residue::subtract::<P, 6>(&a0, &b0),
            residue::subtract::<P, 6>(&a1, &b1),
        );
    }

    #[inline(always)]
    fn negate_if(a: &mut Fp2, negative: bool) {
        let (a0, a1) = coefficients(a);
        *a = extension(
            residue::negate_if::<P, 6>(&a0, negative),
            residue::negate_if::<P, 6>(&a1, negative),
        );
    }

    /// The conjugate over the norm, which is 0 only of 0.
    fn invert(a: &Fp2) -> Option<Fp2> {
        let (a0, a1) = coefficients(a);
        let norm = residue::sum_of_products::<P, 6, 2>([(&a0, &a0), (&a1, &a1)]);
        let inverse = residue::invert::<P, 6>(&norm)?;
        let minus_a1 = residue::negate::<P, 6>(&a1);
        Some(extension(
            residue::multiply::<P, 6>(&a0, &inverse),
            residue::multiply::<P, 6>(&minus_a1, &inverse),
        ))
    }
}
