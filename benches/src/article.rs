//! The measurements of the article that the cell comes from, to stand beside ours.
//!
//! The article is LambdaClass's "Beyond single-core bottlenecks: improving VM efficiency in
//! parallel environments". It executed blocks of a test network again, on an AMD Ryzen 9
//! 5950X with 16 cores and 32 hardware threads. Its figures are means of whole runs.

/// The hardware threads of the article's machine.
pub const HARDWARE_THREADS: usize = 32;

/// The wall time of one number of threads, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    /// The threads, each of which runs one machine at a time.
    pub threads: usize,
    /// With the enum over a big integer on the heap.
    pub heap_s: f64,
    /// With the enum over limbs, a cell of 48 bytes.
    pub limbs_s: f64,
    /// With the packed cell of 32 bytes.
    pub packed_s: f64,
}

/// The article's rows. It has a factor for 48 threads, too, but no times.
pub const ROWS: [Row; 6] = [
    row(1, [57.351, 47.458, 44.760]),
    row(2, [28.247, 23.607, 21.625]),
    row(4, [14.718, 12.472, 11.516]),
    row(8, [7.904, 6.800, 6.186]),
    row(16, [5.248, 5.456, 4.443]),
    row(32, [5.967, 7.010, 5.345]),
];

/// Cache misses of a whole run, in the order of the columns.
pub const CACHE_MISSES: [u64; 3] = [2_094_269_051, 2_426_557_083, 1_906_296_012];

const fn row(threads: usize, [heap_s, limbs_s, packed_s]: [f64; 3]) -> Row {
    Row {
        threads,
        heap_s,
        limbs_s,
        packed_s,
    }
}

impl Row {
    /// Returns the row of this number of threads, if the article has one.
    pub fn of(threads: usize) -> Option<Self> {
        ROWS.into_iter().find(|row| row.threads == threads)
    }

    /// Returns by how many times the packed cell is faster than the other two: the heap's,
    /// then the limbs'.
    pub fn factors(&self) -> [f64; 2] {
        [self.heap_s, self.limbs_s].map(|other_s| other_s / self.packed_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The factors that the article prints for its rows, the heap's first.
    #[test]
    fn the_factors_are_those_that_the_article_prints() {
        let printed = [
            [1.28, 1.06],
            [1.31, 1.09],
            [1.28, 1.08],
            [1.28, 1.10],
            [1.18, 1.23],
            [1.12, 1.31],
        ];
        for (row, printed) in ROWS.iter().zip(printed) {
            for (factor, printed) in row.factors().into_iter().zip(printed) {
                assert!((factor - printed).abs() < 0.0051, "{row:?} {factor}");
            }
        }
        let [_, limbs, packed] = CACHE_MISSES.map(|misses| misses as f64);
        assert!(((1.0 - packed / limbs) - 0.21).abs() < 0.01);
        assert_eq!(Row::of(8).map(|row| row.threads), Some(8));
        assert_eq!(Row::of(3), None);
        assert!(ROWS.iter().all(|row| row.threads <= HARDWARE_THREADS));
    }
}
