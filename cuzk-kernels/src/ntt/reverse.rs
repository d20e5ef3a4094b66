//! Bit reversal, in place, in tiles that use whole cache lines.
//!
//! An index is read as (high, middle, low) with `q` high and low bits. Its
//! reversal is (rev low, rev middle, rev high): a tile, the 2^q runs of 2^q
//! elements that share a middle, is transposed (with rows and columns
//! reversed) and changes place with the tile of the reversed middle.

#![allow(unsafe_code)] // tiles of one slice are exchanged by many tasks

use rayon::prelude::*;

use super::columns::Shared;
use crate::checkpoint::Checkpoint;
use crate::error::KernelError;

/// Bits of a tile's side: 2^6 elements of 32 bytes are half a page, and two
/// tiles fit a second-level cache.
const TILE_BITS: u32 = 6;

/// Tiles that one task looks at.
const TASK: usize = 4;

/// Moves every element to the index with reversed bits. The slice's length is
/// a power of two.
///
/// # Errors
/// [`KernelError::Stopped`].
pub(crate) fn reverse_bits_in_place<T: Copy + Send + Sync>(
    values: &mut [T],
    checkpoint: &dyn Checkpoint,
) -> Result<(), KernelError> {
    let bits = values.len().ilog2();
    let tile = Tile::new(bits);
    let middles = 1usize << tile.middle_bits;
    let shared = Shared::new(values);
    (0..middles.div_ceil(TASK))
        .into_par_iter()
        .try_for_each(|task| {
            for middle in task * TASK..((task + 1) * TASK).min(middles) {
                let partner = reverse(middle, tile.middle_bits);
                if middle <= partner {
                    // SAFETY: the elements of a middle and its reversal are touched by
                    // this task only, because the smaller of the two does the work.
                    unsafe { tile.exchange(&shared, middle, partner) };
                }
            }
            checkpoint.check()
        })
}

/// How an index is split.
struct Tile {
    side_bits: u32,
    middle_bits: u32,
}

impl Tile {
    fn new(bits: u32) -> Tile {
        let side_bits = TILE_BITS.min(bits / 2);
        Tile {
            side_bits,
            middle_bits: bits - 2 * side_bits,
        }
    }

    fn index(&self, high: usize, middle: usize, low: usize) -> usize {
        (high << self.middle_bits | middle) << self.side_bits | low
    }

    /// Exchanges two tiles, or transposes one.
    ///
    /// # Safety
    /// Nobody else uses an element whose middle is `middle` or `partner`,
    /// and `partner` is `middle` reversed.
    unsafe fn exchange<T: Copy>(&self, values: &Shared<'_, T>, middle: usize, partner: usize) {
        for high in 0..1 << self.side_bits {
            for low in 0..1 << self.side_bits {
                let from = self.index(high, middle, low);
                let to = self.index(
                    reverse(low, self.side_bits),
                    partner,
                    reverse(high, self.side_bits),
                );
                if middle < partner || from < to {
                    // SAFETY: both indices are below the slice's length, differ, and
                    // belong to the caller's two middles.
                    let (a, b) = unsafe { (values.slice(from, 1), values.slice(to, 1)) };
                    a.swap_with_slice(b);
                }
            }
        }
    }
}

/// The lowest `bits` bits of `i`, reversed. There are no others.
#[inline]
pub(crate) fn reverse(i: usize, bits: u32) -> usize {
    if bits == 0 {
        0
    } else {
        i.reverse_bits() >> (usize::BITS - bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::Unhindered;

    #[test]
    fn every_element_moves_to_its_reversed_index() {
        for bits in 0..=14 {
            let mut values: Vec<usize> = (0..1 << bits).collect();
            reverse_bits_in_place(&mut values, &Unhindered).unwrap();
            for (i, value) in values.iter().enumerate() {
                assert_eq!(*value, reverse(i, bits), "{i} of 2^{bits}");
            }
        }
    }
}
