//! Residues of blst, in words, and the same in limbs of four lanes.
//!
//! A *natural* number is limbs of 48 bits as integers without signs, as the words have them.
//! Invariant: what is written is below the modulus.

use std::arch::x86_64::*;

use super::LANES;
use super::field::{Field, centred, float, natural_limbs, reduced_bits, settled, transpose};
use super::limbs::{Base, LIMBS, Limbs};

/// A residue of blst.
pub(super) type Words = [u64; 6];

/// A number as points have it in files.
pub(super) type Encoded = [u8; 48];

/// The limbs of four natural numbers.
pub(super) type Natural = [__m256i; LIMBS];

/// The places of sixteen bytes in the other order.
const REVERSED: [u8; 16] = [15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0];

/// Loads four residues as natural numbers.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn load(rows: [&Words; LANES]) -> Natural {
    let low = rows.map(|row| bytemuck::cast([row[0], row[1], row[2], row[3]]));
    let high = rows.map(|row| bytemuck::cast([row[4], row[5]]));
    natural(low, high)
}

/// Loads four numbers that are encoded, the highest byte first.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn load_encoded(rows: [&Encoded; LANES]) -> Natural {
    let reversed = _mm256_broadcastsi128_si256(bytemuck::cast(REVERSED));
    let thirds = rows.map(|row| bytemuck::cast::<Encoded, [__m128i; 3]>(*row));
    let low =
        thirds.map(|[_, middle, low]| _mm256_shuffle_epi8(_mm256_set_m128i(middle, low), reversed));
    let high = thirds.map(|[high, ..]| _mm_shuffle_epi8(high, _mm256_castsi256_si128(reversed)));
    natural(low, high)
}

/// The limbs of four numbers whose lower four words and upper two words are given.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn natural(low: [__m256i; LANES], high: [__m128i; LANES]) -> Natural {
    let [w0, w1, w2, w3] = transpose(low);
    let even = _mm256_set_m128i(high[2], high[0]);
    let odd = _mm256_set_m128i(high[3], high[1]);
    let w4 = _mm256_unpacklo_epi64(even, odd);
    let w5 = _mm256_unpackhi_epi64(even, odd);
    let [l0, l1, l2, l3] = limbs_of([w0, w1, w2]);
    let [l4, l5, l6, l7] = limbs_of([w3, w4, w5]);
    [l0, l1, l2, l3, l4, l5, l6, l7]
}

/// Three words as four limbs.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn limbs_of([a, b, c]: [__m256i; 3]) -> [__m256i; 4] {
    let mask = _mm256_set1_epi64x(Base::MASK.cast_signed());
    let second = _mm256_or_si256(_mm256_srli_epi64::<48>(a), _mm256_slli_epi64::<16>(b));
    let third = _mm256_or_si256(_mm256_srli_epi64::<32>(b), _mm256_slli_epi64::<32>(c));
    [
        _mm256_and_si256(a, mask),
        _mm256_and_si256(second, mask),
        _mm256_and_si256(third, mask),
        _mm256_srli_epi64::<16>(c),
    ]
}

/// The limbs of `a − b`, below 2^48.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn difference(a: &Natural, b: &Natural) -> Limbs {
    std::array::from_fn(|i| float(_mm256_sub_epi64(a[i], b[i])))
}

/// The limbs of `±a − b`, below 2^49: minus in the lanes where `negative` has ones.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn signed_difference(a: &Natural, negative: __m256i, b: &Natural) -> Limbs {
    std::array::from_fn(|i| {
        let signed = _mm256_sub_epi64(_mm256_xor_si256(a[i], negative), negative);
        float(_mm256_sub_epi64(signed, b[i]))
    })
}

/// The limbs of `a + b`.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn sum(a: &Natural, b: &Natural) -> Limbs {
    std::array::from_fn(|i| float(_mm256_add_epi64(a[i], b[i])))
}

/// The limbs of a natural number, below 2^48.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn limbs(a: &Natural) -> Limbs {
    std::array::from_fn(|i| float(a[i]))
}

/// The bits that any limb of a number has.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn bits(numbers: &Natural) -> __m256i {
    let zero = _mm256_setzero_si256();
    (numbers.iter()).fold(zero, |bits, limb| _mm256_or_si256(bits, *limb))
}

