//! How wide the windows of a multi-scalar multiplication are, and how the
//! work is cut for the threads. `cargo bench -p benches --bench windows` measures
//! whether other widths would be better.

use crate::affine::BATCH;
use crate::digits::Windows;

/// Additions that a bucket costs besides those that fill it: two to take its
/// weighted sum, one for its share of set-up and memory traffic.
const ADDITIONS_PER_BUCKET: usize = 3;

/// Widest window considered: its buckets (2^15 of them) still fit a
/// last-level cache.
pub(super) const BITS_MAX: u32 = 16;

/// Widest window that can be asked for.
const BITS_ASKED_MAX: u32 = 20;

/// Buckets among which a batch finds enough different ones.
const BUCKETS_MIN: usize = 4 * BATCH;

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
    fn new(bits: u32, rows: usize, threads: usize) -> Plan {
        let windows = Windows::new(bits);
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

    /// Buckets of all positions and shares.
    pub(super) fn buckets(&self) -> usize {
        self.positions * self.splits * self.windows.digit_max()
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
        (self.positions * self.splits).div_ceil(threads) * per_set
    }
}

/// Chooses the plan with the fewest additions on the busiest thread.
pub(super) fn plan(terms: usize, threads: usize) -> Plan {
    (2..=BITS_MAX)
        .map(|bits| Plan::new(bits, 1, threads))
        .min_by_key(|plan| plan.cost(terms, threads))
        .unwrap_or_else(|| Plan::new(BITS_MAX, 1, threads))
}

/// The plan with windows of `bits` bits, or as many as there can be.
pub(super) fn in_windows(bits: u32, threads: usize) -> Plan {
    Plan::new(bits.clamp(2, BITS_ASKED_MAX), 1, threads)
}

/// Returns the plan with windows of `bits` bits and `rows` multiples of each base.
pub(super) fn with_multiples(bits: u32, rows: usize, threads: usize) -> Plan {
    Plan::new(bits, rows, threads)
}
