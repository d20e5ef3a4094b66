//! The slots of each bucket.
//!
//! The additions of a batch have different targets. A bucket that gets many points in a
//! batch therefore needs many slots: points in memory whose sum is the bucket's. Slot b is
//! the first of bucket b. The others are spare slots, which buckets take when they need
//! them. The slots of a bucket are a chain.
//!
//! This module knows numbers of slots, and no points. Invariant: a slot is in at most one
//! chain, and a batch gets it at most once. No bucket has number 0, which ends a chain.

/// The end of a chain, and the first slot of an empty bucket.
const NONE: u32 = 0;

/// A slot for a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    /// The slot has a point, to which this one is added.
    Filled(usize),
    /// The slot is new: this point is copied into it.
    New(usize),
}

/// The chains of all buckets.
pub(super) struct Chains {
    /// For each bucket its first slot: its own number, or [`NONE`] if it is empty.
    first: Vec<u32>,
    /// For each bucket the next slot for this batch.
    cursor: Vec<u32>,
    /// For each slot the next one in its chain.
    next: Vec<u32>,
    /// The first spare slot that no bucket has taken.
    spare: u32,
}

#[expect(clippy::cast_possible_truncation, reason = "at most 2^17 slots")]
fn number(slot: usize) -> u32 {
    slot as u32
}

impl Chains {
    /// Empty buckets, and spare slots after them.
    pub(super) fn new(buckets: usize, spares: usize) -> Self {
        Self {
            first: vec![NONE; buckets],
            cursor: vec![NONE; buckets],
            next: vec![NONE; buckets + spares],
            spare: number(buckets),
        }
    }

    /// Returns the bytes that they have on the heap.
    pub(super) const fn heap_bytes(buckets: usize, spares: usize) -> usize {
        (3 * buckets + spares) * size_of::<u32>()
    }

    pub(super) fn is_filled(&self, bucket: usize) -> bool {
        self.first[bucket] != NONE
    }

    /// Marks a bucket as filled.
    pub(super) fn fill(&mut self, bucket: usize) {
        self.first[bucket] = number(bucket);
    }

    /// Returns the numbers of buckets.
    pub(super) fn buckets(&self) -> std::ops::Range<usize> {
        1..self.first.len()
    }

    /// Returns a slot of a bucket that this batch has not had yet. `None` if the batch has
    /// had all of them, and no spare slot is left.
    #[inline]
    pub(super) fn place(&mut self, bucket: usize) -> Option<Slot> {
        let slot = self.cursor[bucket];
        if slot != NONE {
            self.cursor[bucket] = self.next[slot as usize];
            return Some(Slot::Filled(slot as usize));
        }
        if !self.is_filled(bucket) {
            self.fill(bucket);
            return Some(Slot::New(bucket));
        }
        let spare = self.spare as usize;
        // Behind the first one. Only the next batch gets there.
        let after = self.next[bucket];
        *self.next.get_mut(spare)? = after;
        self.next[bucket] = self.spare;
        self.spare += 1;
        Some(Slot::New(spare))
    }

    /// Begins a batch, which may have every slot again.
    pub(super) fn next_batch(&mut self) {
        self.cursor.copy_from_slice(&self.first);
    }

    /// Divides each chain into pairs of neighbours and calls `join` with them. Only the
    /// first of a pair remains in its chain. Returns true if there were any. Otherwise no
    /// chain has a second slot, and all spare slots are free.
    ///
    /// # Errors
    /// The first error of `join`. The chains are then of no use.
    pub(super) fn halve<E>(
        &mut self,
        mut join: impl FnMut(usize, usize) -> Result<(), E>,
    ) -> Result<bool, E> {
        let mut any = false;
        for bucket in self.buckets() {
            let mut slot = bucket;
            while slot != NONE as usize && self.next[slot] != NONE {
                let second = self.next[slot] as usize;
                join(slot, second)?;
                any = true;
                self.next[slot] = self.next[second];
                slot = self.next[slot] as usize;
            }
        }
        if !any {
            self.spare = number(self.first.len());
        }
        Ok(any)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::convert::Infallible;

    fn pairs(chains: &mut Chains) -> Vec<(usize, usize)> {
        let mut pairs = Vec::new();
        chains
            .halve(|slot, second| {
                pairs.push((slot, second));
                Ok::<(), Infallible>(())
            })
            .unwrap();
        pairs
    }

    #[test]
    fn a_batch_gets_a_slot_once_and_the_next_batch_again() {
        let mut chains = Chains::new(4, 3);
        let new: Vec<_> = (0..4).map(|_| chains.place(2).unwrap()).collect();
        assert_eq!(new, [2, 4, 5, 6].map(Slot::New));
        assert_eq!(chains.place(2), None);
        assert_eq!(chains.place(3), Some(Slot::New(3)));
        assert_eq!(chains.place(3), None);
        chains.next_batch();
        let again: BTreeSet<usize> = (0..4)
            .map(|_| match chains.place(2) {
                Some(Slot::Filled(slot)) => slot,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(again, BTreeSet::from([2, 4, 5, 6]));
        assert_eq!(chains.place(2), None);
        assert_eq!(chains.place(1), Some(Slot::New(1)));
    }

    #[test]
    fn chains_are_halved_until_spare_slots_are_free() {
        let mut chains = Chains::new(3, 4);
        for _ in 0..5 {
            chains.place(1).unwrap();
        }
        chains.place(2).unwrap();
        assert_eq!(pairs(&mut chains), [(1, 6), (5, 4)]);
        assert_eq!(pairs(&mut chains), [(1, 5)]);
        assert_eq!(pairs(&mut chains), [(1, 3)]);
        assert_eq!(pairs(&mut chains), []);
        chains.next_batch();
        assert_eq!(chains.place(2), Some(Slot::Filled(2)));
        let spares: Vec<_> = (0..4).map(|_| chains.place(2).unwrap()).collect();
        assert_eq!(spares, [3, 4, 5, 6].map(Slot::New));
        assert_eq!(chains.place(2), None);
        assert!(chains.is_filled(1));
    }
}
