//! The scalar field of BLS12-381, eight elements at a time.
//!
//! In memory scalars stay as blst has them, with radix 2^256. This module has the radix
//! 2^260. A factor that is 16 times as large makes up for the difference: the product with
//! it is in blst's form again. Tables of factors are kept in that form.
//!
//! Values may be up to 35 r, and between products their limbs need not be
//! carried.

use std::arch::x86_64::*;

use blstrs::Scalar;
use cuzk_memory::{view, views, views_mut};

use super::Ifma;
use super::element::{Element, Modulus, carry, splat, sub};
use super::lanes::{LANES, LIMB_MASK, read_half, to_limbs, write_half};
use super::wide::{multiply_add, reduce_wide, square_columns};
use crate::arithmetic::GROUP_ORDER;

/// A scalar in memory: blst's words.
pub(crate) type Words = [u64; 4];

/// The scalar field.
#[derive(Clone, Copy)]
pub(crate) struct R;

impl Modulus<5> for R {
    const LIMBS: [u64; 5] = to_limbs(&GROUP_ORDER);
    const NEGATIVE_INVERSE: u64 = 0xf_fffe_ffff_ffff;
}

/// Eight elements of the scalar field.
pub(crate) type Fr = Element<R, 5>;

/// The words of scalars.
pub(crate) fn words(scalars: &[Scalar]) -> &[Words] {
    views(scalars)
}

/// The words of a scalar.
pub(crate) fn word(scalar: &Scalar) -> &Words {
    view(scalar)
}

/// Returns the words of scalars for writing. Written values must be below r.
pub(crate) fn words_mut(scalars: &mut [Scalar]) -> &mut [Words] {
    views_mut(scalars)
}

impl Fr {
    /// One scalar in every lane.
    #[inline(always)]
    pub(in crate::ifma) fn broadcast(token: Ifma, words: &Words) -> Fr {
        Fr::splat(token, to_limbs(words))
    }

    /// One scalar a lane.
    #[inline(always)]
    pub(in crate::ifma) fn gather(token: Ifma, from: [&Words; LANES]) -> Fr {
        Fr::from_limbs(token, super::gather(token, from))
    }

    /// The scalars of the lanes, fully reduced; the value is below 32 r.
    #[inline(always)]
    pub(in crate::ifma) fn scatter(&self, to: [&mut Words; LANES]) {
        self.scatter_below::<true>(to);
    }

    /// The scalars of the lanes: below r if `REDUCED`, and below 1.01 r if not, for words that
    /// this module reads again. The value is below 32 r.
    #[inline(always)]
    pub(in crate::ifma) fn scatter_below<const REDUCED: bool>(&self, to: [&mut Words; LANES]) {
        super::scatter::<REDUCED>(self.token(), self.reduce().limbs, to);
    }

    /// The product, with limbs not carried: below r + ab / 2^260.
    #[inline(always)]
    pub(in crate::ifma) fn mul_lazy(&self, factor: &Fr) -> Fr {
        self.with(super::scalar_product(
            self.token(),
            &self.limbs,
            &factor.limbs,
        ))
    }

    /// Montgomery square: below r + a² / 2^260.
    #[inline(always)]
    pub(in crate::ifma) fn square(&self) -> Fr {
        self.with(super::scalar_square(self.token(), &self.limbs))
    }

    /// Returns the value with limbs carried.
    #[inline(always)]
    pub(in crate::ifma) fn carried(&self) -> Fr {
        self.with(super::carry(self.token(), self.limbs))
    }

    /// `self + other`, limbs not carried.
    #[inline(always)]
    pub(in crate::ifma) fn add_lazy(&self, other: &Fr) -> Fr {
        self.with(super::add(self.token(), &self.limbs, &other.limbs))
    }

    /// `self − other + K·r`, limbs not carried.
    #[inline(always)]
    pub(in crate::ifma) fn sub_lazy<const K: u64>(&self, other: &Fr) -> Fr {
        let limbs = super::sub_plus_multiple::<K>(self.token(), &self.limbs, &other.limbs);
        self.with(limbs)
    }

    /// Subtracts the multiple of r that leaves a value in [0, 1.01 r), of one
    /// below 32 r; carries.
    #[inline(always)]
    pub(in crate::ifma) fn reduce(&self) -> Fr {
        self.with(super::scalar_reduce(self.token(), self.limbs))
    }

    /// The scalars of the lanes, fully reduced; the value is below 2 r, and its
    /// limbs are carried.
    #[inline(always)]
    pub(in crate::ifma) fn scatter_below_2r(&self, to: [&mut Words; LANES]) {
        super::scatter::<true>(self.token(), self.limbs, to);
    }

