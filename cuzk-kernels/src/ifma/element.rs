//! Montgomery arithmetic on eight elements of a prime field.
//!
//! Values are kept loosely reduced: below a small multiple of the modulus,
//! with limbs of 52 bits. The radix leaves enough room above the modulus that
//! products of loose values are again below it, but for a vanishing excess.

#![allow(unsafe_code)] // operations enable the instructions that `Ifma` proves

use std::arch::x86_64::*;
use std::marker::PhantomData;

use super::Ifma;

/// Bits of a limb.
pub(super) const LIMB_BITS: u32 = 52;
/// All bits of a limb.
pub(super) const LIMB_MASK: u64 = (1 << LIMB_BITS) - 1;

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
    pub(super) limbs: [__m512i; N],
    modulus: PhantomData<M>,
}

impl<M: Modulus<N>, const N: usize> Element<M, N> {
    /// From registers; the token proves that there are such registers.
    #[inline(always)]
    pub(super) fn from_limbs(_: Ifma, limbs: [__m512i; N]) -> Self {
        Element {
            limbs,
            modulus: PhantomData,
        }
    }

    /// The same element in every lane.
    #[inline(always)]
    pub(super) fn splat(token: Ifma, limbs: [u64; N]) -> Self {
        // SAFETY: the token proves the instructions.
        Self::from_limbs(token, unsafe { splat(&limbs) })
    }

    /// Montgomery product: below p + ab / radix.
    #[inline(always)]
    pub(super) fn mul(&self, other: &Self) -> Self {
        // SAFETY: `self` exists, which proves the instructions.
        self.with(unsafe { product::<M, N>(&self.limbs, &other.limbs) })
    }

    /// Montgomery square: below p + a² / radix.
    #[inline(always)]
    pub(super) fn square(&self) -> Self {
        // SAFETY: `self` exists, which proves the instructions.
        self.with(unsafe { square::<M, N>(&self.limbs) })
    }

    /// `self − other + K·p`, which must not be negative.
    #[inline(always)]
    pub(super) fn sub_multiple<const K: u64>(&self, other: &Self) -> Self {
        // SAFETY: `self` exists, which proves the instructions.
        self.with(unsafe {
            carry(add(
                &sub(&self.limbs, &other.limbs),
                &splat(&multiple(&M::LIMBS, K)),
            ))
        })
    }

    /// `±self − other + K·p`, which must not be negative; negated in the lanes
    /// of `negative`.
    #[inline(always)]
    pub(super) fn signed_sub_multiple<const K: u64>(&self, other: &Self, negative: u8) -> Self {
        // SAFETY: `self` exists, which proves the instructions.
        self.with(unsafe {
            let base = sub(&splat(&multiple(&M::LIMBS, K)), &other.limbs);
            carry(add_signed(&base, &self.limbs, negative))
        })
    }

    /// The sum, unreduced.
    #[inline(always)]
    pub(super) fn add(&self, other: &Self) -> Self {
        // SAFETY: `self` exists, which proves the instructions.
        self.with(unsafe { carry(add(&self.limbs, &other.limbs)) })
    }

    /// The lanes of `other` where `mask` has a bit, else those of `self`.
    #[inline(always)]
    pub(super) fn blend(&self, other: &Self, mask: u8) -> Self {
        let mut limbs = self.limbs;
        for (limb, other) in limbs.iter_mut().zip(other.limbs) {
            // SAFETY: `self` exists, which proves the instructions.
            *limb = unsafe { _mm512_mask_mov_epi64(*limb, mask, other) };
        }
        self.with(limbs)
    }

    /// The lanes that may be a multiple of the modulus below eight times it:
    /// all that are, and others with a chance of 2^-49.
    #[inline(always)]
    pub(super) fn perhaps_zero(&self) -> u8 {
        // SAFETY: `self` exists, which proves the instructions.
        unsafe { perhaps_multiple::<M, N>(self.limbs[0]) }
    }

    #[inline(always)]
    pub(super) fn with(&self, limbs: [__m512i; N]) -> Self {
        Element { limbs, ..*self }
    }
}

