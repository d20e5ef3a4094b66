//! The additions of a batch in preparation.

use super::bit_set::BitSet;
use super::collapse::Collapse;
use crate::affine::{Addition, BATCH};

/// Most terms that wait for a later batch.
pub(super) const DEFERRED_MAX: usize = BATCH;

/// Fewest additions worth a batch of their own.
pub(super) const BATCH_MIN: usize = 256;

/// Most terms that are added to each other first.
pub(super) const TERMS_MAX: usize = BATCH_MIN + DEFERRED_MAX;

/// Most additions that are listed at a time: all those of a batch, or few of it and those
/// that were deferred.
const ADDITIONS_MAX: usize = if BATCH > TERMS_MAX { BATCH } else { TERMS_MAX };

/// Additions in preparation.
pub(super) struct Batch {
    /// Buckets that the additions name.
    pub(super) taken: BitSet,
    pub(super) additions: Vec<Addition>,
    /// The batch before. It is carried out when the next one is complete, so that the points
    /// of the next one can be asked for meanwhile.
    pub(super) ready: Vec<Addition>,
    /// Additions to buckets that are taken.
    pub(super) deferred: Vec<Addition>,
    /// Those that were deferred by the batch before.
    pub(super) waiting: Vec<Addition>,
    pub(super) collapse: Collapse,
}

impl Default for Batch {
    fn default() -> Self {
        Self {
            taken: BitSet::new(0),
            additions: Vec::with_capacity(ADDITIONS_MAX),
            ready: Vec::with_capacity(ADDITIONS_MAX),
            deferred: Vec::with_capacity(DEFERRED_MAX),
            waiting: Vec::with_capacity(DEFERRED_MAX),
            collapse: Collapse::new(TERMS_MAX),
        }
    }
}

impl Batch {
    /// The bytes that a batch has on the heap, without the marks of buckets.
    pub(super) const HEAP_BYTES: usize = 2 * (ADDITIONS_MAX + DEFERRED_MAX) * size_of::<Addition>()
        + Collapse::heap_bytes(TERMS_MAX);

    /// Forgets what a filling left that was given up.
    pub(super) fn reset(&mut self, buckets: usize) {
        self.taken.reset(buckets);
        self.additions.clear();
        self.ready.clear();
        self.deferred.clear();
    }
}
