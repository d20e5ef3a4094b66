//! Arithmetic in the three fields of BLS12-381, one element at a time.
//!
//! The kernels that compute one element after the other are written once, over an
//! [`Arithmetic`]: blst's assembly, or plain Rust. Both work on blstrs' values as they are:
//! in Montgomery form, with radix 2^256 in the scalar field and 2^384 in the base field.
//! They give equal words, so each can go on with the results of the other. Work that is
//! done once, and not for each element, uses blstrs itself. Examples are roots of unity,
//! the last additions of a few points, and checks of single points.

mod blst;
mod portable;
mod residue;

pub(crate) use blst::Blst;
pub(crate) use portable::{Portable, sum_and_difference};

use blstrs::{Fp, Fp2, Scalar};

#[cfg(target_arch = "x86_64")]
use self::{
    portable::{P, R},
    residue::Modulus,
};
use crate::isa::Isa;

/// The order of the groups, in words.
#[cfg(target_arch = "x86_64")]
pub(crate) const GROUP_ORDER: [u64; 4] = <R as Modulus<4>>::WORDS;

/// The characteristic of the curve's field, in words.
#[cfg(target_arch = "x86_64")]
pub(crate) const CHARACTERISTIC: [u64; 6] = <P as Modulus<6>>::WORDS;

/// 2^768 modulo [`CHARACTERISTIC`]. Montgomery's product of a number and this is the number's
/// Montgomery form.
#[cfg(target_arch = "x86_64")]
pub(crate) const BASE_RADIX_SQUARED: [u64; 6] = <P as Modulus<6>>::RADIX_SQUARED;

/// Operations on elements of a field, in place where it matters. A copy of a result of blst
/// that is still on its way to memory stalls the processor.
pub(crate) trait Operations<F> {
    /// `a *= b`.
    fn multiply(a: &mut F, b: &F);
    /// `to = a²`.
    fn square(to: &mut F, a: &F);
    /// `a += b`.
    fn add(a: &mut F, b: &F);
    /// `a -= b`.
    fn subtract(a: &mut F, b: &F);
    /// `a = −a` if `negative`, without a branch.
    fn negate_if(a: &mut F, negative: bool);
    /// `1 / a`, if a is not 0.
    fn invert(a: &F) -> Option<F>;
}

/// Operations on elements of every field.
pub(crate) trait Arithmetic:
    Operations<Scalar> + Operations<Fp> + Operations<Fp2> + Copy + Send + Sync
{
    /// The instructions it uses.
    const ISA: Isa;
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use ::blst::{blst_fp, blst_fr};
    use proptest::prelude::*;

    use super::residue::Modulus;
    use super::*;

    /// Words of residues, many of which carry or borrow as far as they can.
    fn words<M: Modulus<N>, const N: usize>() -> impl Strategy<Value = [u64; N]> {
        let kinds = prop::array::uniform32((0..8_usize, any::<u64>()));
        kinds.prop_map(|kinds| {
            let mut words = [0; N];
            for (i, word) in words.iter_mut().enumerate() {
                let (kind, random) = kinds[i];
                let modulus = M::WORDS[i];
                let edges = [0, 1, u64::MAX, u64::MAX - 1, modulus, modulus - 1];
                *word = edges.get(kind).copied().unwrap_or(random);
            }
            if words.iter().rev().ge(M::WORDS.iter().rev()) {
                words[N - 1] %= M::WORDS[N - 1];
            }
            words
        })
    }

    fn scalar() -> impl Strategy<Value = Scalar> {
        words::<portable::R, 4>().prop_map(|l| blst_fr { l }.into())
    }

    fn fp() -> impl Strategy<Value = Fp> {
        words::<portable::P, 6>().prop_map(|l| blst_fp { l }.into())
    }

    fn fp2() -> impl Strategy<Value = Fp2> {
        (fp(), fp()).prop_map(|(c0, c1)| Fp2::new(c0, c1))
    }

    /// The results of every operation.
    fn results<A: Operations<F>, F: Copy>(a: F, b: F) -> ([F; 6], Option<F>) {
        let operations: [fn(&mut F, &F); 6] = [
            A::multiply,
            A::square,
            A::add,
            A::subtract,
            |a, _| A::negate_if(a, true),
            |a, _| A::negate_if(a, false),
        ];
        let results = operations.map(|operation| {
            let mut result = a;
            operation(&mut result, &b);
            result
        });
        (results, A::invert(&a))
    }

    fn check<F: Copy + PartialEq + Debug>(a: F, b: F)
    where
        Blst: Operations<F>,
        Portable: Operations<F>,
    {
        for (a, b) in [(a, b), (b, a), (a, a)] {
            assert_eq!(results::<Portable, F>(a, b), results::<Blst, F>(a, b));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn sums_and_differences_are_blsts((a, b) in (scalar(), scalar())) {
            for (a, b) in [(a, b), (b, a), (a, a), (a, -a)] {
                let (mut sum, mut difference) = (a, b);
                sum_and_difference(&mut sum, &mut difference);
                assert_eq!((sum, difference), (a + b, a - b));
            }
        }

        #[test]
        fn scalars_are_blsts((a, b) in (scalar(), scalar())) {
            check(a, b);
        }

        #[test]
        fn coordinates_in_g1_are_blsts((a, b) in (fp(), fp())) {
            check(a, b);
        }

        #[test]
        fn coordinates_in_g2_are_blsts((a, b) in (fp2(), fp2())) {
            check(a, b);
        }
    }

    /// Every pair of 0, 1, 2, their opposites, and ½.
    #[test]
    fn small_values_are_blsts() {
        fn each<F: ff::Field>()
        where
            Blst: Operations<F>,
            Portable: Operations<F>,
        {
            let two = F::ONE.double();
            let half = two.invert().unwrap();
            let values = [F::ZERO, F::ONE, two, -F::ONE, -two, half];
            for a in values {
                values.iter().for_each(|b| check(a, *b));
            }
        }
        each::<Scalar>();
        each::<Fp>();
        each::<Fp2>();
    }
}