/// `k` times the modulus, in limbs of 52 bits; the last may be larger, and
/// `k` is small.
pub(super) const fn multiple<const N: usize>(limbs: &[u64; N], k: u64) -> [u64; N] {
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
pub(super) fn splat<const N: usize>(limbs: &[u64; N]) -> [__m512i; N] {
    limbs.map(|limb| _mm512_set1_epi64(limb.cast_signed()))
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn add<const N: usize>(a: &[__m512i; N], b: &[__m512i; N]) -> [__m512i; N] {
    std::array::from_fn(|i| _mm512_add_epi64(a[i], b[i]))
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn sub<const N: usize>(a: &[__m512i; N], b: &[__m512i; N]) -> [__m512i; N] {
    std::array::from_fn(|i| _mm512_sub_epi64(a[i], b[i]))
}

/// `a ± b`, subtracting in the lanes of `negative`.
#[inline]
#[target_feature(enable = "avx512f")]
fn add_signed<const N: usize>(a: &[__m512i; N], b: &[__m512i; N], negative: u8) -> [__m512i; N] {
    std::array::from_fn(|i| {
        let sum = _mm512_add_epi64(a[i], b[i]);
        _mm512_mask_sub_epi64(sum, negative, a[i], b[i])
    })
}

/// Brings signed limbs back to 52 bits, all but the last.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn carry<const N: usize>(mut limbs: [__m512i; N]) -> [__m512i; N] {
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
fn perhaps_multiple<M: Modulus<N>, const N: usize>(limb: __m512i) -> u8 {
    let inverse = _mm512_set1_epi64(M::NEGATIVE_INVERSE.cast_signed());
    let quotient = _mm512_madd52lo_epu64(_mm512_setzero_si512(), limb, inverse);
    // For k·p the quotient is −k modulo 2^52.
    let near_top = _mm512_set1_epi64((LIMB_MASK - 7).cast_signed());
    _mm512_cmpge_epu64_mask(quotient, near_top) | _mm512_testn_epi64_mask(quotient, quotient)
}

/// The product's columns while it is being reduced, lowest first, and the
/// multiple of the modulus that clears the lowest.
#[derive(Clone, Copy)]
struct Columns<const N: usize> {
    sums: [__m512i; N],
    factor: __m512i,
}

/// The product with limbs carried. Not inlined: it is long, and its operands
/// come from memory anyway.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512ifma")]
fn product<M: Modulus<N>, const N: usize>(a: &[__m512i; N], b: &[__m512i; N]) -> [__m512i; N] {
    carry(product_columns::<M, N>(a, b))
}

/// The columns of a product before reduction: 0 to N − 1 and N to 2N − 1.
pub(super) type Wide<const N: usize> = [[__m512i; N]; 2];

/// The square with limbs carried. Every product of two different limbs is
/// taken once and doubled; the reduction comes after.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512ifma")]
fn square<M: Modulus<N>, const N: usize>(a: &[__m512i; N]) -> [__m512i; N] {
    let mut wide = [[_mm512_setzero_si512(); N]; 2];
    for i in 0..N {
        for j in i + 1..N {
            multiply_limbs(&mut wide, i + j, a[i], a[j]);
        }
    }
    for column in wide.as_flattened_mut() {
        *column = _mm512_add_epi64(*column, *column);
    }
    for (i, a) in a.iter().enumerate() {
        multiply_limbs(&mut wide, 2 * i, *a, *a);
    }
    carry(reduce_wide::<M, N>(wide))
}

/// The product without reduction.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn wide_product<const N: usize>(a: &[__m512i; N], b: &[__m512i; N]) -> Wide<N> {
    let mut wide = [[_mm512_setzero_si512(); N]; 2];
    for (i, b) in b.iter().enumerate() {
        for (j, a) in a.iter().enumerate() {
            multiply_limbs(&mut wide, i + j, *a, *b);
        }
    }
    wide
}

/// Adds the halves of a product of limbs to a column and the next.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn multiply_limbs<const N: usize>(wide: &mut Wide<N>, column: usize, a: __m512i, b: __m512i) {
    let columns = wide.as_flattened_mut();
    columns[column] = _mm512_madd52lo_epu64(columns[column], a, b);
    columns[column + 1] = _mm512_madd52hi_epu64(columns[column + 1], a, b);
}

/// Montgomery's reduction of signed columns, limbs not carried: the value over
/// the radix, and less than p more.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn reduce_wide<M: Modulus<N>, const N: usize>(mut wide: Wide<N>) -> [__m512i; N] {
    let p = splat(&M::LIMBS);
    // Unrolled by hand, as the rounds of a product.
    clear::<M, N>(&mut wide, 0, &p);
    clear::<M, N>(&mut wide, 1, &p);
    clear::<M, N>(&mut wide, 2, &p);
    clear::<M, N>(&mut wide, 3, &p);
    clear::<M, N>(&mut wide, 4, &p);
    if N > 5 {
        clear::<M, N>(&mut wide, 5, &p);
    }
    if N > 6 {
        clear::<M, N>(&mut wide, 6, &p);
    }
    if N > 7 {
        clear::<M, N>(&mut wide, 7, &p);
    }
    wide[1]
}

/// Clears a column with a multiple of the modulus, and carries it into the
/// next.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn clear<M: Modulus<N>, const N: usize>(wide: &mut Wide<N>, i: usize, p: &[__m512i; N]) {
    let columns = &mut wide.as_flattened_mut()[i..=i + N];
    let factor = factor::<M, N>(columns[0]);
    for (j, p) in p.iter().enumerate() {
        columns[j] = _mm512_madd52lo_epu64(columns[j], *p, factor);
        columns[j + 1] = _mm512_madd52hi_epu64(columns[j + 1], *p, factor);
    }
    let carry = _mm512_srai_epi64::<LIMB_BITS>(columns[0]);
    columns[1] = _mm512_add_epi64(columns[1], carry);
}

