//! Scalars in limbs of 43 bits, four at a time.
//!
//! Six limbs have 258 bits, so Montgomery's radix is 2^258. Values of transforms are residues of
//! blst with radix 2^256. So a twiddle has four times its residue, and a product with it is a
//! residue of blst again. Columns begin at 1.5·2^95, where neighbours are 2^43 apart; else all
//! is as in [`limbs`](super::limbs). Limbs of 43 bits leave so much room that sums need no
//! carries within a pass of a transform.
//!
//! Invariant: limbs are below 2^49 where products are taken.

#![allow(unsafe_code)] // tests enter functions that enable the instructions

use std::arch::x86_64::*;

use super::assembly::{clear_low_scalars, product_scalars, reduce_high_scalars};
use super::limbs::{Column, Constants};
use super::words::{UNIT, float, transpose};
use super::{GROUPS, LANES};
use crate::arithmetic::GROUP_ORDER;

/// Limbs of a scalar.
pub(super) const LIMBS: usize = 6;

/// Bits of a limb.
const BITS: i32 = 43;

/// Columns of a product.
const COLUMNS: usize = 2 * LIMBS - 1;

/// The limbs of four scalars.
pub(super) type ScalarLimbs = [__m256d; LIMBS];

/// The columns of four products.
pub(super) type WideScalar = [Column; COLUMNS];

/// A residue of blst.
pub(super) type ScalarWords = [u64; 4];

/// 2^43.
const RADIX: f64 = (1_u64 << BITS) as f64;

/// 2^43 − 1.
const MASK: u64 = (1 << BITS) - 1;

/// The least high part of a column plus half its binade.
const START: f64 = 1.5 * (1_u128 << 95) as f64;

/// The limbs of the order, with signs.
const ORDER: [f64; LIMBS] = {
    let w = GROUP_ORDER;
    let limbs = [
        w[0] & MASK,
        (w[0] >> 43 | w[1] << 21) & MASK,
        (w[1] >> 22 | w[2] << 42) & MASK,
        w[2] >> 1 & MASK,
        (w[2] >> 44 | w[3] << 20) & MASK,
        w[3] >> 23,
    ];
    let (mut order, mut carry, mut i) = ([0.0; LIMBS], 0, 0);
    while i < LIMBS {
        let limb = limbs[i] + carry;
        carry = (limb >= 1 << (BITS - 1)) as u64;
        order[i] = (limb.cast_signed() - (carry << BITS).cast_signed()) as f64;
        i += 1;
    }
    order
};

/// The constants that the assembly reads. The order is 1 − 2^32 modulo 2^43, so −1 / order is
/// −1 − 2^32.
pub(super) static SCALAR_CONSTANTS: Constants = {
    let mut modulus = [[0.0; 4]; 8];
    let mut i = 0;
    while i < LIMBS {
        modulus[i] = [ORDER[i]; 4];
        i += 1;
    }
    Constants {
        modulus,
        negative_inverse: [-1.0 - (1_u64 << 32) as f64; 4],
        start: [START; 4],
        radix_inverse: [1.0 / RADIX; 4],
    }
};

/// Columns in which products are reduced, of no meaning between two of them.
pub(super) struct ScalarWork(pub(super) [WideScalar; GROUPS]);

impl ScalarWork {
    #[target_feature(enable = "avx2,fma")]
    pub(super) fn new() -> Self {
        let zero = _mm256_setzero_pd();
        let column = Column {
            high: zero,
            low: zero,
        };
        Self([[column; COLUMNS]; GROUPS])
    }
}

/// Brings limbs, which are below 2^52, to 2^42 and at most 512 more, all but the last.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn carried(limbs: &ScalarLimbs) -> ScalarLimbs {
    let start = _mm256_set1_pd(START);
    let radix_inverse = _mm256_set1_pd(1.0 / RADIX);
    let mut carried = *limbs;
    for i in 0..LIMBS - 1 {
        // Rounds to a multiple of 2^43.
        let over = _mm256_sub_pd(_mm256_add_pd(limbs[i], start), start);
        carried[i] = _mm256_sub_pd(carried[i], over);
        carried[i + 1] = _mm256_fmadd_pd(over, radix_inverse, carried[i + 1]);
    }
    carried
}

/// Loads four residues, whose limbs are below 2^43.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn load(rows: [&ScalarWords; LANES]) -> ScalarLimbs {
    let mask = _mm256_set1_epi64x(MASK.cast_signed());
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

/// The value over the order.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn quotient(limbs: &ScalarLimbs) -> __m256d {
    const LAST: f64 = 1.0 / ORDER[LIMBS - 1];
    let quotient = _mm256_mul_pd(limbs[LIMBS - 1], _mm256_set1_pd(LAST));
    _mm256_fmadd_pd(limbs[LIMBS - 2], _mm256_set1_pd(LAST / RADIX), quotient)
}

