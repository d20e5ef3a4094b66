//! One thread's share of the sums: buckets that points are added to.
//!
//! Points are collected into batches of additions to different slots (see `chains`). A
//! batch reads its points first: they are decoded one after the other, once for all
//! columns. A slot's first point costs no addition, so that `n` points in `b` buckets take
//! `n − b` additions, whatever their labels are. Labels only decide how large the batches
//! are. Invariant: the points in a bucket's chain add up to the bucket.

use super::chains::{Chains, Slot};
use super::combine::combine;
use super::in_place::InPlace;
use super::split::ColumnSet;
use crate::affine::{Addition, BATCH, CurveOf, Kernel};
use crate::bases::Bases;
use crate::context::Context;
use crate::error::KernelError;
use crate::msm::import::{DECODED, import_selected};

/// Slots that buckets share, besides one of their own. The batch of a bucket that gets
/// every point takes half of them. The other half lets the buckets of any mixture keep as
/// many as their largest batch took.
pub(super) const SPARES: usize = 2 * BATCH;

/// Fewest additions worth a batch. A batch that ends with fewer of them, because a bucket
/// has no slot left, gives the spare slots back.
const BATCH_MIN: usize = BATCH / 2;

/// The input of the sums.
#[derive(Clone, Copy)]
pub(super) struct Input<'a, P> {
    pub(super) bases: &'a dyn Bases<P>,
    pub(super) sets: &'a [ColumnSet],
    pub(super) context: Context<'a>,
}

/// The numbers of slots: buckets, with one for label 0 of each set, and spare ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlotCounts {
    pub(super) buckets: usize,
    pub(super) spares: usize,
}

impl SlotCounts {
    pub(super) fn of(sets: &[ColumnSet]) -> Self {
        Self {
            buckets: sets.last().map_or(0, |set| set.buckets().end),
            spares: SPARES,
        }
    }

    /// Returns the points that a thread needs, those that a batch reads included.
    pub(super) fn points(self) -> usize {
        self.buckets + self.spares + BATCH
    }

    /// Returns the bytes that a thread needs on the heap, while it decodes points `P`.
    pub(super) fn heap_bytes<P>(self) -> usize {
        let batch = BATCH * (size_of::<u32>() + 2 * size_of::<Addition>());
        Chains::heap_bytes(self.buckets, self.spares) + batch + DECODED * size_of::<P>()
    }
}

/// Additions in preparation.
struct Batch {
    /// The bases that they read.
    indices: Vec<u32>,
    /// Their sources are places among the indices.
    additions: Vec<Addition>,
    /// Those whose target is a new slot.
    copies: Vec<Addition>,
}

/// Buckets and their points.
pub(super) struct Slots<'a, 'm, K: Kernel> {
    kernel: K,
    input: Input<'a, K::Affine>,
    chains: Chains,
    batch: Batch,
    /// Buckets and spare slots. Those without a point have whatever the memory had.
    points: &'m mut [K::Point],
    /// The points that a batch adds.
    sources: &'m mut [K::Point],
    steps: &'m mut [K::Step],
}

impl<'a, 'm, K: Kernel> Slots<'a, 'm, K> {
    /// Empty buckets. `points` are [`SlotCounts::points`] and `steps` [`Kernel::STEPS`],
    /// whatever they are.
    pub(super) fn new(
        kernel: K,
        input: Input<'a, K::Affine>,
        counts: SlotCounts,
        (points, steps): (&'m mut [K::Point], &'m mut [K::Step]),
    ) -> Self {
        let (points, sources) = points.split_at_mut(counts.buckets + counts.spares);
        Self {
            kernel,
            input,
            chains: Chains::new(counts.buckets, counts.spares),
            batch: Batch {
                indices: Vec::with_capacity(BATCH),
                additions: Vec::with_capacity(BATCH),
                copies: Vec::with_capacity(BATCH),
            },
            points,
            sources,
            steps,
        }
    }

