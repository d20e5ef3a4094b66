//! How wide the windows of a multi-scalar multiplication are, and how the
//! work is cut for the threads.

use crate::affine::BATCH;
use crate::digits::Windows;

/// Additions that a bucket costs besides those that fill it: two to take its
/// weighted sum, one for its share of set-up and memory traffic.
const ADDITIONS_PER_BUCKET: usize = 3;

/// Widest window considered: its buckets (2^15 of them) still fit a
/// last-level cache.
const BITS_MAX: u32 = 16;

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
    /// Windows whose buckets are filled together, because each alone has too
    /// few for a batch of different ones.
    pub(super) together: usize,
    /// Bucket sets per window, each fed with a share of the terms.
    pub(super) splits: usize,
}

impl Plan {
    /// Buckets of all windows and shares.
    pub(super) fn buckets(&self) -> usize {
        self.windows.count() * self.splits * self.windows.digit_max()
    }
}

/// Chooses the plan with the fewest additions on the busiest thread.
pub(super) fn plan(terms: usize, threads: usize) -> Plan {
    let plan = |bits: u32| {
        let windows = Windows::new(bits);
        let splits = threads.div_ceil(windows.count());
        let together = BUCKETS_MIN
            .div_ceil(windows.digit_max())
            .min(windows.count() / (SETS_PER_THREAD * threads))
            .max(1);
        Plan {
            windows,
            together,
            splits,
        }
    };
    let cost = |plan: &Plan| {
        let per_set = terms / plan.splits + ADDITIONS_PER_BUCKET * plan.windows.digit_max();
        (plan.windows.count() * plan.splits).div_ceil(threads) * per_set
    };
    (2..=BITS_MAX)
        .map(plan)
        .min_by_key(cost)
        .unwrap_or_else(|| plan(BITS_MAX))
}
