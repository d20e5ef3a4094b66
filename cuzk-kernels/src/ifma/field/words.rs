//! Eight numbers of six 64-bit words, from memory to limbs of 52 bits.
//!
//! Not arithmetic: what the numbers stand for is the caller's. The slow twin of
//! [`limbs`] is [`to_limbs`](super::lanes::to_limbs).

use std::arch::x86_64::*;

use super::lanes::{LANES, LIMB_MASK, each_lane, read_first, transpose};

/// Words of a number.
pub(in crate::ifma) const WORDS: usize = 6;

/// Bytes of a number.
pub(in crate::ifma) const BYTES: usize = 8 * WORDS;

/// Word j of eight numbers, lowest first, a number a lane.
pub(in crate::ifma) type Columns = [__m512i; WORDS];

/// From words, lowest first.
#[inline]
#[target_feature(enable = "avx512f")]
pub(in crate::ifma) fn load_words(from: [&[u64; WORDS]; LANES]) -> Columns {
    columns(each_lane(|lane| bytemuck::cast_ref(from[lane])))
}

/// From bytes, highest first.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
pub(in crate::ifma) fn load_encoded(from: [&[u8; BYTES]; LANES]) -> Columns {
    swapped(columns(from))
}

/// 2^`SHIFT` times numbers, which must be below 2^(416 − `SHIFT`).
#[inline]
#[target_feature(enable = "avx512f,avx512vbmi2")]
pub(in crate::ifma) fn limbs<const SHIFT: usize>(words: &Columns) -> [__m512i; 8] {
    let mask = _mm512_set1_epi64(LIMB_MASK.cast_signed());
    std::array::from_fn(|limb| {
        // One word more than there are, so that bits below the lowest are zeros.
        let bit = 64 + limb * 52 - SHIFT;
        let word = |at: usize| match at.checked_sub(1) {
            Some(at) if at < WORDS => words[at],
            _ => _mm512_setzero_si512(),
        };
        let shift = _mm512_set1_epi64(((bit % 64) as u64).cast_signed());
        let bits = _mm512_shrdv_epi64(word(bit / 64), word(bit / 64 + 1), shift);
        _mm512_and_si512(bits, mask)
    })
}

#[inline]
#[target_feature(enable = "avx512f")]
fn columns(from: [&[u8; BYTES]; LANES]) -> Columns {
    let [w0, w1, w2, w3, w4, w5, _, _] = transpose(each_lane(|lane| read_first(from[lane])));
    [w0, w1, w2, w3, w4, w5]
}

/// Returns the numbers with the order of their bytes reversed.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn swapped([w5, w4, w3, w2, w1, w0]: Columns) -> Columns {
    let order = _mm512_set4_epi32(0x0809_0a0b, 0x0c0d_0e0f, 0x0001_0203, 0x0405_0607);
    [w0, w1, w2, w3, w4, w5].map(|word| _mm512_shuffle_epi8(word, order))
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::super::Ifma;
    use super::super::lanes::{Row, rows, store, to_limbs};
    use super::*;

    fn numbers(token: Ifma, limbs: [__m512i; 8]) -> [[u64; 8]; LANES] {
        rows(token, limbs).map(|row| {
            let mut limbs = Row([0; 8]);
            store(row, &mut limbs);
            limbs.0
        })
    }

    /// Any words, and those that have all bits or none, as their slow twin has them.
    #[test]
    fn limbs_are_those_of_the_words() {
        let Some(token) = crate::testing::token() else {
            return;
        };
        let mut rng = ChaCha8Rng::seed_from_u64(11);
        for _ in 0..200 {
            let words: [[u64; WORDS]; LANES] = std::array::from_fn(|lane| match lane {
                0 => [0; WORDS],
                1 => [u64::MAX; WORDS],
                _ => rng.r#gen(),
            });
            let encoded = words.map(|words| {
                let mut bytes = [0; BYTES];
                for (bytes, word) in bytes.chunks_mut(8).zip(words.iter().rev()) {
                    bytes.copy_from_slice(&word.to_be_bytes());
                }
                bytes
            });
            let expected = words.map(|words| to_limbs(&words));
            let columns = crate::ifma::field::load_words(token, words.each_ref());
            assert_eq!(
                numbers(token, crate::ifma::field::limbs::<0>(token, &columns)),
                expected
            );
            let columns = crate::ifma::field::load_encoded(token, encoded.each_ref());
            assert_eq!(
                numbers(token, crate::ifma::field::limbs::<0>(token, &columns)),
                expected
            );
            let shifted = words.map(|words| {
                let mut shifted = [0; WORDS + 1];
                for (i, word) in words.iter().enumerate() {
                    shifted[i] |= word << 32;
                    shifted[i + 1] = word >> 32;
                }
                to_limbs(&shifted)
            });
            assert_eq!(
                numbers(token, crate::ifma::field::limbs::<32>(token, &columns)),
                shifted
            );
        }
    }
}
