//! Additions of many terms to few buckets.
//!
//! The additions of a batch have different targets, so where digits repeat,
//! terms of the same bucket are added to each other first, in rounds of pairs:
//! however many they are, that takes a logarithmic number of batches. The
//! invariant: buckets ascend, and points and buckets are equally many.

use crate::affine::{Addition, Kernel};

/// Terms that become one point a bucket. Its memory is kept from one use to the
/// next.
pub(super) struct Collapse<K: Kernel> {
    buckets: Vec<u32>,
    points: Vec<K::Point>,
    seconds: Vec<K::Point>,
    additions: Vec<Addition>,
}

impl<K: Kernel> Default for Collapse<K> {
    fn default() -> Self {
        Self {
            buckets: Vec::new(),
            points: Vec::new(),
            seconds: Vec::new(),
            additions: Vec::new(),
        }
    }
}

impl<K: Kernel> Collapse<K> {
    /// Adds terms that are among `sources` to their buckets. The terms are put in
    /// order.
    pub(super) fn add(
        &mut self,
        kernel: K,
        terms: &mut [Addition],
        sources: &[K::Point],
        buckets: &mut [K::Point],
        scratch: &mut K::Scratch,
    ) {
        terms.sort_unstable_by_key(|term| term.target);
        self.buckets.clear();
        self.buckets.extend(terms.iter().map(|term| term.target));
        let point = |term: &Addition| kernel.signed(&sources[term.source()], term.negative());
        self.points.clear();
        self.points.extend(terms.iter().map(point));
        while self.add_neighbours(kernel, scratch) {}
        let place = |(i, bucket): (usize, &u32)| Addition::new(*bucket as usize, i, false);
        self.additions.clear();
        self.additions
            .extend(self.buckets.iter().enumerate().map(place));
        kernel.accumulate(buckets, &self.points, &self.additions, scratch);
    }

    /// Adds neighbours that belong to the same bucket, in pairs; whether there
    /// were any.
    fn add_neighbours(&mut self, kernel: K, scratch: &mut K::Scratch) -> bool {
        self.seconds.clear();
        self.additions.clear();
        let (mut from, mut to) = (0, 0);
        while let Some(bucket) = self.buckets.get(from).copied() {
            self.buckets[to] = bucket;
            self.points[to] = self.points[from];
            from += 1;
            if self.buckets.get(from) == Some(&bucket) {
                let second = self.seconds.len();
                self.additions.push(Addition::new(to, second, false));
                self.seconds.push(self.points[from]);
                from += 1;
            }
            to += 1;
        }
        self.buckets.truncate(to);
        self.points.truncate(to);
        kernel.accumulate(&mut self.points, &self.seconds, &self.additions, scratch);
        !self.additions.is_empty()
    }
}