/// Returns true if the numbers are below the modulus.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn are_residues(numbers: &Natural) -> bool {
    const MODULUS: [u64; LIMBS] = natural_limbs(&Base::WORDS, Base::BITS);
    let mut difference = _mm256_setzero_si256();
    for (number, modulus) in numbers.iter().zip(MODULUS) {
        let borrow = _mm256_srli_epi64::<63>(difference);
        let less = _mm256_sub_epi64(*number, _mm256_set1_epi64x(modulus.cast_signed()));
        difference = _mm256_sub_epi64(less, borrow);
    }
    _mm256_movemask_pd(_mm256_castsi256_pd(difference)) == 0b1111
}

/// Returns true if the numbers are multiples of the modulus. Limbs are below 2^51, and values
/// less than eight times the modulus away from zero.
///
/// Carried limbs are less than 2^48 away from zero. So zero has no limb that is not zero: the
/// lowest one is a multiple of 2^48, and then the next one.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn are_multiples(limbs: &Limbs) -> bool {
    let zero = _mm256_setzero_pd();
    let bits = |bits, limb| _mm256_or_pd(bits, _mm256_cmp_pd::<_CMP_NEQ_UQ>(limb, zero));
    _mm256_movemask_pd(
        centred::<Base, 6, LIMBS>(limbs)
            .into_iter()
            .fold(zero, bits),
    ) == 0
}

/// Four residues from limbs below 2^51 whose values are less than eight times the modulus away
/// from zero.
#[inline(never)]
#[target_feature(enable = "avx2,fma")]
pub(super) fn reduced(limbs: &Limbs) -> [Words; LANES] {
    let (bits, is_unsure) = reduced_bits::<Base, 6, LIMBS>(limbs);
    let [w0, w1, w2] = words_of([bits[0], bits[1], bits[2], bits[3]]);
    let [w3, w4, w5] = words_of([bits[4], bits[5], bits[6], bits[7]]);
    let low = transpose([w0, w1, w2, w3]);
    let even: [u64; 4] = bytemuck::cast(_mm256_unpacklo_epi64(w4, w5));
    let odd: [u64; 4] = bytemuck::cast(_mm256_unpackhi_epi64(w4, w5));
    let high = [
        [even[0], even[1]],
        [odd[0], odd[1]],
        [even[2], even[3]],
        [odd[2], odd[3]],
    ];
    let mut rows = [[0; 6]; LANES];
    for (row, (low, high)) in rows.iter_mut().zip(low.into_iter().zip(high)) {
        let low: [u64; 4] = bytemuck::cast(low);
        *row = [low[0], low[1], low[2], low[3], high[0], high[1]];
    }
    if is_unsure {
        return rows.map(settled::<Base, 6, LIMBS>);
    }
    rows
}

