//! The buckets of one window, or of a few.
//!
//! Terms are collected into batches whose buckets are pairwise different,
//! because the additions of a batch happen together. A term whose bucket is
//! taken waits for the next batch. When too many wait (few distinct digits),
//! terms of the same bucket are first added to each other.

use std::mem;

use group::{Group, prime::PrimeCurveAffine};

use super::batch::{BATCH_MIN, Batch, DEFERRED_MAX};
use super::bit_set::BitSet;
use super::workspace::{Scratch, Workspace};
use crate::affine::{self, Addition, BATCH, CurveOf, Kernel};
use crate::error::KernelError;
use cuzk_memory::Checkpoint;

/// Segments of the buckets whose running sums are taken together.
const SEGMENTS: usize = 512;

/// Shortest segment.
const SEGMENT_MIN: usize = 16;

/// Most buckets that are summed point by point.
const SINGLE_MAX: usize = 64;

/// Per window, one bucket for each absolute value of a digit, from 1 on.
pub(super) struct Buckets<'m, K: Kernel> {
    kernel: K,
    /// Whatever the memory held, where no term was added.
    points: &'m mut [K::Point],
    /// Buckets that a term was added to.
    filled: BitSet,
}

impl<'m, K: Kernel> Buckets<'m, K> {
    /// Empty buckets, in this memory.
    pub(super) fn new(kernel: K, points: &'m mut [K::Point]) -> Self {
        Buckets {
            kernel,
            filled: BitSet::new(points.len()),
            points,
        }
    }

    /// Begins to add terms that are among `sources`.
    pub(super) fn filling<'f, 'w>(
        &'f mut self,
        workspace: &'f mut Workspace<'w, K>,
        sources: &'f [K::Point],
    ) -> Filling<'f, 'm, 'w, K> {
        let Workspace { scratch, batch, .. } = workspace;
        batch.reset(self.points.len());
        Filling {
            buckets: self,
            batch,
            scratch,
            sources,
        }
    }

    /// Writes down infinity where no term was added.
    fn complete(&mut self) {
        let empty = self.kernel.infinity();
        let words = self.points.chunks_mut(64).zip(self.filled.words());
        for (points, filled) in words.filter(|(_, filled)| **filled != u64::MAX) {
            for (bit, point) in points.iter_mut().enumerate() {
                if filled >> bit & 1 == 0 {
                    *point = empty;
                }
            }
        }
    }

    /// Returns the points in the buckets.
    pub(super) fn sums(&mut self) -> Vec<K::Affine> {
        self.complete();
        let mut sums = vec![K::Affine::identity(); self.points.len()];
        self.kernel.export(self.points, &mut sums);
        sums
    }

    /// `Σ (i + 1) · bucket[i]` for each window's `len` buckets, a power of two.
    ///
    /// # Errors
    /// [`KernelError::Stopped`].
    pub(super) fn weighted_sums(
        &mut self,
        len: usize,
        scratch: &mut Scratch<'_, K>,
        checkpoint: &Checkpoint<'_>,
    ) -> Result<Vec<CurveOf<K>>, KernelError> {
        self.complete();
        let Scratch {
            steps,
            points,
            pairs,
        } = scratch;
        let work = Running {
            steps,
            points,
            pairs,
            checkpoint,
        };
        weighted_sums(self.kernel, self.points, len, work)
    }
}

/// Terms on their way into buckets.
pub(super) struct Filling<'f, 'm, 'w, K: Kernel> {
    buckets: &'f mut Buckets<'m, K>,
    batch: &'f mut Batch,
    scratch: &'f mut Scratch<'w, K>,
    sources: &'f [K::Point],
}

