//! How columns are divided: into passes over the bases, and within a pass into sets that
//! have their buckets together.
//!
//! Not the sums. Invariant: the sets of a pass have all its columns, in order.

use std::ops::Range;

use crate::affine::Kernel;

/// Most columns of a pass. Labels have so many bits.
pub(super) const PASS_MAX: usize = 16;

/// Words of a column that a thread takes at a time.
pub(super) const PIECE_WORDS: usize = 128;

/// Most bytes of the buckets of a pass. With a batch they fit a second-level cache of
/// 1 MiB, or nearly so.
const BUCKETS_BYTES_MAX: usize = 512 << 10;

/// Additions that a bucket takes to become part of the sums.
const ADDITIONS_PER_BUCKET: usize = 2;

/// Returns the columns of each pass, so that passes have about as many as each other.
pub(super) fn passes(columns: usize) -> impl Iterator<Item = Range<usize>> {
    let count = columns.div_ceil(PASS_MAX);
    (0..count).map(move |pass| pass * columns / count..(pass + 1) * columns / count)
}

/// Columns of a pass that have their buckets together: one for each label but 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ColumnSet {
    shift: usize,
    columns: usize,
    /// Number of the bucket of label 0, if there were one.
    start: usize,
}

impl ColumnSet {
    /// Returns the bucket for a base with this label in the whole pass. `None` if the base
    /// is in no column of the set.
    #[inline]
    pub(super) fn bucket(&self, label: u16) -> Option<usize> {
        let label = usize::from(label) >> self.shift & (self.labels() - 1);
        (label != 0).then_some(self.start + label)
    }

    /// Returns the numbers of its buckets, with one for label 0.
    pub(super) fn buckets(&self) -> Range<usize> {
        self.start..self.start + self.labels()
    }

    fn labels(&self) -> usize {
        1 << self.columns
    }
}

/// Returns the numbers of columns of `sets` sets, which differ by at most one.
fn widths(columns: usize, sets: usize) -> impl Iterator<Item = usize> {
    (0..sets).map(move |set| (set + 1) * columns / sets - set * columns / sets)
}

/// Buckets of all sets, with one for label 0 in each.
fn buckets(columns: usize, sets: usize) -> usize {
    widths(columns, sets).map(|width| 1 << width).sum()
}

/// Cuts the columns of a pass into sets.
pub(super) fn in_sets(columns: usize, sets: usize) -> Vec<ColumnSet> {
    let (mut shift, mut start) = (0, 0);
    let sets = widths(columns, sets.clamp(1, columns.max(1))).map(|columns| {
        let set = ColumnSet {
            shift,
            columns,
            start,
        };
        shift += columns;
        start += set.labels();
        set
    });
    sets.collect()
}

/// The work of sums, as far as their columns do not say.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    bases: usize,
    threads: usize,
    /// Bytes of a bucket.
    point_bytes: usize,
}

impl Work {
    /// The work with the points of a kernel.
    pub(super) fn of<K: Kernel>(bases: usize, threads: usize) -> Self {
        Self {
            bases,
            threads: threads.max(1),
            point_bytes: size_of::<K::Point>(),
        }
    }

    /// Returns the number of pieces that threads take one after the other.
    pub(super) fn pieces(&self) -> usize {
        self.bases.div_ceil(PIECE_WORDS * 64)
    }

    /// Returns the number of threads that have a piece to work on.
    pub(super) fn busy_threads(&self) -> usize {
        self.threads.min(self.pieces())
    }

    /// Returns the number of sets that takes the fewest additions on the busiest thread,
    /// among those whose buckets fit a cache.
    pub(super) fn sets(&self, columns: usize) -> usize {
        (1..=columns)
            .filter(|sets| buckets(columns, *sets) * self.point_bytes <= BUCKETS_BYTES_MAX)
            .min_by_key(|sets| self.cost(columns, *sets))
            .unwrap_or(columns.max(1))
    }

    /// Additions on the busiest thread: of the bases to buckets, of the buckets of other
    /// threads, and of the buckets to sums. Half of the bits are taken to be set, each by
    /// chance. That is the worst for few sets: bits that agree leave more labels at 0.
    fn cost(&self, columns: usize, sets: usize) -> usize {
        let threads = self.busy_threads().max(1);
        let share = self.bases.div_ceil(threads);
        let rounds = threads.next_power_of_two().ilog2() as usize;
        let filling: usize = widths(columns, sets)
            .map(|width| share - (share >> width))
            .sum();
        filling + (rounds + ADDITIONS_PER_BUCKET) * buckets(columns, sets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_and_sets_have_all_columns_in_order() {
        for columns in 0..60 {
            let mut next = 0;
            for pass in passes(columns) {
                assert_eq!(pass.start, next);
                assert!((1..=PASS_MAX).contains(&pass.len()));
                next = pass.end;
                for count in 0..=pass.len() + 1 {
                    let sets = in_sets(pass.len(), count);
                    assert_eq!(sets.len(), count.clamp(1, pass.len()));
                    let mut bucket = 0;
                    for (i, set) in sets.iter().enumerate() {
                        let before: usize = sets[..i].iter().map(|set| set.columns).sum();
                        assert_eq!(set.shift, before);
                        assert_eq!(set.buckets().start, bucket);
                        bucket = set.buckets().end;
                    }
                    let all: usize = sets.iter().map(|set| set.columns).sum();
                    assert_eq!((all, bucket), (pass.len(), buckets(all, sets.len())));
                }
            }
            assert_eq!(next, columns);
        }
    }

    #[test]
    fn a_label_has_a_bucket_in_each_set_that_has_one_of_its_bits() {
        let sets = in_sets(10, 2);
        let buckets = |label: u16| -> Vec<_> { sets.iter().map(|set| set.bucket(label)).collect() };
        assert_eq!(buckets(0), [None, None]);
        assert_eq!(buckets(0b11), [Some(0b11), None]);
        assert_eq!(buckets(0b10_0000), [None, Some(32 + 1)]);
        assert_eq!(buckets(0b11_1111_1111), [Some(31), Some(32 + 31)]);
        assert_eq!(in_sets(16, 1)[0].bucket(u16::MAX), Some(0xffff));
    }

    #[test]
    fn many_bases_are_worth_many_buckets() {
        let sets = |columns: usize, bases: usize, point_bytes: usize| {
            let threads = 2;
            let work = Work {
                bases,
                threads,
                point_bytes,
            };
            work.sets(columns)
        };
        assert_eq!(
            [1, 4, 10].map(|columns| sets(columns, 1 << 20, 128)),
            [1; 3]
        );
        assert_eq!(sets(10, 1 << 27, 256), 1);
        // The buckets of 16 columns would fill a cache, and those of 10 take as many
        // additions as few bases.
        assert_eq!(sets(16, 1 << 27, 128), 2);
        assert_eq!(sets(10, 1 << 10, 128), 2);
        assert_eq!(sets(10, 0, 128), 5);
        assert_eq!(sets(0, 100, 128), 1);
    }
}
