//! Between eight elements side by side in memory and eight lanes.

//!
//! All loads and stores of registers are here. Invariant: they are of as many bytes as are
//! borrowed.

#![allow(unsafe_code)] // loads and stores of registers, and `Ifma`'s instructions

use std::arch::x86_64::*;

use bytemuck::{Pod, Zeroable};

use super::Ifma;

/// Bits of a limb.
pub(in crate::ifma) const LIMB_BITS: u32 = 52;
/// All bits of a limb.
pub(in crate::ifma) const LIMB_MASK: u64 = (1 << LIMB_BITS) - 1;

/// Elements in a vector.
pub(in crate::ifma) const LANES: usize = 8;

/// Eight limbs of one element; a cache line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(64))]
pub(crate) struct Row(pub(crate) [u64; 8]);

/// An element per lane. Unlike `array::from_fn` this is certain to be inlined,
/// which values in registers need.
#[inline(always)]
pub(in crate::ifma) fn each_lane<T>(mut f: impl FnMut(usize) -> T) -> [T; LANES] {
    [f(0), f(1), f(2), f(3), f(4), f(5), f(6), f(7)]
}

/// Limb j of element i, from the j-th limb of the i-th row.
#[inline(always)]
pub(in crate::ifma) fn load(_: Ifma, rows: [&Row; LANES]) -> [__m512i; 8] {
    // SAFETY: a row is 64 bytes, and the token proves the instructions.
    unsafe { transpose(each_lane(|i| _mm512_load_si512(rows[i].0.as_ptr().cast()))) }
}

/// Limb j of element i, from the difference of the j-th limbs of the i-th rows.
#[inline(always)]
pub(in crate::ifma) fn load_difference(
    _: Ifma,
    a: [&Row; LANES],
    b: [&Row; LANES],
) -> [__m512i; 8] {
    // SAFETY: a row is 64 bytes, and the token proves the instructions.
    unsafe {
        transpose(each_lane(|i| {
            let a = _mm512_load_si512(a[i].0.as_ptr().cast());
            _mm512_sub_epi64(a, _mm512_load_si512(b[i].0.as_ptr().cast()))
        }))
    }
}

/// The lanes whose word has a bit.
#[inline(always)]
pub(in crate::ifma) fn lanes_with<const BIT: u32>(_: Ifma, words: &[u64; LANES]) -> u8 {
    // SAFETY: eight words are 64 bytes, and the token proves the instructions.
    unsafe {
        let words = _mm512_loadu_si512(words.as_ptr().cast());
        _mm512_test_epi64_mask(words, _mm512_set1_epi64(1 << BIT))
    }
}

/// The inverse of [`load`]: the i-th row of limbs of the i-th element.
#[inline(always)]
pub(in crate::ifma) fn rows(_: Ifma, limbs: [__m512i; 8]) -> [__m512i; LANES] {
    // SAFETY: the token proves the instructions.
    unsafe { transpose(limbs) }
}

/// Writes one row.
#[inline(always)]
pub(in crate::ifma) fn store(row: __m512i, to: &mut Row) {
    // SAFETY: a row is 64 bytes; a register's value exists only where the
    // instructions do.
    unsafe { _mm512_store_si512(to.0.as_mut_ptr().cast(), row) }
}

/// Reads eight words.
#[inline]
#[target_feature(enable = "avx512f")]
pub(in crate::ifma) fn read(words: &[u64; LANES]) -> __m512i {
    // SAFETY: eight words are 64 bytes.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

/// Reads the first words of eight, as many as there are. The others are zero.
#[inline]
#[target_feature(enable = "avx512f")]
pub(in crate::ifma) fn read_first<const BYTES: usize>(words: &[u8; BYTES]) -> __m512i {
    const { assert!(BYTES.is_multiple_of(8) && BYTES <= 64) }
    let first = u8::MAX >> (LANES - BYTES / 8);
    // SAFETY: the words that are masked out are not read, the others are there.
    unsafe { _mm512_maskz_loadu_epi64(first, words.as_ptr().cast()) }
}

/// Reads four words.
#[inline]
#[target_feature(enable = "avx512f")]
pub(in crate::ifma) fn read_half(words: &[u64; 4]) -> __m256i {
    // SAFETY: four words are 32 bytes.
    unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
}

/// Writes four words.
#[inline]
#[target_feature(enable = "avx512f")]
pub(in crate::ifma) fn write_half(words: __m256i, to: &mut [u64; 4]) {
    // SAFETY: four words are 32 bytes.
    unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), words) }
}

