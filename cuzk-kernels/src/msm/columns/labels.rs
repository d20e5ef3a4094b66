//! The labels of bases: their bits in all columns, side by side.
//!
//! Columns are stored one after the other, so labels are the transposed bits.

use std::ops::Range;

use super::split::PASS_MAX;
use crate::msm::packed::Bits;

/// Bits of a word.
const WORD: usize = 64;

/// Calls `visit` with the index and the label of each base in `words` that has a label
/// other than 0, in ascending order. Bit j of a label is the base's bit in column j of at
/// most [`PASS_MAX`] columns.
///
/// # Errors
/// The first error of `visit`, after which it is not called again.
pub(super) fn for_each_label<E>(
    columns: &[Bits<'_>],
    words: Range<usize>,
    mut visit: impl FnMut(u32, u16) -> Result<(), E>,
) -> Result<(), E> {
    let mut rows = [0; PASS_MAX];
    for word in words {
        for (row, column) in rows.iter_mut().zip(columns) {
            *row = column.word(word);
        }
        let any = rows.iter().fold(0, |any, row| any | row);
        for byte in (0..WORD / 8).filter(|byte| any >> (8 * byte) & 0xff != 0) {
            let [low, high] = labels(&rows, byte);
            for (bit, label) in low.into_iter().zip(high).enumerate() {
                let label = u16::from_le_bytes(label.into());
                if label != 0 {
                    visit(index(word, 8 * byte + bit), label)?;
                }
            }
        }
    }
    Ok(())
}

#[expect(clippy::cast_possible_truncation, reason = "at most 2^31 bases")]
fn index(word: usize, bit: usize) -> u32 {
    (word * WORD + bit) as u32
}

/// Returns the labels of eight bases: their bits in the first eight columns, and in the
/// others.
fn labels(rows: &[u64; PASS_MAX], byte: usize) -> [[u8; 8]; 2] {
    let (low, high) = rows.split_at(8);
    [low, high].map(|rows| {
        let square = rows.iter().enumerate().fold(0, |square, (j, row)| {
            square | (row >> (8 * byte) & 0xff) << (8 * j)
        });
        transpose(square).to_le_bytes()
    })
}

/// Transposes eight rows of eight bits: bit j of byte i becomes bit i of byte j.
fn transpose(square: u64) -> u64 {
    let swap = |square: u64, distance: u32, mask: u64| {
        let differing = (square ^ (square >> distance)) & mask;
        square ^ differing ^ (differing << distance)
    };
    let square = swap(square, 7, 0x00aa_00aa_00aa_00aa);
    let square = swap(square, 14, 0x0000_cccc_0000_cccc);
    swap(square, 28, 0x0000_0000_f0f0_f0f0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    #[test]
    fn a_bit_moves_to_its_mirror() {
        for (i, j) in (0..8).flat_map(|i| (0..8).map(move |j| (i, j))) {
            assert_eq!(transpose(1 << (8 * i + j)), 1 << (8 * j + i));
        }
    }

    #[test]
    fn labels_are_the_bits_of_all_columns() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for (columns, len) in [(1, 64), (3, 100), (8, 1), (9, 200), (16, 320)] {
            let words: Vec<Vec<u64>> = (0..columns)
                .map(|_| {
                    // Sparse, so that some bases have no label.
                    let word = |i: usize| {
                        let past_end = (64 * (i + 1)).saturating_sub(len);
                        rng.r#gen::<u64>() & rng.r#gen::<u64>() & (u64::MAX >> past_end)
                    };
                    (0..len.div_ceil(64)).map(word).collect()
                })
                .collect();
            let bits: Vec<Bits<'_>> = words
                .iter()
                .map(|words| Bits::new(len, words).unwrap())
                .collect();
            let expected: Vec<(u32, u16)> = (0..len)
                .map(|i| {
                    let bit = |j: usize| (words[j][i / 64] >> (i % 64) & 1) << j;
                    let label: u64 = (0..columns).map(bit).sum();
                    (u32::try_from(i).unwrap(), u16::try_from(label).unwrap())
                })
                .filter(|(_, label)| *label != 0)
                .collect();
            let mut got = Vec::new();
            let all = 0..len.div_ceil(64);
            for_each_label(&bits, all, |index, label| {
                got.push((index, label));
                Ok::<(), ()>(())
            })
            .unwrap();
            assert_eq!(got, expected, "{columns} {len}");
        }
    }

    #[test]
    fn the_first_error_ends_it() {
        let bits = [Bits::new(64, &[0b1011]).unwrap()];
        let mut seen = Vec::new();
        let result = for_each_label(&bits, 0..1, |index, _| {
            seen.push(index);
            if index == 1 { Err(()) } else { Ok(()) }
        });
        assert_eq!((result, seen), (Err(()), vec![0, 1]));
    }
}