    /// Adds a base to the buckets of its label.
    ///
    /// # Errors
    /// [`KernelError::Bases`], [`KernelError::Stopped`]. The buckets are then of no use.
    #[inline]
    pub(super) fn add(&mut self, index: u32, label: u16) -> Result<(), KernelError> {
        let room = BATCH - self.input.sets.len();
        let Batch {
            indices,
            additions,
            copies,
        } = &self.batch;
        if indices.len() >= BATCH || additions.len() > room || copies.len() > room {
            self.flush()?;
        }
        let mut source = self.source(index);
        for set in self.input.sets {
            let Some(bucket) = set.bucket(label) else {
                continue;
            };
            let slot = loop {
                match self.chains.place(bucket) {
                    Some(slot) => break slot,
                    None => self.make_room()?,
                }
                source = self.source(index);
            };
            match slot {
                Slot::Filled(slot) => {
                    let addition = Addition::new(slot, source, false);
                    self.batch.additions.push(addition);
                }
                Slot::New(slot) => {
                    let copy = Addition::new(slot, source, false);
                    self.batch.copies.push(copy);
                }
            }
        }
        Ok(())
    }

    /// Has the batch read a base. Returns the base's place among its sources.
    fn source(&mut self, index: u32) -> usize {
        self.batch.indices.push(index);
        self.batch.indices.len() - 1
    }

    /// Carries out the batch because a bucket has no slot left.
    #[cold]
    fn make_room(&mut self) -> Result<(), KernelError> {
        let is_small = self.batch.additions.len() < BATCH_MIN;
        self.flush()?;
        if is_small {
            self.collapse()?;
        }
        Ok(())
    }

    /// Carries out the batch.
    fn flush(&mut self) -> Result<(), KernelError> {
        let Batch {
            indices,
            additions,
            copies,
        } = &mut self.batch;
        let Input { bases, context, .. } = self.input;
        let sources = &mut self.sources[..indices.len()];
        import_selected(self.kernel, bases, indices, sources)?;
        context.check()?;
        for copy in &*copies {
            self.points[copy.target as usize] = sources[copy.source()];
        }
        self.kernel
            .accumulate(self.points, sources, additions, self.steps);
        indices.clear();
        additions.clear();
        copies.clear();
        self.chains.next_batch();
        Ok(())
    }

    /// Adds up the chain of each bucket, so that all spare slots are free. The batch is
    /// empty.
    fn collapse(&mut self) -> Result<(), KernelError> {
        let mut additions = InPlace {
            kernel: self.kernel,
            sources: self.sources,
            steps: self.steps,
            additions: &mut self.batch.additions,
            checkpoint: self.input.context.checkpoint,
        };
        let (chains, points) = (&mut self.chains, &mut *self.points);
        while chains.halve(|slot, second| additions.add(points, (slot, second)))? {
            additions.finish(points)?;
        }
        Ok(())
    }

    /// Carries out all that was added. Each bucket then has one slot.
    ///
    /// # Errors
    /// As [`Slots::add`].
    pub(super) fn finish(&mut self) -> Result<(), KernelError> {
        self.flush()?;
        self.collapse()
    }

    /// Adds the buckets of another thread. Both have finished.
    ///
    /// # Errors
    /// [`KernelError::Stopped`].
    pub(super) fn merge(&mut self, other: &Self) -> Result<(), KernelError> {
        let additions = &mut self.batch.additions;
        for bucket in other.chains.buckets() {
            if !other.chains.is_filled(bucket) {
                continue;
            }
            if !self.chains.is_filled(bucket) {
                self.chains.fill(bucket);
                self.points[bucket] = other.points[bucket];
                continue;
            }
            additions.push(Addition::new(bucket, bucket, false));
            if additions.len() == BATCH {
                self.kernel
                    .accumulate(self.points, other.points, additions, self.steps);
                additions.clear();
                self.input.context.check()?;
            }
        }
        self.kernel
            .accumulate(self.points, other.points, additions, self.steps);
        additions.clear();
        self.input.context.check()
    }

