//! Montgomery arithmetic on eight elements of a prime field.
//!
//! Values are kept loosely reduced: below a small multiple of the modulus,
//! with limbs of 52 bits. The radix leaves enough room above the modulus that
//! products of loose values are again below it, but for a vanishing excess.

use std::arch::x86_64::*;
use std::marker::PhantomData;

use super::Ifma;
use super::lanes::{LIMB_BITS, LIMB_MASK, read};

/// A prime field whose elements have N limbs, 5 ≤ N ≤ 8.
pub(crate) trait Modulus<const N: usize>: Copy {
    /// The modulus.
    const LIMBS: [u64; N];
    /// −1 / modulus, modulo 2^52.
    const NEGATIVE_INVERSE: u64;
}

/// Eight elements of the field M.
#[derive(Clone, Copy)]
pub(crate) struct Element<M, const N: usize> {
    pub(in crate::ifma) limbs: [__m512i; N],
    /// Proves that there are such registers.
    token: Ifma,
    modulus: PhantomData<M>,
}

impl<M: Modulus<N>, const N: usize> Element<M, N> {
    #[inline(always)]
    pub(in crate::ifma) fn from_limbs(token: Ifma, limbs: [__m512i; N]) -> Self {
        Element {
            limbs,
            token,
            modulus: PhantomData,
        }
    }

    #[inline(always)]
    pub(in crate::ifma) fn token(&self) -> Ifma {
        self.token
    }

    /// Returns one element in every lane.
    #[inline(always)]
    pub(in crate::ifma) fn splat(token: Ifma, limbs: [u64; N]) -> Self {
        Self::from_limbs(token, super::splat(token, &limbs))
    }

    /// `self − other + K·p`, which must not be negative.
    #[inline(always)]
    pub(in crate::ifma) fn sub_multiple<const K: u64>(&self, other: &Self) -> Self {
        let difference = self.with(super::sub(self.token, &self.limbs, &other.limbs));
        difference.add_multiple::<K>()
    }

    /// `self + K·p`, which must not be negative, with limbs carried.
    #[inline(always)]
    pub(in crate::ifma) fn add_multiple<const K: u64>(&self) -> Self {
        let multiple = multiple(&M::LIMBS, K);
        self.with(super::add_splat_carried(self.token, &self.limbs, &multiple))
    }

    /// `±self − other + K·p`, which must not be negative; negated in the lanes
    /// of `negative`.
    #[inline(always)]
    pub(in crate::ifma) fn signed_sub_multiple<const K: u64>(
        &self,
        other: &Self,
        negative: u8,
    ) -> Self {
        let (this, multiple) = ((&self.limbs, negative), multiple(&M::LIMBS, K));
        self.with(super::signed_sub_carried(
            self.token,
            this,
            &other.limbs,
            &multiple,
        ))
    }

    /// The sum, unreduced.
    #[inline(always)]
    pub(in crate::ifma) fn add(&self, other: &Self) -> Self {
        self.with(super::add_carried(self.token, &self.limbs, &other.limbs))
    }

    /// The lanes of `other` where `mask` has a bit, else those of `self`.
    #[inline(always)]
    pub(in crate::ifma) fn blend(&self, other: &Self, mask: u8) -> Self {
        self.with(super::blend(self.token, &self.limbs, &other.limbs, mask))
    }

    /// The lanes that may be a multiple of the modulus below eight times it:
    /// all that are, and others with a chance of 2^-49.
    #[inline(always)]
    pub(in crate::ifma) fn perhaps_zero(&self) -> u8 {
        super::perhaps_multiple::<M, N>(self.token, self.limbs[0])
    }

    /// The lanes that are a multiple of the modulus below eight times it. Limbs must be carried.
    #[inline(always)]
    pub(in crate::ifma) fn is_zero(&self) -> u8 {
        super::is_multiple::<M, N>(self.token, &self.limbs, &Self::MULTIPLES)
    }

    /// Limb i of −j times the modulus, modulo eight times it, in row i and column j.
    const MULTIPLES: [[u64; 8]; N] = {
        let mut table = [[0; 8]; N];
        let mut j = 0;
        while j < 8 {
            let limbs = multiple(&M::LIMBS, (8 - j as u64) % 8);
            let mut i = 0;
            while i < N {
                table[i][j] = limbs[i];
                i += 1;
            }
            j += 1;
        }
        table
    };

