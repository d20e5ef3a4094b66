//! Scalars in limbs of 43 bits, four at a time.
//!
//! Six limbs have 258 bits, so Montgomery's radix is 2^258. Values of transforms are residues of
//! blst with radix 2^256. So a twiddle has four times its residue, and a product with it is a
//! residue of blst again. Columns begin at 1.5·2^95, where neighbours are 2^43 apart; else all
//! is as in [`limbs`](super::limbs). Limbs of 43 bits leave so much room that sums need no
//! carries within a pass of a transform.
//!
//! Invariant: limbs are below 2^49 where products are taken.

use std::arch::x86_64::*;

use super::assembly::{clear_low_scalars, product_scalars, reduce_high_scalars};
use super::field::{self, Field as _, float, transpose};
use super::scalar_limbs::{LIMBS, Order};
pub(super) use super::scalar_limbs::{ScalarLimbs, ScalarWords, ScalarWork};
use super::{GROUPS, LANES};

/// Brings limbs, which are below 2^52, to 2^42 and at most 512 more, all but the last.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn carried(limbs: &ScalarLimbs) -> ScalarLimbs {
    field::carried::<Order, 4, LIMBS>(limbs)
}

/// Loads four residues, whose limbs are below 2^43.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn load(rows: [&ScalarWords; LANES]) -> ScalarLimbs {
    let mask = _mm256_set1_epi64x(Order::MASK.cast_signed());
    let [w0, w1, w2, w3] = transpose(rows.map(|row| bytemuck::cast(*row)));
    let second = _mm256_or_si256(_mm256_srli_epi64::<43>(w0), _mm256_slli_epi64::<21>(w1));
    let third = _mm256_or_si256(_mm256_srli_epi64::<22>(w1), _mm256_slli_epi64::<42>(w2));
    let fifth = _mm256_or_si256(_mm256_srli_epi64::<44>(w2), _mm256_slli_epi64::<20>(w3));
    [
        float(_mm256_and_si256(w0, mask)),
        float(_mm256_and_si256(second, mask)),
        float(_mm256_and_si256(third, mask)),
        float(_mm256_and_si256(_mm256_srli_epi64::<1>(w2), mask)),
        float(_mm256_and_si256(fifth, mask)),
        float(_mm256_srli_epi64::<23>(w3)),
    ]
}

/// Loads four twiddles: four times the residues, carried and less than the order away from zero.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn load_twiddles(rows: [&ScalarWords; LANES]) -> ScalarLimbs {
    let four = _mm256_set1_pd(4.0);
    centred(&load(rows).map(|limb| _mm256_mul_pd(limb, four)))
}

/// Replaces four rows, whose limbs are below 2^49, by their products with twiddles, carried. A
/// product is at most 0.6 of the order and a ninth of its factor.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn multiply(
    rows: &mut [ScalarLimbs; GROUPS],
    twiddles: [&ScalarLimbs; GROUPS],
    work: &mut ScalarWork,
) {
    for ((row, twiddles), columns) in rows.iter().zip(twiddles).zip(&mut work.0) {
        product_scalars(row, twiddles, columns);
    }
    clear_low_scalars(&mut work.0);
    for (row, columns) in rows.iter_mut().zip(&work.0) {
        reduce_high_scalars(columns, row);
        *row = carried(row);
    }
}

/// Brings a value to at most 0.51 of the order away from zero, and carries its limbs, which are
/// below 2^50.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn centred(limbs: &ScalarLimbs) -> ScalarLimbs {
    field::centred::<Order, 4, LIMBS>(limbs)
}

/// Four residues of values with limbs below 2^50.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn reduced(limbs: &ScalarLimbs) -> [ScalarWords; LANES] {
    let (bits, is_unsure) = field::reduced_bits::<Order, 4, LIMBS>(limbs);
    let rows = transpose(words_of(&bits)).map(bytemuck::cast);
    if is_unsure {
        return rows.map(field::settled::<Order, 4, LIMBS>);
    }
    rows
}