impl<K: Kernel> Filling<'_, '_, '_, K> {
    /// Adds a term to a bucket: a source or its inverse.
    #[inline]
    pub(super) fn add(&mut self, addition: Addition) {
        self.schedule(addition);
        if self.batch.additions.len() >= BATCH || self.batch.deferred.len() >= DEFERRED_MAX {
            self.advance();
        }
    }

    /// Carries out all that was scheduled.
    pub(super) fn finish(mut self) {
        while !self.batch.additions.is_empty() {
            self.advance();
        }
        self.carry_out();
    }

    /// Carries out scheduled additions in the way that suits their number.
    fn advance(&mut self) {
        if self.batch.additions.len() < BATCH_MIN {
            self.collapse();
        } else {
            self.flush();
        }
    }

    /// Puts an addition where it belongs: done at once, into the batch in
    /// preparation, or among those that wait.
    #[inline]
    fn schedule(&mut self, addition: Addition) {
        let bucket = addition.target as usize;
        if self.buckets.filled.insert(bucket) {
            let source = &self.sources[addition.source()];
            self.buckets.points[bucket] = self.buckets.kernel.signed(source, addition.negative());
        } else if self.batch.taken.insert(bucket) {
            self.batch.additions.push(addition);
        } else {
            self.batch.deferred.push(addition);
        }
    }

    /// Carries out the batch that is ready.
    fn carry_out(&mut self) {
        let Batch {
            ready, additions, ..
        } = &mut *self.batch;
        let buckets = &mut *self.buckets;
        buckets.kernel.accumulate_before(
            additions,
            buckets.points,
            self.sources,
            ready,
            self.scratch.steps,
        );
        ready.clear();
    }

    /// Makes the batch in preparation the one that is ready, and starts the next one with the
    /// terms that waited.
    fn flush(&mut self) {
        self.carry_out();
        let batch = &mut *self.batch;
        mem::swap(&mut batch.ready, &mut batch.additions);
        batch.taken.clear();
        mem::swap(&mut batch.deferred, &mut batch.waiting);
        let mut waiting = mem::take(&mut batch.waiting);
        for addition in waiting.drain(..) {
            self.schedule(addition);
        }
        self.batch.waiting = waiting;
    }

    /// Carries out everything that is scheduled.
    fn collapse(&mut self) {
        let Batch {
            taken,
            additions,
            deferred,
            collapse,
            ..
        } = &mut *self.batch;
        let Scratch { steps, points, .. } = &mut *self.scratch;
        additions.append(deferred);
        let buckets = &mut *self.buckets;
        collapse.add(
            buckets.kernel,
            additions,
            self.sources,
            buckets.points,
            (points, steps),
        );
        additions.clear();
        taken.clear();
    }
}

/// The working memory of running sums.
struct Running<'r, K: Kernel> {
    steps: &'r mut [K::Step],
    /// Two for each segment, and for each of the segments of those.
    points: &'r mut [K::Point],
    /// `i += i` for each segment.
    pairs: &'r [Addition],
    checkpoint: &'r Checkpoint<'r>,
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
    work: Running<'_, K>,
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
    let Running {
        steps,
        points: scratch,
        pairs,
        checkpoint,
    } = work;
    let (running, scratch) = scratch.split_at_mut(segments);
    let (totals, scratch) = scratch.split_at_mut(segments);
    running.fill(kernel.infinity());
    totals.fill(kernel.infinity());
    let mut next = Vec::with_capacity(segments);
    for j in (0..length).rev() {
        next.clear();
        next.extend((0..segments).map(|s| Addition::new(s, s * length + j, false)));
        kernel.accumulate(running, points, &next, steps);
        kernel.accumulate(totals, running, &pairs[..segments], steps);
        checkpoint.check()?;
    }
    drop(next);
    // Segment s counts s times: the others move down, the first falls away.
    for running in running.chunks_mut(len / length) {
        running.rotate_left(1);
        if let Some(last) = running.last_mut() {
            *last = kernel.infinity();
        }
    }
    let below = Running {
        steps,
        points: scratch,
        pairs,
        checkpoint,
    };
    let below = weighted_sums(kernel, running, len / length, below)?;
    totals
        .chunks_mut(len / length)
        .zip(below)
        .map(|(totals, below)| {
            let within = affine::sum(kernel, totals, (pairs, steps), checkpoint)?;
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