    /// Returns Σ `elements[i]` · `factors[i]`, limbs not carried. The elements are below 31
    /// r and have carried limbs. There are at most 35 of them, so that the result stays
    /// below 32 r and can be reduced.
    #[inline(always)]
    pub(in crate::ifma) fn dot(token: Ifma, elements: &[Fr], factors: &[[u64; 5]]) -> Fr {
        Fr::dot2(token, (elements, factors), (&[], &[]))
    }

    /// The sum of two such sums.
    #[inline(always)]
    pub(in crate::ifma) fn dot2(
        token: Ifma,
        first: (&[Fr], &[[u64; 5]]),
        second: (&[Fr], &[[u64; 5]]),
    ) -> Fr {
        Fr::from_limbs(token, super::sum_of_products(token, first, second))
    }

    /// Four times the value, which is below 8 r.
    #[inline(always)]
    pub(in crate::ifma) fn times_4(&self) -> Fr {
        self.with(super::shift_carried::<2, 5>(self.token(), self.limbs))
    }

    /// Sixteen times the value, which is below 2 r.
    #[inline(always)]
    pub(in crate::ifma) fn times_16(&self) -> Fr {
        self.with(super::shift_carried::<4, 5>(self.token(), self.limbs))
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(in crate::ifma) fn sub_plus_multiple<const K: u64>(
    a: &[__m512i; 5],
    b: &[__m512i; 5],
) -> [__m512i; 5] {
    let multiple = super::element::multiple(&R::LIMBS, K);
    std::array::from_fn(|i| {
        let plus = _mm512_add_epi64(a[i], _mm512_set1_epi64(multiple[i].cast_signed()));
        _mm512_sub_epi64(plus, b[i])
    })
}

#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
pub(in crate::ifma) fn sum_of_products(
    first: (&[Fr], &[[u64; 5]]),
    second: (&[Fr], &[[u64; 5]]),
) -> [__m512i; 5] {
    let mut wide = [[_mm512_setzero_si512(); 5]; 2];
    for (element, factor) in first.0.iter().zip(first.1) {
        wide = multiply_add(wide, &element.limbs, factor);
    }
    for (element, factor) in second.0.iter().zip(second.1) {
        wide = multiply_add(wide, &element.limbs, factor);
    }
    reduce_wide::<R, 5>(wide)
}

/// Barrett's estimate of the quotient by r from the last limb: too small by
/// at most one part in 2^20 of r.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
pub(in crate::ifma) fn reduce(limbs: [__m512i; 5]) -> [__m512i; 5] {
    /// 2^58 · 2^228 / r, below 2^32.
    const RECIPROCAL: u64 = {
        let top = (GROUP_ORDER[3] >> 36) + 1; // r / 2^228, rounded up
        (1 << 58) / top
    };
    let top = _mm512_srli_epi64::<20>(limbs[4]);
    let reciprocal = _mm512_set1_epi64(RECIPROCAL.cast_signed());
    let quotient = _mm512_srli_epi64::<58>(_mm512_mul_epu32(top, reciprocal));
    let mut difference = limbs;
    for i in 0..5 {
        let r = _mm512_set1_epi64(R::LIMBS[i].cast_signed());
        let zero = _mm512_setzero_si512();
        let low = _mm512_madd52lo_epu64(zero, quotient, r);
        difference[i] = _mm512_sub_epi64(difference[i], low);
        if i + 1 < 5 {
            let high = _mm512_madd52hi_epu64(zero, quotient, r);
            difference[i + 1] = _mm512_sub_epi64(difference[i + 1], high);
        }
    }
    carry(difference)
}

/// Subtracts r where the value is at least r.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
pub(in crate::ifma) fn subtract_once(limbs: [__m512i; 5]) -> [__m512i; 5] {
    let difference = carry(sub(&limbs, &splat(&R::LIMBS)));
    let negative = _mm512_movepi64_mask(difference[4]);
    std::array::from_fn(|i| _mm512_mask_mov_epi64(difference[i], negative, limbs[i]))
}

/// Scalars to limbs, one a lane. (The order of the lanes is this function's
/// and [`from_lanes`]' own.)
#[inline]
#[target_feature(enable = "avx512f,avx512vbmi2")]
pub(in crate::ifma) fn to_lanes(from: [&Words; LANES]) -> [__m512i; 5] {
    let pair = |i: usize| {
        let (low, high) = (read_half(from[i]), read_half(from[i + 1]));
        _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high)
    };
    let (p, q, s, t) = (pair(0), pair(2), pair(4), pair(6));
    let even = [_mm512_unpacklo_epi64(p, q), _mm512_unpacklo_epi64(s, t)];
    let odd = [_mm512_unpackhi_epi64(p, q), _mm512_unpackhi_epi64(s, t)];
    let [w0, w2] = join_chunks(even);
    let [w1, w3] = join_chunks(odd);
    let mask = _mm512_set1_epi64(LIMB_MASK.cast_signed());
    [
        _mm512_and_si512(w0, mask),
        _mm512_and_si512(_mm512_shrdi_epi64::<52>(w0, w1), mask),
        _mm512_and_si512(_mm512_shrdi_epi64::<40>(w1, w2), mask),
        _mm512_and_si512(_mm512_shrdi_epi64::<28>(w2, w3), mask),
        _mm512_srli_epi64::<16>(w3),
    ]
}

/// Limbs to scalars: the inverse of [`to_lanes`].
#[inline]
#[target_feature(enable = "avx512f,avx512vbmi2")]
pub(in crate::ifma) fn from_lanes(limbs: [__m512i; 5], mut to: [&mut Words; LANES]) {
    let [a, b, c, d, e] = limbs;
    let w0 = _mm512_or_si512(a, _mm512_slli_epi64::<52>(b));
    let w1 = _mm512_or_si512(_mm512_srli_epi64::<12>(b), _mm512_slli_epi64::<40>(c));
    let w2 = _mm512_or_si512(_mm512_srli_epi64::<24>(c), _mm512_slli_epi64::<28>(d));
    let w3 = _mm512_or_si512(_mm512_srli_epi64::<36>(d), _mm512_slli_epi64::<16>(e));
    let [even_low, even_high] = split_chunks([w0, w2]);
    let [odd_low, odd_high] = split_chunks([w1, w3]);
    let pairs = [
        _mm512_unpacklo_epi64(even_low, odd_low),
        _mm512_unpackhi_epi64(even_low, odd_low),
        _mm512_unpacklo_epi64(even_high, odd_high),
        _mm512_unpackhi_epi64(even_high, odd_high),
    ];
    for (pair, to) in pairs.into_iter().zip(to.as_chunks_mut::<2>().0) {
        write_half(_mm512_castsi512_si256(pair), to[0]);
        write_half(_mm512_extracti64x4_epi64::<1>(pair), to[1]);
    }
}

/// Even and odd 128-bit chunks of two registers.
#[inline]
#[target_feature(enable = "avx512f")]
fn join_chunks([low, high]: [__m512i; 2]) -> [__m512i; 2] {
    [
        _mm512_shuffle_i64x2::<0b10_00_10_00>(low, high),
        _mm512_shuffle_i64x2::<0b11_01_11_01>(low, high),
    ]
}

/// The inverse of [`join_chunks`].
#[inline]
#[target_feature(enable = "avx512f")]
fn split_chunks([even, odd]: [__m512i; 2]) -> [__m512i; 2] {
    let low = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
    let high = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
    [
        _mm512_permutex2var_epi64(even, low, odd),
        _mm512_permutex2var_epi64(even, high, odd),
    ]
}

/// Not inlined: it is long, and its operand comes from memory anyway.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512ifma")]
pub(in crate::ifma) fn square(a: &[__m512i; 5]) -> [__m512i; 5] {
    carry(square_columns::<R, 5>(a))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ff::Field;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    fn random() -> [Scalar; LANES] {
        let mut rng = ChaCha8Rng::seed_from_u64(11);
        let mut scalars: [Scalar; LANES] = std::array::from_fn(|_| Scalar::random(&mut rng));
        scalars[0] = Scalar::ZERO;
        scalars[1] = -Scalar::ONE;
        scalars
    }

    fn load(token: Ifma, scalars: &[Scalar; LANES]) -> Fr {
        Fr::gather(token, std::array::from_fn(|i| &words(scalars)[i]))
    }

    fn store(value: &Fr) -> [Scalar; LANES] {
        let mut scalars = [Scalar::ZERO; LANES];
        let (rows, _) = words_mut(&mut scalars).as_chunks_mut::<LANES>();
        value.scatter(rows[0].each_mut());
        scalars
    }

    #[test]
    fn lanes_come_back_reduced() {
        let Some(token) = crate::testing::token() else {
            return;
        };
        let scalars = random();
        let value = load(token, &scalars);
        assert_eq!(store(&value), scalars);
        let zero = Fr::splat(token, [0; 5]);
        assert_eq!(store(&value.sub_lazy::<30>(&zero)), scalars);
        assert_eq!(store(&zero.sub_lazy::<31>(&zero)), [Scalar::ZERO; LANES]);
    }

    #[test]
    fn operations_agree_with_blst() {
        let Some(token) = crate::testing::token() else {
            return;
        };
        let (a, mut b) = (random(), random());
        b.rotate_left(3);
        let (x, y) = (load(token, &a), load(token, &b));
        let pairwise = |f: fn(Scalar, Scalar) -> Scalar| std::array::from_fn(|i| f(a[i], b[i]));
        assert_eq!(store(&x.add_lazy(&y)), pairwise(|a, b| a + b));
        assert_eq!(store(&x.sub_lazy::<2>(&y)), pairwise(|a, b| a - b));
        assert_eq!(store(&x.mul_lazy(&y.times_16())), pairwise(|a, b| a * b));
    }
}
