//! Montgomery products of eight elements at a time.
//!
//! A product of N limbs takes 4N² multiply-adds, one a cycle on current processors. That is
//! 256 for the base field and 100 for the scalar field.

use std::arch::x86_64::*;

use super::element::{Modulus, splat};
use super::lanes::{LIMB_BITS, LIMB_MASK};

/// The product's columns while it is being reduced, lowest first, and the
/// multiple of the modulus that clears the lowest.
#[derive(Clone, Copy)]
struct Columns<const N: usize> {
    sums: [__m512i; N],
    factor: __m512i,
}

/// Operand scanning with the reduction interleaved (Koç, Acar, Kaliski,
/// "Analyzing and comparing Montgomery multiplication algorithms", 1996). The
/// result's limbs are not carried.
///
/// A round's first sums, on which the next round waits, are taken first.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
pub(in crate::ifma) fn product_columns<M: Modulus<N>, const N: usize>(
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
pub(in crate::ifma) fn factor<M: Modulus<N>, const N: usize>(lowest: __m512i) -> __m512i {
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
    let mut sums = [_mm512_add_epi64(next(0), carried(columns.sums[0])); N];
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
    let mut sums = [_mm512_add_epi64(last(0), carried(columns.sums[0])); N];
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

/// Returns the carry of a lowest column into the next, when a multiple of the modulus
/// clears its 52 low bits. The low bits come to 0 or 2^52, so the multiple's lowest half
/// need not be added. Signed.
#[inline]
#[target_feature(enable = "avx512f")]
pub(in crate::ifma) fn carried(lowest: __m512i) -> __m512i {
    let mask = _mm512_set1_epi64(LIMB_MASK.cast_signed());
    _mm512_srai_epi64::<LIMB_BITS>(_mm512_add_epi64(lowest, mask))
}