/// Four limbs, in the lower bits, as three words.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn words_of([a, b, c, d]: [__m256i; 4]) -> [__m256i; 3] {
    let mask = _mm256_set1_epi64x(Base::MASK.cast_signed());
    let second = _mm256_srli_epi64::<32>(_mm256_slli_epi64::<16>(b));
    let third = _mm256_srli_epi64::<48>(_mm256_slli_epi64::<16>(c));
    [
        _mm256_or_si256(_mm256_and_si256(a, mask), _mm256_slli_epi64::<48>(b)),
        _mm256_or_si256(second, _mm256_slli_epi64::<32>(c)),
        _mm256_or_si256(third, _mm256_slli_epi64::<16>(d)),
    ]
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::super::limbs::carried;
    use super::*;
    use crate::arithmetic::CHARACTERISTIC;

    /// Residues, many of them at the ends.
    fn residue() -> impl Strategy<Value = Words> {
        let near = |words: Words, by: u64| {
            let mut words = words;
            words[0] = words[0].wrapping_add(by);
            words
        };
        let random = prop::array::uniform6(any::<u64>()).prop_map(|mut words| {
            words[5] %= CHARACTERISTIC[5];
            words
        });
        prop_oneof![
            (0..3_u64).prop_map(move |by| near([0; 6], by)),
            (1..3_u64).prop_map(move |by| near(CHARACTERISTIC, by.wrapping_neg())),
            random,
        ]
    }

    /// The residues plus multiples of the modulus, reduced.
    #[target_feature(enable = "avx2,fma")]
    pub(in crate::avx2) fn check(residues: [Words; LANES], multiples: [i32; LANES]) {
        let natural = load(residues.each_ref());
        let multiples: __m256d = bytemuck::cast(multiples.map(f64::from));
        let added = limbs(&natural);
        let added = std::array::from_fn(|i| {
            _mm256_fmadd_pd(multiples, _mm256_set1_pd(Base::MODULUS[i]), added[i])
        });
        assert_eq!(reduced(&limbs(&natural)), residues);
        assert_eq!(reduced(&added), residues);
        let zero = load([&[0; 6]; LANES]);
        assert_eq!(reduced(&difference(&natural, &zero)), residues);
        assert_eq!(reduced(&sum(&zero, &natural)), residues);
        let all = _mm256_set1_epi64x(-1);
        assert_eq!(
            reduced(&signed_difference(&natural, all, &natural)),
            reduced(&zip_twice(&natural)),
        );
    }

    /// `−2·a`.
    #[target_feature(enable = "avx2,fma")]
    fn zip_twice(a: &Natural) -> Limbs {
        limbs(a).map(|limb| _mm256_mul_pd(limb, _mm256_set1_pd(-2.0)))
    }

    /// Numbers below 2^384 near a multiple of the modulus, with their difference to it.
    fn near_a_multiple() -> impl Strategy<Value = ([u64; 6], bool, bool)> {
        let bit = prop_oneof![Just(None), (0..381_usize).prop_map(Some)];
        (0..9_u64, bit, any::<bool>()).prop_map(|(multiple, bit, is_added)| {
            let mut value = times(CHARACTERISTIC, multiple);
            if let Some(bit) = bit {
                let mut power = [0; 6];
                power[bit / 64] = 1 << (bit % 64);
                value = sum_of(value, power, is_added || multiple == 0);
            }
            let is_residue = value.iter().rev().lt(CHARACTERISTIC.iter().rev());
            (value, bit.is_none(), is_residue)
        })
    }

    /// A few times a number.
    fn times(words: Words, factor: u64) -> Words {
        (0..factor).fold([0; 6], |product, _| sum_of(product, words, true))
    }

    /// The sum of two numbers, or their difference.
    fn sum_of(words: Words, by: Words, add: bool) -> Words {
        let (mut carry, mut sum) = (0_i128, [0; 6]);
        for i in 0..6 {
            let by = i128::from(by[i]);
            carry += i128::from(words[i]) + if add { by } else { -by };
            #[expect(clippy::cast_possible_truncation, reason = "that is the low word")]
            let word = carry as u64;
            sum[i] = word;
            carry >>= 64;
        }
        sum
    }

    /// Tells of a number in one lane, with zeros in the others, if it is a residue and a multiple.
    #[target_feature(enable = "avx2,fma")]
    pub(in crate::avx2) fn kinds(value: Words, lane: usize) -> [bool; 2] {
        let mut rows = [[0; 6]; LANES];
        rows[lane] = value;
        let bytes = rows.map(|row| {
            let mut bytes: Encoded = bytemuck::cast(row);
            bytes.reverse();
            bytes
        });
        let encoded = load_encoded(bytes.each_ref());
        for (limb, expected) in encoded.iter().zip(load(rows.each_ref())) {
            let [limb, expected]: [[u64; LANES]; 2] = [*limb, expected].map(bytemuck::cast);
            assert_eq!(limb, expected);
        }
        let limbs = limbs(&encoded);
        let negative = limbs.map(|limb| _mm256_sub_pd(_mm256_setzero_pd(), limb));
        assert_eq!(are_multiples(&limbs), are_multiples(&negative));
        assert_eq!(are_multiples(&limbs), are_multiples(&carried(&limbs)));
        [are_residues(&encoded), are_multiples(&limbs)]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn residues_and_multiples_are_told(
            (value, is_multiple, is_residue) in near_a_multiple(),
            lane in 0..LANES,
        ) {
            if let Some(token) = crate::testing::avx2() {
                prop_assert_eq!(crate::avx2::tests::kinds(token, value, lane), [is_residue, is_multiple]);
            }
        }

        #[test]
        fn residues_are_found_again(
            residues in prop::array::uniform4(residue()),
            multiples in prop::array::uniform4(-6..=6_i32),
        ) {
            if let Some(token) = crate::testing::avx2() {
                crate::avx2::tests::check_words(token, residues, multiples);
            }
        }
    }

    #[test]
    fn a_number_off_by_the_modulus_is_settled() {
        let one = [1, 0, 0, 0, 0, 0];
        for residue in [[0; 6], one, sum_of(CHARACTERISTIC, one, false)] {
            for words in [
                residue,
                sum_of(residue, CHARACTERISTIC, true),
                sum_of(residue, CHARACTERISTIC, false),
            ] {
                assert_eq!(settled::<Base, 6, LIMBS>(words), residue);
            }
        }
    }
}