/// Transposes an 8 × 8 matrix of words.
#[inline]
#[target_feature(enable = "avx512f")]
pub(in crate::ifma) fn transpose(r: [__m512i; 8]) -> [__m512i; 8] {
    // Pairs of rows, interleaved: 128-bit chunk c holds columns 2c or 2c + 1.
    let even = |i: usize| _mm512_unpacklo_epi64(r[i], r[i + 1]);
    let odd = |i: usize| _mm512_unpackhi_epi64(r[i], r[i + 1]);
    let [c0, c2, c4, c6] = transpose_chunks([even(0), even(2), even(4), even(6)]);
    let [c1, c3, c5, c7] = transpose_chunks([odd(0), odd(2), odd(4), odd(6)]);
    [c0, c1, c2, c3, c4, c5, c6, c7]
}

/// Transposes a 4 × 4 matrix of 128-bit chunks.
#[inline]
#[target_feature(enable = "avx512f")]
fn transpose_chunks(r: [__m512i; 4]) -> [__m512i; 4] {
    const EVEN: i32 = 0b10_00_10_00;
    const ODD: i32 = 0b11_01_11_01;
    let (a, b) = (
        _mm512_shuffle_i64x2::<EVEN>(r[0], r[1]),
        _mm512_shuffle_i64x2::<EVEN>(r[2], r[3]),
    );
    let (c, d) = (
        _mm512_shuffle_i64x2::<ODD>(r[0], r[1]),
        _mm512_shuffle_i64x2::<ODD>(r[2], r[3]),
    );
    [
        _mm512_shuffle_i64x2::<EVEN>(a, b),
        _mm512_shuffle_i64x2::<EVEN>(c, d),
        _mm512_shuffle_i64x2::<ODD>(a, b),
        _mm512_shuffle_i64x2::<ODD>(c, d),
    ]
}

/// Cuts a number of 64-bit words into limbs of 52 bits, zero beyond its end.
pub(in crate::ifma) const fn to_limbs<const W: usize, const N: usize>(
    words: &[u64; W],
) -> [u64; N] {
    let mut limbs = [0; N];
    let mut i = 0;
    while i < N {
        let (word, shift) = (i * 52 / 64, i * 52 % 64);
        if word < W {
            limbs[i] = words[word] >> shift;
            if shift > 12 && word + 1 < W {
                limbs[i] |= words[word + 1] << (64 - shift);
            }
        }
        limbs[i] &= LIMB_MASK;
        i += 1;
    }
    limbs
}

/// Joins limbs of 52 bits to 64-bit words; the number must fit.
pub(in crate::ifma) const fn to_words<const N: usize, const W: usize>(
    limbs: &[u64; N],
) -> [u64; W] {
    let mut words = [0; W];
    let mut i = 0;
    while i < N {
        let (word, shift) = (i * 52 / 64, i * 52 % 64);
        if word < W {
            words[word] |= limbs[i] << shift;
            if shift > 12 && word + 1 < W {
                words[word + 1] |= limbs[i] >> (64 - shift);
            }
        }
        i += 1;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limbs_and_words_are_inverse() {
        let words = [
            u64::MAX,
            1,
            0x0123_4567_89ab_cdef,
            0,
            7 << 60,
            u64::MAX >> 3,
        ];
        let limbs: [u64; 8] = to_limbs(&words);
        assert!(limbs.iter().all(|limb| *limb <= LIMB_MASK));
        assert_eq!(to_words::<8, 6>(&limbs), words);
    }

    #[test]
    fn rows_come_back() {
        let Some(token) = crate::testing::token() else {
            return;
        };
        let matrix: [Row; 8] =
            std::array::from_fn(|i| Row(std::array::from_fn(|j| (8 * i + j) as u64)));
        let columns = rows(token, load(token, matrix.each_ref()));
        let mut back = [Row([0; 8]); 8];
        for (row, to) in columns.into_iter().zip(&mut back) {
            store(row, to);
        }
        assert_eq!(back, matrix);
    }
}
