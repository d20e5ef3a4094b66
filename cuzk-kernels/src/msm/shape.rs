//! The shape of precomputed multiples: how scalars are cut, and how many multiples of each
//! base there are.

use super::window::{BITS_IN_CACHE, with_multiples};
use crate::digits::Windows;

/// How scalars are cut, and which multiples of each base there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    bits: u32,
    rows: usize,
}

impl Shape {
    /// Windows of `bits` bits, and the multiples 2^(g·j) for j < `rows`, where g
    /// is the least multiple of `bits` for which the rows suffice. `None` for
    /// windows of less than 2 bits or more than 16, for no rows, or for rows
    /// that no window needs.
    #[must_use]
    pub fn new(bits: u32, rows: usize) -> Option<Self> {
        let windows = (2..=BITS_IN_CACHE)
            .contains(&bits)
            .then(|| Windows::new(bits).count())?;
        let needed = |rows| windows.div_ceil(windows.div_ceil(rows));
        ((1..=windows).contains(&rows) && needed(rows) == rows).then_some(Self { bits, rows })
    }

    /// Returns the shape with which an MSM of `terms` terms takes the fewest additions on
    /// the busiest of `threads` threads. A shape with fewer rows is preferred if it takes
    /// only a few additions more. It has at least one row and at most `rows_max`.
    #[must_use]
    pub fn choose(terms: usize, threads: usize, rows_max: usize) -> Self {
        let threads = threads.max(1);
        let shapes = || {
            (2..=BITS_IN_CACHE)
                .flat_map(|bits| (1..=rows_max).filter_map(move |rows| Self::new(bits, rows)))
        };
        let cost =
            |shape: &Self| with_multiples(shape.bits, shape.rows, threads).cost(terms, threads);
        let least = shapes().map(|shape| cost(&shape)).min().unwrap_or(0);
        shapes()
            .filter(|shape| cost(shape) <= least + least / ROWS_WORTH)
            .min_by_key(|shape| (shape.rows, cost(shape)))
            .unwrap_or(Self { bits: 2, rows: 1 })
    }

    /// Bits of a window.
    #[must_use]
    pub fn bits(self) -> u32 {
        self.bits
    }

    /// Multiples of each base, itself among them.
    #[must_use]
    pub fn rows(self) -> usize {
        self.rows
    }

    /// Windows from one row to the next: sets of buckets.
    pub(super) fn positions(self) -> usize {
        Windows::new(self.bits).count().div_ceil(self.rows)
    }
}

/// Rows are left out where they spare less than one addition in so many.
const ROWS_WORTH: usize = 20;

/// Groups neighbouring items of equal shape: their terms fill the same buckets.
pub(super) fn same_shapes<T, S: PartialEq>(
    items: &[T],
    shape: impl Fn(&T) -> S,
) -> impl Iterator<Item = &[T]> {
    items.chunk_by(move |a, b| shape(a) == shape(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_have_no_idle_rows() {
        assert_eq!(Shape::new(16, 8).unwrap().positions(), 2);
        assert_eq!(Shape::new(16, 16).unwrap().positions(), 1);
        for (bits, rows) in [(16, 9), (16, 17), (1, 1), (17, 15), (16, 0)] {
            assert_eq!(Shape::new(bits, rows), None, "{bits} {rows}");
        }
        for (terms, threads) in [(1, 1), (500, 2), (1 << 18, 2), (1 << 18, 64)] {
            for rows_max in [1, 4, 128] {
                let shape = Shape::choose(terms, threads, rows_max);
                assert_eq!(Shape::new(shape.bits, shape.rows), Some(shape));
                assert!(shape.rows <= rows_max);
            }
        }
    }

    /// No threads, or no rows, count as one.
    #[test]
    fn a_shape_is_chosen_for_no_threads_and_no_rows() {
        for terms in [0, 1, 500, 1 << 18] {
            for rows_max in [1, 4, 128] {
                let shape = Shape::choose(terms, 0, rows_max);
                assert_eq!(shape, Shape::choose(terms, 1, rows_max));
            }
            assert_eq!(Shape::choose(terms, 2, 0).rows(), 1);
        }
    }
}
