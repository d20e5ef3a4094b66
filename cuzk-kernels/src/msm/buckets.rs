//! The buckets of one window, or of a few.
//!
//! Terms are collected into batches whose buckets are pairwise different,
//! because the additions of a batch happen together. A term whose bucket is
//! taken waits for the next batch. When too many wait (few distinct digits),
//! terms of the same bucket are first added to each other.

use std::mem;

use group::{Group, prime::PrimeCurveAffine};

use crate::affine::{self, Addition, BATCH, CurveOf, Kernel};
use crate::checkpoint::Checkpoint;
use crate::error::KernelError;

/// Most terms that wait for a later batch.
const DEFERRED_MAX: usize = BATCH;

/// Fewest additions worth a batch of their own.
const BATCH_MIN: usize = 256;

/// Segments of the buckets whose running sums are taken together.
const SEGMENTS: usize = 512;

/// Shortest segment.
const SEGMENT_MIN: usize = 16;

/// Most buckets that are summed point by point.
const SINGLE_MAX: usize = 64;

/// Per window, one bucket for each absolute value of a digit, from 1 on.
pub(super) struct Buckets<K: Kernel> {
    kernel: K,
    points: Vec<K::Point>,
    /// Buckets that a term was added to.
    filled: BitSet,
    /// Buckets that the batch in preparation names.
    taken: BitSet,
    additions: Vec<Addition>,
    deferred: Vec<Addition>,
    scratch: K::Scratch,
}

impl<K: Kernel> Buckets<K> {
    /// `len` empty buckets.
    pub(super) fn new(kernel: K, len: usize) -> Buckets<K> {
        Buckets {
            kernel,
            points: vec![kernel.infinity(); len],
            filled: BitSet::new(len),
            taken: BitSet::new(len),
            additions: Vec::with_capacity(BATCH),
            deferred: Vec::with_capacity(DEFERRED_MAX),
            scratch: K::Scratch::default(),
        }
    }

    /// Adds a term to a bucket: `sources[source]` or its inverse. The same
    /// sources are used until [`Buckets::finish`].
    #[inline]
    pub(super) fn add(&mut self, addition: Addition, sources: &[K::Point]) {
        self.schedule(addition, sources);
        if self.additions.len() >= BATCH || self.deferred.len() >= DEFERRED_MAX {
            self.advance(sources);
        }
    }

    /// Carries out all that was scheduled.
    pub(super) fn finish(&mut self, sources: &[K::Point]) {
        while !self.additions.is_empty() {
            self.advance(sources);
        }
    }

    /// What is in the buckets, finished.
    pub(super) fn into_sums(self) -> Vec<K::Affine> {
        let mut sums = vec![K::Affine::identity(); self.points.len()];
        self.kernel.export(&self.points, &mut sums);
        sums
    }

    /// Carries out scheduled additions in the way that suits their number.
    fn advance(&mut self, sources: &[K::Point]) {
        if self.additions.len() < BATCH_MIN {
            self.collapse(sources);
        } else {
            self.flush(sources);
        }
    }

    /// Puts an addition where it belongs: done at once, into the batch in
    /// preparation, or among those that wait.
    #[inline]
    fn schedule(&mut self, addition: Addition, sources: &[K::Point]) {
        let bucket = addition.target as usize;
        if self.filled.insert(bucket) {
            let source = &sources[addition.source()];
            self.points[bucket] = self.kernel.signed(source, addition.negative());
        } else if self.taken.insert(bucket) {
            self.additions.push(addition);
        } else {
            self.deferred.push(addition);
        }
    }

    /// Carries out the batch in preparation, and starts the next one with the
    /// terms that waited.
    fn flush(&mut self, sources: &[K::Point]) {
        self.kernel.accumulate(
            &mut self.points,
            sources,
            &self.additions,
            &mut self.scratch,
        );
        self.additions.clear();
        self.taken.clear();
        let waiting = mem::take(&mut self.deferred);
        for &addition in &waiting {
            self.schedule(addition, sources);
        }
    }

