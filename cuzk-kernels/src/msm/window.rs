//! How wide the windows of a multi-scalar multiplication are, and how the
//! work is cut for the threads. `cargo bench -p benches --bench windows` measures
//! whether other widths would be better.

use std::ops::Range;

use crate::affine::BATCH;
use crate::digits::{CUT_BITS, Windows};

/// Additions that a bucket costs besides those that fill it: two to take its
/// weighted sum, one for its share of set-up and memory traffic.
const ADDITIONS_PER_BUCKET: usize = 3;

/// Widest window whose buckets (2^15 of them) are in a cache near the core.
pub(super) const BITS_IN_CACHE: u32 = 16;

/// Widest window.
const BITS_MAX: u32 = 20;

/// So many additions to buckets in memory take the time of one more. They took 52 ns each
/// instead of 50 on a Zen 5.
const ADDITIONS_FROM_MEMORY: usize = 25;

/// The buckets in memory are at most one for so many terms.
const TERMS_PER_BUCKET: usize = 4;

/// Buckets among which a batch finds enough different ones.
const BUCKETS_MIN: usize = 4 * BATCH;

/// Most windows: each has two bits or more.
const COUNT_MAX: usize = 127;

/// Sets of buckets that a thread works on, at least, so that threads end
/// together.
const SETS_PER_THREAD: usize = 2;

/// The plan of a multi-scalar multiplication.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// How scalars are cut into digits.
    pub(super) windows: Windows,
    /// Multiples of each base at hand: 1 without precomputation. Window w uses
    /// row w / positions, and the buckets of position w mod positions.
    pub(super) rows: usize,
    /// Sets of buckets that the windows are dealt out to: one each without
    /// precomputation.
    pub(super) positions: usize,
    /// Positions whose buckets are filled together, because each alone has too
    /// few for a batch of different ones.
    pub(super) together: usize,
    /// Bucket sets per position, each fed with a share of the terms.
    pub(super) splits: usize,
}

/// Which plan there is for so many terms on so many threads.
pub(super) type Choose<'a> = &'a dyn Fn(usize, usize) -> Plan;

impl Plan {
    fn new(windows: Windows, rows: usize, threads: usize) -> Plan {
        let positions = windows.count().div_ceil(rows);
        let together = BUCKETS_MIN
            .div_ceil(windows.digit_max())
            .min(positions / (SETS_PER_THREAD * threads))
            .max(1);
        Plan {
            windows,
            rows,
            positions,
            together,
            splits: threads.div_ceil(positions),
        }
    }

    /// The plan with so many windows. They are equally wide where several are filled together,
    /// and else as nearly as possible.
    fn in_count(count: usize, threads: usize) -> Plan {
        let windows = Windows::balanced(count);
        let plan = Self::new(windows, 1, threads);
        if plan.together == 1 {
            return plan;
        }
        Self::new(Windows::new(windows.bits()), 1, threads)
    }

    /// Buckets of all positions and shares.
    pub(super) fn buckets(&self) -> usize {
        self.splits * self.buckets_of(0..self.positions)
    }

    /// Buckets of some positions, for one share.
    pub(super) fn buckets_of(&self, positions: Range<usize>) -> usize {
        positions
            .map(|position| self.windows.digit_max_of(position))
            .sum()
    }

    /// Buckets that are filled together, at most.
    pub(super) fn set_len(&self) -> usize {
        self.together * self.windows.digit_max()
    }

    /// How many times buckets are filled together.
    pub(super) fn sets(&self) -> usize {
        self.positions.div_ceil(self.together) * self.splits
    }

    /// Additions on the busiest of so many threads.
    pub(super) fn cost(&self, terms: usize, threads: usize) -> usize {
        let per_set =
            self.rows * terms / self.splits + ADDITIONS_PER_BUCKET * self.windows.digit_max();
        let busiest = (self.positions * self.splits).div_ceil(threads) * per_set;
        match self.windows.bits() > BITS_IN_CACHE {
            true => busiest + busiest / ADDITIONS_FROM_MEMORY,
            false => busiest,
        }
    }

    /// Returns true if the buckets are in a cache, or few beside the terms.
    fn suits(&self, terms: usize) -> bool {
        self.windows.bits() <= BITS_IN_CACHE || self.buckets() <= terms / TERMS_PER_BUCKET
    }
}

/// Chooses the plan with the fewest additions on the busiest thread.
pub(super) fn plan(terms: usize, threads: usize) -> Plan {
    (count_of(BITS_MAX)..count_of(1))
        .map(|count| Plan::in_count(count, threads))
        .filter(|plan| plan.suits(terms))
        .min_by_key(|plan| plan.cost(terms, threads))
        .unwrap_or_else(|| Plan::in_count(count_of(BITS_IN_CACHE), threads))
}

/// The plan with windows of at most `bits` bits, or as many as there can be.
pub(super) fn in_windows(bits: u32, threads: usize) -> Plan {
    Plan::in_count(count_of(bits.clamp(3, BITS_MAX)), threads)
}

/// The number of windows of at most `bits` bits, at most 127.
fn count_of(bits: u32) -> usize {
    (CUT_BITS.div_ceil(bits) as usize).min(COUNT_MAX)
}

/// Returns the plan with windows of `bits` bits and `rows` multiples of each base.
pub(super) fn with_multiples(bits: u32, rows: usize, threads: usize) -> Plan {
    Plan::new(Windows::new(bits), rows, threads)
}