    /// Returns the sums of the columns. They have finished.
    ///
    /// # Errors
    /// [`KernelError::Stopped`].
    pub(super) fn sums(mut self) -> Result<Vec<CurveOf<K>>, KernelError> {
        let infinity = self.kernel.infinity();
        for bucket in self.chains.buckets() {
            if !self.chains.is_filled(bucket) {
                self.points[bucket] = infinity;
            }
        }
        let mut sums = Vec::new();
        for set in self.input.sets {
            let additions = InPlace {
                kernel: self.kernel,
                sources: self.sources,
                steps: self.steps,
                additions: &mut self.batch.additions,
                checkpoint: self.input.context.checkpoint,
            };
            sums.extend(combine(&mut self.points[set.buckets()], additions)?);
        }
        Ok(sums)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::affine::Serial;
    use crate::arithmetic::Blst;
    use crate::isa::Isa;
    use crate::msm::columns::split::in_sets;
    use crate::naive;
    use blstrs::{G1Affine, G1Projective};
    use group::{Group, prime::PrimeCurveAffine};
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    const COLUMNS: usize = 4;

    /// Returns the sums of two threads, each of which adds every other base.
    fn sums(bases: &[G1Affine], labels: &[u16], sets: usize, spares: usize) -> Vec<G1Projective> {
        let kernel = Serial::<G1Affine, Blst>::new();
        let sets = in_sets(COLUMNS, sets);
        let counts = SlotCounts {
            spares,
            ..SlotCounts::of(&sets)
        };
        let input = Input {
            bases: &bases,
            sets: &sets,
            context: Isa::SCALAR.into(),
        };
        let memory = || (vec![kernel.infinity(); counts.points()], kernel.steps());
        let (mut first, mut second) = (memory(), memory());
        let mut first = Slots::new(kernel, input, counts, (&mut first.0, &mut first.1));
        let mut second = Slots::new(kernel, input, counts, (&mut second.0, &mut second.1));
        for (index, label) in (0..).zip(labels) {
            let slots = if index % 2 == 0 {
                &mut first
            } else {
                &mut second
            };
            slots.add(index, *label).unwrap();
        }
        first.finish().unwrap();
        second.finish().unwrap();
        first.merge(&second).unwrap();
        first.sums().unwrap()
    }

    /// However few slots there are to share, and however labels come.
    #[test]
    fn few_spare_slots_are_enough() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let (mut point, step) = (G1Projective::generator(), G1Affine::generator());
        let bases: Vec<G1Affine> = (0..9000)
            .map(|_| {
                point += step;
                point.into()
            })
            .collect();
        let uniform: Vec<u16> = bases.iter().map(|_| rng.gen_range(1..16)).collect();
        let runs: Vec<u16> = (0..bases.len()).map(|i| uniform[i / 1500]).collect();
        let same = vec![0b1010; bases.len()];
        for labels in [uniform, runs, same] {
            let column = |j: usize| -> Vec<u64> {
                let bit = |(i, label): (usize, &u16)| u64::from(label >> j & 1) << i;
                let words = labels.chunks(64);
                words
                    .map(|labels| labels.iter().enumerate().map(bit).sum())
                    .collect()
            };
            let columns: Vec<Vec<u64>> = (0..COLUMNS).map(column).collect();
            let columns: Vec<&[u64]> = columns.iter().map(Vec::as_slice).collect();
            let expected = naive::columns(&bases, &columns);
            for (sets, spares) in [(1, 0), (1, 1), (2, 7), (4, 100), (1, 3000)] {
                let sums = sums(&bases, &labels, sets, spares);
                assert_eq!(sums, expected, "{sets} sets, {spares} spare slots");
            }
        }
    }
}
