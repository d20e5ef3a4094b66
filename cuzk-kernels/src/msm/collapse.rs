//! Additions of many terms to few buckets.
//!
//! The additions of a batch have different targets. So where digits repeat, terms of one
//! bucket are added to each other first, in rounds of pairs. That takes a number of batches
//! that is logarithmic in the number of terms. Invariant: buckets ascend, and there is a
//! point for each.

use crate::affine::{Addition, Kernel};

/// Terms that become one point a bucket. Its memory is kept from one use to the
/// next.
pub(super) struct Collapse {
    buckets: Vec<u32>,
    additions: Vec<Addition>,
}

/// Points that so many terms take meanwhile: themselves, and of each pair the second.
pub(super) const fn points_for(terms: usize) -> usize {
    terms + terms / 2
}

impl Collapse {
    /// For `terms` terms at most.
    pub(super) fn new(terms: usize) -> Self {
        Self {
            buckets: Vec::with_capacity(terms),
            additions: Vec::with_capacity(terms),
        }
    }

    /// Returns the bytes that it has on the heap.
    pub(super) const fn heap_bytes(terms: usize) -> usize {
        terms * (size_of::<u32>() + size_of::<Addition>())
    }

    /// Adds terms that are among `sources` to their buckets. The terms are put in
    /// order. `points` are as many as [`points_for`] says, whatever they are.
    pub(super) fn add<K: Kernel>(
        &mut self,
        kernel: K,
        terms: &mut [Addition],
        sources: &[K::Point],
        buckets: &mut [K::Point],
        (points, steps): (&mut [K::Point], &mut [K::Step]),
    ) {
        terms.sort_unstable_by_key(|term| term.target);
        self.buckets.clear();
        self.buckets.extend(terms.iter().map(|term| term.target));
        let (points, seconds) = points.split_at_mut(terms.len());
        for (point, term) in points.iter_mut().zip(&*terms) {
            *point = kernel.signed(&sources[term.source()], term.negative());
        }
        while self.add_neighbours(kernel, points, seconds, steps) {}
        let place = |(i, bucket): (usize, &u32)| Addition::new(*bucket as usize, i, false);
        self.additions.clear();
        self.additions
            .extend(self.buckets.iter().enumerate().map(place));
        kernel.accumulate(buckets, points, &self.additions, steps);
    }

    /// Adds neighbours that belong to the same bucket, in pairs; whether there
    /// were any.
    fn add_neighbours<K: Kernel>(
        &mut self,
        kernel: K,
        points: &mut [K::Point],
        seconds: &mut [K::Point],
        steps: &mut [K::Step],
    ) -> bool {
        self.additions.clear();
        let (mut from, mut to) = (0, 0);
        while let Some(bucket) = self.buckets.get(from).copied() {
            self.buckets[to] = bucket;
            points[to] = points[from];
            from += 1;
            if self.buckets.get(from) == Some(&bucket) {
                let second = self.additions.len();
                self.additions.push(Addition::new(to, second, false));
                seconds[second] = points[from];
                from += 1;
            }
            to += 1;
        }
        self.buckets.truncate(to);
        kernel.accumulate(points, seconds, &self.additions, steps);
        !self.additions.is_empty()
    }
}