/// Brings a value to at most 0.51 of the order away from zero, and carries its limbs, which are
/// below 2^50.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn centred(limbs: &ScalarLimbs) -> ScalarLimbs {
    let quotient =
        _mm256_round_pd::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(quotient(limbs));
    let rest =
        std::array::from_fn(|i| _mm256_fnmadd_pd(quotient, _mm256_set1_pd(ORDER[i]), limbs[i]));
    carried(&rest)
}

/// Four residues of values with limbs below 2^50.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn reduced(limbs: &ScalarLimbs) -> [ScalarWords; LANES] {
    const UNIT_HIGH: u64 = UNIT.to_bits() >> BITS;
    let quotient = _mm256_floor_pd(quotient(limbs));
    let mut bits = [_mm256_setzero_si256(); LIMBS];
    let mut carry = _mm256_set1_epi64x(UNIT_HIGH.cast_signed());
    // The high bits of the limb before are its carry, and those of `UNIT`, which are taken off
    // here.
    let unit = _mm256_set1_pd(UNIT - UNIT_HIGH as f64);
    for i in 0..LIMBS {
        let limb = _mm256_fnmadd_pd(quotient, _mm256_set1_pd(ORDER[i]), limbs[i]);
        let limb = _mm256_castpd_si256(_mm256_add_pd(limb, unit));
        bits[i] = _mm256_add_epi64(limb, carry);
        carry = _mm256_srli_epi64::<BITS>(bits[i]);
    }
    let rows = transpose(words_of(&bits)).map(bytemuck::cast);
    // The last limb of the order, or above, or below zero.
    let unit = _mm256_set1_epi64x(UNIT.to_bits().cast_signed());
    let last = _mm256_sub_epi64(bits[LIMBS - 1], unit);
    let most = _mm256_set1_epi64x((GROUP_ORDER[3] >> 23).cast_signed() - 1);
    let unsure = _mm256_or_si256(_mm256_cmpgt_epi64(last, most), last);
    if _mm256_movemask_pd(_mm256_castsi256_pd(unsure)) != 0 {
        return rows.map(settled);
    }
    rows
}

/// Limbs, in the lower bits, as words.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn words_of([a, b, c, d, e, f]: &[__m256i; LIMBS]) -> [__m256i; 4] {
    let mask = _mm256_set1_epi64x(MASK.cast_signed());
    let [a, b, c_low, d, e_low] = [*a, *b, *c, *d, *e].map(|limb| _mm256_and_si256(limb, mask));
    let third = _mm256_or_si256(_mm256_srli_epi64::<42>(c_low), _mm256_slli_epi64::<1>(d));
    [
        _mm256_or_si256(a, _mm256_slli_epi64::<43>(b)),
        _mm256_or_si256(_mm256_srli_epi64::<21>(b), _mm256_slli_epi64::<22>(*c)),
        _mm256_or_si256(third, _mm256_slli_epi64::<44>(*e)),
        _mm256_or_si256(_mm256_srli_epi64::<20>(e_low), _mm256_slli_epi64::<23>(*f)),
    ]
}

/// Brings a number to a residue that is below zero, or the order or more, by a little.
#[cold]
#[inline(never)]
fn settled(words: ScalarWords) -> ScalarWords {
    let is_negative = words[3] >> 63 != 0;
    let mut moved = words;
    let mut carry = false;
    for (word, order) in moved.iter_mut().zip(GROUP_ORDER) {
        let (first, second);
        if is_negative {
            (*word, first) = word.overflowing_add(order);
            (*word, second) = word.overflowing_add(u64::from(carry));
        } else {
            (*word, first) = word.overflowing_sub(order);
            (*word, second) = word.overflowing_sub(u64::from(carry));
        }
        carry = first | second;
    }
    if is_negative || !carry { moved } else { words }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Avx2;
    use super::*;

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
    fn check(residues: [ScalarWords; LANES], multiples: [i32; LANES]) {
        let natural = load(residues.each_ref());
        let multiples: __m256d = bytemuck::cast(multiples.map(f64::from));
        let added: ScalarLimbs = std::array::from_fn(|i| {
            _mm256_fmadd_pd(multiples, _mm256_set1_pd(ORDER[i]), natural[i])
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
            assert!(limb.abs() <= RADIX / 2.0 + 512.0);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn residues_are_found_again(
            residues in prop::array::uniform4(residue()),
            multiples in prop::array::uniform4(-60..=60_i32),
        ) {
            if Avx2::detect().is_some() {
                // SAFETY: the processor has the instructions.
                unsafe { check(residues, multiples) }
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
        assert_eq!(settled([0; 4]), [0; 4]);
        assert_eq!(settled(GROUP_ORDER), [0; 4]);
        assert_eq!(settled(above), [1, 0, 0, 0]);
        assert_eq!(settled(below), below);
        assert_eq!(settled([u64::MAX; 4]), below);
    }
}