    /// Carries out everything that is scheduled. Terms of the same bucket are
    /// added to each other in rounds of pairs, so that any number of them
    /// takes a logarithmic number of batches.
    fn collapse(&mut self, sources: &[K::Point]) {
        let mut terms = mem::take(&mut self.deferred);
        terms.append(&mut self.additions);
        self.taken.clear();

        terms.sort_unstable_by_key(|term| term.target);
        let mut sums: Vec<(u32, K::Point)> = terms
            .iter()
            .map(|term| {
                let source = &sources[term.source()];
                (term.target, self.kernel.signed(source, term.negative()))
            })
            .collect();
        while sums.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            sums = self.add_neighbours(&sums);
        }
        let (additions, points): (Vec<_>, Vec<_>) = sums
            .iter()
            .enumerate()
            .map(|(i, (bucket, point))| (Addition::new(*bucket as usize, i, false), *point))
            .unzip();
        self.kernel
            .accumulate(&mut self.points, &points, &additions, &mut self.scratch);
    }

    /// Adds neighbours that belong to the same bucket, in pairs.
    fn add_neighbours(&mut self, sums: &[(u32, K::Point)]) -> Vec<(u32, K::Point)> {
        let (mut buckets, mut firsts) = (Vec::new(), Vec::new());
        let (mut seconds, mut additions) = (Vec::new(), Vec::new());
        for run in sums.chunk_by(|a, b| a.0 == b.0) {
            for pair in run.chunks(2) {
                if let [_, second] = pair {
                    additions.push(Addition::new(firsts.len(), seconds.len(), false));
                    seconds.push(second.1);
                }
                buckets.push(pair[0].0);
                firsts.push(pair[0].1);
            }
        }
        self.kernel
            .accumulate(&mut firsts, &seconds, &additions, &mut self.scratch);
        buckets.into_iter().zip(firsts).collect()
    }

    /// `Σ (i + 1) · bucket[i]` for each window's `len` buckets, a power of two.
    ///
    /// # Errors
    /// [`KernelError::Stopped`].
    pub(super) fn weighted_sums(
        mut self,
        len: usize,
        checkpoint: &dyn Checkpoint,
    ) -> Result<Vec<CurveOf<K>>, KernelError> {
        weighted_sums(
            self.kernel,
            &self.points,
            len,
            &mut self.scratch,
            checkpoint,
        )
    }
}

/// `Σ (i + 1) · points[i]` for each `len` points, a power of two.
///
/// Running sums from the top, as usual, but in many segments at a time so
/// that each step is a batch. Point j of segment s counts j + 1 times within
/// the segment, and as often again as there are points below the segment.
fn weighted_sums<K: Kernel>(
    kernel: K,
    points: &[K::Point],
    len: usize,
    scratch: &mut K::Scratch,
    checkpoint: &dyn Checkpoint,
) -> Result<Vec<CurveOf<K>>, KernelError> {
    if len <= SINGLE_MAX {
        let sums = points
            .chunks(len)
            .map(|points| weighted_sum(kernel, points));
        return Ok(sums.collect());
    }
    let length = (points.len() / SEGMENTS)
        .next_power_of_two()
        .clamp(SEGMENT_MIN, len);
    let segments = points.len() / length;
    let mut running = vec![kernel.infinity(); segments];
    let mut totals = running.clone();
    let same: Vec<_> = (0..segments).map(|s| Addition::new(s, s, false)).collect();
    for j in (0..length).rev() {
        let next: Vec<_> = (0..segments)
            .map(|s| Addition::new(s, s * length + j, false))
            .collect();
        kernel.accumulate(&mut running, points, &next, scratch);
        kernel.accumulate(&mut totals, &running, &same, scratch);
        checkpoint.check()?;
    }
    // Segment s counts s times: the others move down, the first falls away.
    for running in running.chunks_mut(len / length) {
        running.rotate_left(1);
        if let Some(last) = running.last_mut() {
            *last = kernel.infinity();
        }
    }
    let below = weighted_sums(kernel, &running, len / length, scratch, checkpoint)?;
    totals
        .chunks_mut(len / length)
        .zip(below)
        .map(|(totals, below)| {
            let within = affine::sum(kernel, totals, scratch, checkpoint)?;
            Ok(within + multiply_small(below, length))
        })
        .collect()
}

/// `Σ (i + 1) · points[i]`, point by point.
fn weighted_sum<K: Kernel>(kernel: K, points: &[K::Point]) -> CurveOf<K> {
    let mut affine = vec![K::Affine::identity(); points.len()];
    kernel.export(points, &mut affine);
    let (mut above, mut sum) = (CurveOf::<K>::identity(), CurveOf::<K>::identity());
    for point in affine.iter().rev() {
        above += point;
        sum += above;
    }
    sum
}

/// A set of small numbers, small enough itself for the first-level cache.
struct BitSet(Vec<u64>);

impl BitSet {
    fn new(len: usize) -> BitSet {
        BitSet(vec![0; len.div_ceil(64)])
    }

    /// Adds a number; whether it was not there before.
    #[inline]
    fn insert(&mut self, number: usize) -> bool {
        let word = &mut self.0[number / 64];
        let bit = 1 << (number % 64);
        let absent = *word & bit == 0;
        *word |= bit;
        absent
    }

    fn clear(&mut self) {
        self.0.fill(0);
    }
}

/// `factor · point` by double-and-add.
fn multiply_small<G: Group>(point: G, factor: usize) -> G {
    (0..usize::BITS - factor.leading_zeros())
        .rev()
        .fold(G::identity(), |sum, bit| {
            let doubled = sum.double();
            if factor >> bit & 1 == 1 {
                doubled + point
            } else {
                doubled
            }
        })
}
