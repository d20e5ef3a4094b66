//! Products that are reduced later: squares, and sums of products.

use std::arch::x86_64::*;

use super::element::{Modulus, splat};
use super::product::{carried, factor};

/// The columns of a product before reduction: 0 to N − 1 and N to 2N − 1.
pub(in crate::ifma) type Wide<const N: usize> = [[__m512i; N]; 2];

/// The square, limbs not carried. Every product of two different limbs is
/// taken once and doubled; the reduction comes after.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
pub(in crate::ifma) fn square_columns<M: Modulus<N>, const N: usize>(
    a: &[__m512i; N],
) -> [__m512i; N] {
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
    reduce_wide::<M, N>(wide)
}

/// The product without reduction.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
pub(in crate::ifma) fn wide_product<const N: usize>(a: &[__m512i; N], b: &[__m512i; N]) -> Wide<N> {
    let mut wide = [[_mm512_setzero_si512(); N]; 2];
    for (i, b) in b.iter().enumerate() {
        for (j, a) in a.iter().enumerate() {
            multiply_limbs(&mut wide, i + j, *a, *b);
        }
    }
    wide
}

/// Adds the product with the same factor in every lane.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
pub(in crate::ifma) fn multiply_add<const N: usize>(
    mut wide: Wide<N>,
    a: &[__m512i; N],
    factor: &[u64; N],
) -> Wide<N> {
    for (i, b) in factor.iter().enumerate() {
        let b = _mm512_set1_epi64(b.cast_signed());
        for (j, a) in a.iter().enumerate() {
            multiply_limbs(&mut wide, i + j, *a, b);
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

/// `LOW` limbs of Montgomery's reduction, limbs not carried: the value over 2^(52·LOW),
/// and less than p more.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
pub(in crate::ifma) fn reduce_low<M: Modulus<8>, const LOW: usize>(
    limbs: &[__m512i; 8],
) -> [__m512i; 8] {
    const { assert!(LOW == 4 || LOW == 8) };
    let p = splat(&M::LIMBS);
    let mut wide = [*limbs, [_mm512_setzero_si512(); 8]];
    clear::<M, 8>(&mut wide, 0, &p);
    clear::<M, 8>(&mut wide, 1, &p);
    clear::<M, 8>(&mut wide, 2, &p);
    clear::<M, 8>(&mut wide, 3, &p);
    if LOW == 8 {
        clear::<M, 8>(&mut wide, 4, &p);
        clear::<M, 8>(&mut wide, 5, &p);
        clear::<M, 8>(&mut wide, 6, &p);
        clear::<M, 8>(&mut wide, 7, &p);
    }
    let columns = wide.as_flattened();
    std::array::from_fn(|i| columns[i + LOW])
}

/// Montgomery's reduction of signed columns, limbs not carried: the value over
/// the radix, and less than p more.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
pub(in crate::ifma) fn reduce_wide<M: Modulus<N>, const N: usize>(
    mut wide: Wide<N>,
) -> [__m512i; N] {
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

/// Clears a column with a multiple of the modulus, but for writing it, and
/// carries it into the next.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn clear<M: Modulus<N>, const N: usize>(wide: &mut Wide<N>, i: usize, p: &[__m512i; N]) {
    let columns = &mut wide.as_flattened_mut()[i..=i + N];
    let factor = factor::<M, N>(columns[0]);
    columns[1] = _mm512_add_epi64(columns[1], carried(columns[0]));
    for (j, p) in p.iter().enumerate() {
        if j > 0 {
            columns[j] = _mm512_madd52lo_epu64(columns[j], *p, factor);
        }
        columns[j + 1] = _mm512_madd52hi_epu64(columns[j + 1], *p, factor);
    }
}
