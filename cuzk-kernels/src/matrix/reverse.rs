//! Bit reversal, in place, in tiles that use whole cache lines.
//!
//! An index is read as (high, middle, low) with `q` high and low bits. Its reversal is (rev
//! low, rev middle, rev high). A tile consists of the 2^q runs of 2^q elements that share a
//! middle. It is transposed, with rows and columns reversed, and changes place with the
//! tile of the reversed middle.
//!
//! The runs of a tile are far apart, at distances that share a set of every cache.
//! So a tile is copied run by run, and transposed where its copy lies together.

#![allow(unsafe_code)] // tiles of one slice are exchanged by many tasks

use rayon::prelude::*;

use super::columns::Shared;
use crate::error::KernelError;
use cuzk_memory::Checkpoint;

/// Bits of a tile's side: 2^5 elements of 32 bytes are 16 cache lines, and two
/// tiles fit a second-level cache.
const TILE_BITS: u32 = 5;

/// Tiles that one task looks at.
const TASK: usize = 16;

/// Moves every element to the index with reversed bits. The slice's length is
/// a power of two.
///
/// # Errors
/// [`KernelError::Stopped`].
pub(crate) fn reverse_bits_in_place<T: Copy + Send + Sync>(
    values: &mut [T],
    checkpoint: &Checkpoint<'_>,
) -> Result<(), KernelError> {
    let tile = Tile::new(values.len().ilog2());
    let middles = 1usize << tile.middle_bits;
    let shared = Shared::new(values);
    (0..middles.div_ceil(TASK))
        .into_par_iter()
        .try_for_each_init(
            || [Vec::new(), Vec::new()],
            |copies, task| {
                for middle in task * TASK..((task + 1) * TASK).min(middles) {
                    let partner = reverse(middle, tile.middle_bits);
                    if middle <= partner {
                        // SAFETY: the elements of a middle and its reversal are touched by
                        // this task only, because the smaller of the two does the work.
                        unsafe { tile.exchange(&shared, middle, partner, copies) };
                    }
                }
                Ok(checkpoint.check()?)
            },
        )
}

/// How an index is split.
struct Tile {
    side_bits: u32,
    middle_bits: u32,
    /// The numbers of a side, with their bits reversed.
    reversed: [usize; 1 << TILE_BITS],
}

impl Tile {
    fn new(bits: u32) -> Tile {
        let side_bits = TILE_BITS.min(bits / 2);
        Tile {
            side_bits,
            middle_bits: bits - 2 * side_bits,
            reversed: std::array::from_fn(|i| reverse(i % (1 << side_bits), side_bits)),
        }
    }

    fn side(&self) -> usize {
        1 << self.side_bits
    }

    /// Where a tile's runs start.
    fn starts(&self, middle: usize) -> impl Iterator<Item = usize> {
        let (side_bits, middle_bits) = (self.side_bits, self.middle_bits);
        (0..self.side()).map(move |high| (high << middle_bits | middle) << side_bits)
    }

    /// Exchanges two tiles, or transposes one.
    ///
    /// # Safety
    /// Nobody else uses an element whose middle is `middle` or `partner`,
    /// and `partner` is `middle` reversed.
    unsafe fn exchange<T: Copy>(
        &self,
        values: &Shared<'_, T>,
        middle: usize,
        partner: usize,
        [first, second]: &mut [Vec<T>; 2],
    ) {
        // SAFETY: the caller's.
        unsafe {
            self.copy(values, middle, first);
            if middle != partner {
                self.copy(values, partner, second);
                self.write_transposed(second, values, middle);
            }
            self.write_transposed(first, values, partner);
        }
    }

    /// # Safety
    /// Nobody else uses an element of this middle.
    unsafe fn copy<T: Copy>(&self, values: &Shared<'_, T>, middle: usize, to: &mut Vec<T>) {
        to.clear();
        for start in self.starts(middle) {
            // SAFETY: in bounds, as an index has these bits, and the caller's alone.
            to.extend_from_slice(unsafe { values.slice(start, self.side()) });
        }
    }

    /// # Safety
    /// As [`Tile::copy`].
    unsafe fn write_transposed<T: Copy>(&self, copy: &[T], values: &Shared<'_, T>, middle: usize) {
        for (start, column) in self.starts(middle).zip(self.reversed) {
            // SAFETY: as in `copy`.
            let run = unsafe { values.slice(start, self.side()) };
            for (to, row) in run.iter_mut().zip(self.reversed) {
                *to = copy[row << self.side_bits | column];
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
    use cuzk_memory::NEVER_STOP;

    #[test]
    fn every_element_moves_to_its_reversed_index() {
        for bits in 0..=14 {
            let mut values: Vec<usize> = (0..1 << bits).collect();
            reverse_bits_in_place(&mut values, &NEVER_STOP).unwrap();
            for (i, value) in values.iter().enumerate() {
                assert_eq!(*value, reverse(i, bits), "{i} of 2^{bits}");
            }
        }
    }
}