/// Limbs, in the lower bits, as words.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn words_of([a, b, c, d, e, f]: &[__m256i; LIMBS]) -> [__m256i; 4] {
    let mask = _mm256_set1_epi64x(Order::MASK.cast_signed());
    let [a, b, c_low, d, e_low] = [*a, *b, *c, *d, *e].map(|limb| _mm256_and_si256(limb, mask));
    let third = _mm256_or_si256(_mm256_srli_epi64::<42>(c_low), _mm256_slli_epi64::<1>(d));
    [
        _mm256_or_si256(a, _mm256_slli_epi64::<43>(b)),
        _mm256_or_si256(_mm256_srli_epi64::<21>(b), _mm256_slli_epi64::<22>(*c)),
        _mm256_or_si256(third, _mm256_slli_epi64::<44>(*e)),
        _mm256_or_si256(_mm256_srli_epi64::<20>(e_low), _mm256_slli_epi64::<23>(*f)),
    ]
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::arithmetic::GROUP_ORDER;

    /// Residues, many of them at the ends.
    fn residue() -> impl Strategy<Value = ScalarWords> {
        let near =
            |words: ScalarWords, by: u64| [words[0].wrapping_add(by), words[1], words[2], words[3]];
        let random = prop::array::uniform4(any::<u64>()).prop_map(|mut words| {
            words[3] %= GROUP_ORDER[3];
            words
        });
        prop_oneof![
            (0..3_u64).prop_map(move |by| near([0; 4], by)),
            (1..2_u64).prop_map(move |by| near(GROUP_ORDER, by.wrapping_neg())),
            random,
        ]
    }

    /// The residues plus multiples of the order.
    #[target_feature(enable = "avx2,fma")]
    pub(in crate::avx2) fn check(residues: [ScalarWords; LANES], multiples: [i32; LANES]) {
        let natural = load(residues.each_ref());
        let multiples: __m256d = bytemuck::cast(multiples.map(f64::from));
        let added: ScalarLimbs = std::array::from_fn(|i| {
            _mm256_fmadd_pd(multiples, _mm256_set1_pd(Order::MODULUS[i]), natural[i])
        });
        assert_eq!(reduced(&natural), residues);
        assert_eq!(reduced(&added), residues);
        assert_eq!(reduced(&carried(&added)), residues);
        assert_eq!(reduced(&centred(&added)), residues);
        let twiddles = load_twiddles(residues.each_ref());
        let four_times = natural.map(|limb| _mm256_mul_pd(limb, _mm256_set1_pd(4.0)));
        assert_eq!(reduced(&twiddles), reduced(&four_times));
        for limb in twiddles
            .map(bytemuck::cast::<_, [f64; LANES]>)
            .as_flattened()
        {
            assert!(limb.abs() <= Order::RADIX / 2.0 + 512.0);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn residues_are_found_again(
            residues in prop::array::uniform4(residue()),
            multiples in prop::array::uniform4(-60..=60_i32),
        ) {
            if let Some(token) = crate::testing::avx2() {
                crate::avx2::tests::check_scalars(token, residues, multiples);
            }
        }
    }

    #[test]
    fn a_number_off_by_the_order_is_settled() {
        let below = [
            GROUP_ORDER[0] - 1,
            GROUP_ORDER[1],
            GROUP_ORDER[2],
            GROUP_ORDER[3],
        ];
        let above = [
            GROUP_ORDER[0] + 1,
            GROUP_ORDER[1],
            GROUP_ORDER[2],
            GROUP_ORDER[3],
        ];
        let settled = field::settled::<Order, 4, LIMBS>;
        assert_eq!(settled([0; 4]), [0; 4]);
        assert_eq!(settled(GROUP_ORDER), [0; 4]);
        assert_eq!(settled(above), [1, 0, 0, 0]);
        assert_eq!(settled(below), below);
        assert_eq!(settled([u64::MAX; 4]), below);
    }
}