    #[inline(always)]
    pub(in crate::ifma) fn with(&self, limbs: [__m512i; N]) -> Self {
        Element { limbs, ..*self }
    }
}

/// `k` times the modulus, in limbs of 52 bits; the last may be larger, and
/// `k` is small.
pub(in crate::ifma) const fn multiple<const N: usize>(limbs: &[u64; N], k: u64) -> [u64; N] {
    let mut product = [0; N];
    let (mut i, mut over) = (0, 0);
    while i < N {
        let sum = limbs[i] * k + over;
        product[i] = sum & LIMB_MASK;
        over = sum >> LIMB_BITS;
        i += 1;
    }
    product[N - 1] += over << LIMB_BITS;
    product
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(in crate::ifma) fn splat<const N: usize>(limbs: &[u64; N]) -> [__m512i; N] {
    limbs.map(|limb| _mm512_set1_epi64(limb.cast_signed()))
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(in crate::ifma) fn add<const N: usize>(a: &[__m512i; N], b: &[__m512i; N]) -> [__m512i; N] {
    std::array::from_fn(|i| _mm512_add_epi64(a[i], b[i]))
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(in crate::ifma) fn sub<const N: usize>(a: &[__m512i; N], b: &[__m512i; N]) -> [__m512i; N] {
    std::array::from_fn(|i| _mm512_sub_epi64(a[i], b[i]))
}

/// `a ± b`, subtracting in the lanes of `negative`.
#[inline]
#[target_feature(enable = "avx512f")]
pub(in crate::ifma) fn add_signed<const N: usize>(
    a: &[__m512i; N],
    b: &[__m512i; N],
    negative: u8,
) -> [__m512i; N] {
    std::array::from_fn(|i| {
        let sum = _mm512_add_epi64(a[i], b[i]);
        _mm512_mask_sub_epi64(sum, negative, a[i], b[i])
    })
}

/// Brings signed limbs back to 52 bits, all but the last.
#[inline]
#[target_feature(enable = "avx512f")]
pub(in crate::ifma) fn carry<const N: usize>(mut limbs: [__m512i; N]) -> [__m512i; N] {
    let mask = _mm512_set1_epi64(LIMB_MASK.cast_signed());
    for i in 1..N {
        let over = _mm512_srai_epi64::<LIMB_BITS>(limbs[i - 1]);
        limbs[i] = _mm512_add_epi64(limbs[i], over);
        limbs[i - 1] = _mm512_and_si512(limbs[i - 1], mask);
    }
    limbs
}

#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
pub(in crate::ifma) fn perhaps_multiple<M: Modulus<N>, const N: usize>(limb: __m512i) -> u8 {
    let inverse = _mm512_set1_epi64(M::NEGATIVE_INVERSE.cast_signed());
    let quotient = _mm512_madd52lo_epu64(_mm512_setzero_si512(), limb, inverse);
    // For k·p the quotient is −k modulo 2^52.
    let near_top = _mm512_set1_epi64((LIMB_MASK - 7).cast_signed());
    _mm512_cmpge_epu64_mask(quotient, near_top) | _mm512_testn_epi64_mask(quotient, quotient)
}

/// The only multiple that a value can be follows from its lowest limb. All limbs are compared
/// with that one.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
pub(in crate::ifma) fn is_multiple<M: Modulus<N>, const N: usize>(
    limbs: &[__m512i; N],
    multiples: &[[u64; 8]; N],
) -> u8 {
    let inverse = _mm512_set1_epi64(M::NEGATIVE_INVERSE.cast_signed());
    let quotient = _mm512_madd52lo_epu64(_mm512_setzero_si512(), limbs[0], inverse);
    let mut difference = _mm512_setzero_si512();
    for (limb, multiples) in limbs.iter().zip(multiples) {
        // The low three bits of −k choose the column.
        let expected = _mm512_permutexvar_epi64(quotient, read(multiples));
        difference = _mm512_or_si512(difference, _mm512_xor_si512(*limb, expected));
    }
    _mm512_testn_epi64_mask(difference, difference)
}