/// Operand scanning with the reduction interleaved (Koç, Acar, Kaliski,
/// "Analyzing and comparing Montgomery multiplication algorithms", 1996). The
/// result's limbs are not carried.
///
/// A round's first sums, on which the next round waits, are taken first.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn product_columns<M: Modulus<N>, const N: usize>(
    a: &[__m512i; N],
    b: &[__m512i; N],
) -> [__m512i; N] {
    let p = splat(&M::LIMBS);
    let mut columns = first_column::<M, N>(a, b[0]);
    // Unrolled by hand: the compiler keeps the columns in registers only if
    // there is no loop.
    columns = round::<M, N>(columns, a, &p, b[0], b[1]);
    columns = round::<M, N>(columns, a, &p, b[1], b[2]);
    columns = round::<M, N>(columns, a, &p, b[2], b[3]);
    columns = round::<M, N>(columns, a, &p, b[3], b[4]);
    if N > 5 {
        columns = round::<M, N>(columns, a, &p, b[4], b[5]);
    }
    if N > 6 {
        columns = round::<M, N>(columns, a, &p, b[5], b[6]);
    }
    if N > 7 {
        columns = round::<M, N>(columns, a, &p, b[6], b[7]);
    }
    last_round(columns, a, &p, b[N - 1])
}

#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn first_column<M: Modulus<N>, const N: usize>(a: &[__m512i; N], b: __m512i) -> Columns<N> {
    let zero = _mm512_setzero_si512();
    let sums = a.map(|a| _mm512_madd52lo_epu64(zero, a, b));
    let factor = factor::<M, N>(sums[0]);
    Columns { sums, factor }
}

#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn factor<M: Modulus<N>, const N: usize>(lowest: __m512i) -> __m512i {
    let inverse = _mm512_set1_epi64(M::NEGATIVE_INVERSE.cast_signed());
    _mm512_madd52lo_epu64(_mm512_setzero_si512(), lowest, inverse)
}

/// Clears the lowest column, drops it, and adds the low halves of the next
/// limb's products.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
#[expect(
    clippy::needless_range_loop,
    reason = "iterators cost a tenth of the speed"
)]
fn round<M: Modulus<N>, const N: usize>(
    columns: Columns<N>,
    a: &[__m512i; N],
    p: &[__m512i; N],
    b: __m512i,
    b_next: __m512i,
) -> Columns<N> {
    let next = |i: usize| {
        let sum = _mm512_madd52lo_epu64(product_sum(&columns, a, b, i), a[i], b_next);
        reduced_sum(&columns, p, sum, i)
    };
    let mut sums = [_mm512_add_epi64(next(0), carried(&columns, p)); N];
    let factor = factor::<M, N>(sums[0]);
    for i in 1..N {
        sums[i] = next(i);
    }
    Columns { sums, factor }
}

#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
#[expect(
    clippy::needless_range_loop,
    reason = "iterators cost a tenth of the speed"
)]
fn last_round<const N: usize>(
    columns: Columns<N>,
    a: &[__m512i; N],
    p: &[__m512i; N],
    b: __m512i,
) -> [__m512i; N] {
    let last = |i: usize| reduced_sum(&columns, p, product_sum(&columns, a, b, i), i);
    let mut sums = [_mm512_add_epi64(last(0), carried(&columns, p)); N];
    for i in 1..N {
        sums[i] = last(i);
    }
    sums
}

/// Column i + 1 with the high halves of the round's products.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn product_sum<const N: usize>(
    columns: &Columns<N>,
    a: &[__m512i; N],
    b: __m512i,
    i: usize,
) -> __m512i {
    let sum = if i + 1 < N {
        columns.sums[i + 1]
    } else {
        _mm512_setzero_si512()
    };
    _mm512_madd52hi_epu64(sum, a[i], b)
}

/// Column i + 1 with the multiple of the modulus. This comes last, because
/// the multiple is known last.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn reduced_sum<const N: usize>(
    columns: &Columns<N>,
    p: &[__m512i; N],
    sum: __m512i,
    i: usize,
) -> __m512i {
    let sum = if i + 1 < N {
        _mm512_madd52lo_epu64(sum, p[i + 1], columns.factor)
    } else {
        sum
    };
    _mm512_madd52hi_epu64(sum, p[i], columns.factor)
}

/// What the lowest column, cleared by the multiple of the modulus, carries
/// into the next.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn carried<const N: usize>(columns: &Columns<N>, p: &[__m512i; N]) -> __m512i {
    let cleared = _mm512_madd52lo_epu64(columns.sums[0], p[0], columns.factor);
    _mm512_srli_epi64::<LIMB_BITS>(cleared)
}
