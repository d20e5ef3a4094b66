//! How wide the windows of a multi-scalar multiplication are, and how the
//! work is cut for the threads.

use crate::digits::Windows;

/// Additions that a bucket costs besides those that fill it: two to take its
/// weighted sum, one for its share of set-up and memory traffic.
const ADDITIONS_PER_BUCKET: usize = 3;

/// Widest window considered: its buckets (2^15 of them) still fit a
/// last-level cache.
const BITS_MAX: u32 = 16;

/// The plan of a multi-scalar multiplication.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// How scalars are cut into digits.
    pub(super) windows: Windows,
    /// Bucket sets per window, each fed with a share of the terms.
    pub(super) splits: usize,
}

/// Chooses the plan with the fewest additions on the busiest thread.
pub(super) fn plan(terms: usize, threads: usize) -> Plan {
    let plan = |bits: u32| {
        let windows = Windows::new(bits);
        let splits = threads.div_ceil(windows.count());
        Plan { windows, splits }
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
