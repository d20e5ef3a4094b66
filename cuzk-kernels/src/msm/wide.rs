//! The MSM over full-size scalars: Pippenger's bucket method.

use std::ops::Range;

use group::Group;
use rayon::prelude::*;

use super::buckets::Buckets;
use super::import::import_selected;
use super::multiples::Multiples;
use super::packed::SetBits;
use super::pieces::{TASK, chunk_len};
use super::shape::Shape;
use super::term::Wide;
use super::window::{Choose, Plan, with_multiples};
use super::workspace::{Workspace, Workspaces};
use crate::affine::{Addition, BATCH, CurveOf, Kernel};
use crate::bases::Bases;
use crate::context::Context;
use crate::digits::{Recoded, Window, Windows};
use crate::error::KernelError;
use cuzk_memory::{Lent, Memory};

/// Computes the MSM over the wide scalars of all terms, which share their buckets. `choose`
/// returns the plan for the numbers of scalars and of threads.
///
/// # Errors
/// [`KernelError::Bases`], [`KernelError::Memory`], [`KernelError::Stopped`].
pub(super) fn multiply_wide<K: Kernel>(
    kernel: K,
    parts: &[Wide<'_, K::Affine>],
    choose: Choose<'_>,
    workspaces: &Workspaces<'_, K>,
    context: Context<'_>,
) -> Result<CurveOf<K>, KernelError> {
    let terms = parts.iter().map(|part| part.count).sum();
    if terms == 0 {
        return Ok(CurveOf::<K>::identity());
    }
    let plan = choose(terms, rayon::current_num_threads());
    let mut memory = Lent::take(context.memory, plan.buckets())?;
    let mut sets = BucketSets::new(kernel, &plan, &mut memory, workspaces);
    let longest = longest(parts.iter());
    let mut points = Lent::<K::Point>::take(context.memory, longest)?;
    let mut chunk = Chunk::take(context.memory, longest)?;
    for part in parts {
        let mut indices = SetBits::new(part.marks(), 0);
        for start in (0..part.count).step_by(longest) {
            let chunk = chunk.load(part, start, &mut indices, &plan.windows);
            let points = &mut points[..chunk.indices.len()];
            decode(kernel, part.bases, chunk.indices, points, context)?;
            sets.add(&plan, (points, |place| place), chunk.recoded, context)?;
        }
    }
    sets.combine(&plan, context)
}

/// Wide terms whose bases have multiples.
pub(super) struct InRows<'a, K: Kernel> {
    multiples: Multiples<'a, K::Affine>,
    /// Row after row.
    points: &'a [K::Point],
}

impl<'a, K: Kernel> InRows<'a, K> {
    /// `None` if not all of the terms have usable multiples.
    pub(super) fn new(kernel: K, terms: &Wide<'a, K::Affine>) -> Option<Self> {
        let multiples = terms.multiples?;
        let points = multiples.points(kernel)?;
        multiples
            .chosen()
            .covers(terms.marks())
            .then_some(Self { multiples, points })
    }

    pub(super) fn shape(&self) -> Shape {
        self.multiples.shape()
    }

    /// Where in a row a base is that has multiples.
    fn column(&self, index: u32) -> u32 {
        self.multiples.chosen().rank(index).unwrap_or(0)
    }
}

/// Computes the MSM over the wide scalars of terms whose bases have multiples, all of one
/// shape.
///
/// # Errors
/// [`KernelError::Memory`], [`KernelError::Stopped`].
pub(super) fn multiply_in_rows<K: Kernel>(
    kernel: K,
    parts: &[(InRows<'_, K>, Wide<'_, K::Affine>)],
    workspaces: &Workspaces<'_, K>,
    context: Context<'_>,
) -> Result<CurveOf<K>, KernelError> {
    let Some((first, _)) = parts.iter().find(|(_, part)| part.count > 0) else {
        return Ok(CurveOf::<K>::identity());
    };
    let shape = first.shape();
    let plan = with_multiples(shape.bits(), shape.rows(), rayon::current_num_threads());
    let mut memory = Lent::take(context.memory, plan.buckets())?;
    let mut sets = BucketSets::new(kernel, &plan, &mut memory, workspaces);
    let longest = longest(parts.iter().map(|(_, part)| part));
    let mut chunk = Chunk::take(context.memory, longest)?;
    for (rows, part) in parts {
        let mut indices = SetBits::new(part.marks(), 0);
        for start in (0..part.count).step_by(longest) {
            let chunk = chunk.load(part, start, &mut indices, &plan.windows);
            let columns = chunk.indices;
            columns
                .par_iter_mut()
                .with_min_len(TASK)
                .for_each(|index| *index = rows.column(*index));
            let column = |place: usize| columns[place] as usize;
            sets.add(&plan, (rows.points, column), chunk.recoded, context)?;
        }
    }
    sets.combine(&plan, context)
}

/// Terms of the longest chunk.
fn longest<'a, P: 'a>(parts: impl Iterator<Item = &'a Wide<'a, P>>) -> usize {
    chunk_len(parts.map(|part| part.count).max().unwrap_or(0))
}

/// Some of a part's terms, in memory: which they are, and their scalars ready to
/// be cut.
struct Chunk<'m> {
    indices: Lent<'m, u32>,
    recoded: Lent<'m, Recoded>,
}

/// The terms that [`Chunk::load`] loaded.
struct Loaded<'a> {
    indices: &'a mut [u32],
    recoded: &'a [Recoded],
}

impl<'m> Chunk<'m> {
    fn take(memory: &'m dyn Memory, len: usize) -> Result<Self, KernelError> {
        Ok(Self {
            indices: Lent::take(memory, len)?,
            recoded: Lent::take(memory, len)?,
        })
    }

    /// Loads the terms of a part from place `start` on, whose indices are the next
    /// ones.
    fn load<P>(
        &mut self,
        part: &Wide<'_, P>,
        start: usize,
        next: &mut SetBits<'_>,
        windows: &Windows,
    ) -> Loaded<'_> {
        let len = (part.count - start).min(self.indices.len());
        let (indices, recoded) = (&mut self.indices[..len], &mut self.recoded[..len]);
        for (index, next) in indices.iter_mut().zip(next) {
            *index = next;
        }
        recoded
            .par_iter_mut()
            .with_min_len(TASK)
            .zip(&*indices)
            .enumerate()
            .for_each(|(i, (to, index))| {
                *to = windows.recode(part.scalar(start + i, *index));
            });
        Loaded { indices, recoded }
    }
}

/// Reads the bases with these indices into the kernel's form, in parallel.
fn decode<K: Kernel>(
    kernel: K,
    bases: &dyn Bases<K::Affine>,
    indices: &[u32],
    points: &mut [K::Point],
    context: Context<'_>,
) -> Result<(), KernelError> {
    points
        .par_chunks_mut(TASK)
        .zip(indices.par_chunks(TASK))
        .try_for_each(|(points, indices)| {
            import_selected(kernel, bases, indices, points)?;
            context.check()
        })
}

/// The buckets of an MSM.
struct BucketSets<'m, 'w, K: Kernel> {
    sets: Vec<BucketSet<'m, K>>,
    workspaces: &'m Workspaces<'w, K>,
}

/// The buckets of some positions, for one share of the terms.
struct BucketSet<'m, K: Kernel> {
    positions: Range<usize>,
    split: usize,
    buckets: Buckets<'m, K>,
}

/// The buckets to which the digits of one window are added, and the digits' place.
struct Cut {
    window: Window,
    /// The bucket of the digit 1, less one.
    bucket: usize,
    /// Where the window's row begins.
    row: usize,
}

impl<K: Kernel> BucketSet<'_, K> {
    /// Adds this set's share of the terms, whose bases are in the column of
    /// `points` that `column` says.
    fn add(
        &mut self,
        plan: &Plan,
        (points, column): (&[K::Point], impl Fn(usize) -> usize),
        recoded: &[Recoded],
        workspace: &mut Workspace<'_, K>,
        context: Context<'_>,
    ) -> Result<(), KernelError> {
        let share = recoded.len().div_ceil(plan.splits);
        let start = (self.split * share).min(recoded.len());
        let end = (start + share).min(recoded.len());
        let cuts = self.cuts(plan, points.len() / plan.rows);
        let part_len = BATCH.div_ceil(cuts.len());
        let mut filling = self.buckets.filling(workspace, points);
        for part in (start..end).step_by(part_len) {
            context.check()?;
            let terms = part..(part + part_len).min(end);
            for (place, recoded) in terms.clone().zip(&recoded[terms]) {
                let column = column(place);
                for cut in &cuts {
                    let (magnitude, negative) = cut.window.digit(recoded);
                    if magnitude != 0 {
                        let bucket = cut.bucket + magnitude - 1;
                        filling.add(Addition::new(bucket, cut.row + column, negative));
                    }
                }
            }
        }
        filling.finish();
        Ok(())
    }

    /// The windows of this set's positions.
    fn cuts(&self, plan: &Plan, row_len: usize) -> Vec<Cut> {
        let window = |row: usize, position: usize| row * plan.positions + position;
        let cut = |row: usize, position: usize| Cut {
            window: plan.windows.window(window(row, position)),
            bucket: (position - self.positions.start) * plan.windows.digit_max(),
            row: row * row_len,
        };
        (0..plan.rows)
            .flat_map(|row| self.positions.clone().map(move |position| (row, position)))
            .filter(|(row, position)| window(*row, *position) < plan.windows.count())
            .map(|(row, position)| cut(row, position))
            .collect()
    }
}

impl<'m, 'w, K: Kernel> BucketSets<'m, 'w, K> {
    /// Empty buckets for all positions, those of the first positions first, in
    /// memory for all of them.
    fn new(
        kernel: K,
        plan: &Plan,
        mut memory: &'m mut [K::Point],
        workspaces: &'m Workspaces<'w, K>,
    ) -> Self {
        let count = plan.positions;
        let mut places = Vec::new();
        for i in 0..count.div_ceil(plan.together) * plan.splits {
            let first = i / plan.splits * plan.together;
            let positions = first..(first + plan.together).min(count);
            let len = plan.buckets_of(positions.clone());
            let (head, tail) = memory.split_at_mut(len);
            places.push((i % plan.splits, positions, head));
            memory = tail;
        }
        let sets = places
            .into_par_iter()
            .map(|(split, positions, memory)| BucketSet {
                positions,
                split,
                buckets: Buckets::new(kernel, memory),
            })
            .collect();
        Self { sets, workspaces }
    }

    /// Adds terms to all of them, in parallel.
    fn add(
        &mut self,
        plan: &Plan,
        (points, column): (&[K::Point], impl Fn(usize) -> usize + Sync),
        recoded: &[Recoded],
        context: Context<'_>,
    ) -> Result<(), KernelError> {
        let Self { sets, workspaces } = self;
        sets.par_iter_mut().with_max_len(1).try_for_each(|set| {
            workspaces
                .with(|workspace| set.add(plan, (points, &column), recoded, workspace, context))
        })
    }

    /// `Σ 2^(cp) · W_p`, where W_p is the weighted sum of the buckets of position
    /// p, and c the bits of a window.
    fn combine(self, plan: &Plan, context: Context<'_>) -> Result<CurveOf<K>, KernelError> {
        let Self { sets, workspaces } = self;
        let weighted_sums = |mut set: BucketSet<'_, K>, workspace: &mut Workspace<'_, K>| {
            // If there are several positions, they have equally many.
            let digit_max = plan.windows.digit_max_of(set.positions.start);
            let scratch = &mut workspace.scratch;
            let sums = set
                .buckets
                .weighted_sums(digit_max, scratch, context.checkpoint)?;
            Ok((set.positions.start, sums))
        };
        let sums: Vec<(usize, Vec<CurveOf<K>>)> = sets
            .into_par_iter()
            .with_max_len(1)
            .map(|set| workspaces.with(|workspace| weighted_sums(set, workspace)))
            .collect::<Result<_, KernelError>>()?;
        let mut positions = vec![CurveOf::<K>::identity(); plan.positions];
        for (start, sums) in sums {
            for (position, sum) in positions.iter_mut().skip(start).zip(sums) {
                *position += sum;
            }
        }
        let windows = positions.iter().enumerate().rev();
        Ok(
            windows.fold(CurveOf::<K>::identity(), |total, (window, position)| {
                (0..plan.windows.bits_of(window)).fold(total, |t, _| t.double()) + position
            }),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::affine::Serial;
    use crate::arithmetic::Blst;
    use crate::msm::window::plan;
    use crate::msm::workspace::Area;
    use blstrs::G2Affine;
    use cuzk_memory::Mapped;

    #[test]
    fn buckets_are_counted() {
        for (terms, threads) in [(1, 1), (1000, 2), (1 << 16, 96)] {
            let plan = plan(terms, threads);
            let kernel = Serial::<G2Affine, Blst>::new();
            let mut memory = vec![kernel.infinity(); plan.buckets()];
            let mut area = Area::take(&Mapped, 1).unwrap();
            let workspaces = area.workspaces();
            let BucketSets { sets, .. } = BucketSets::new(kernel, &plan, &mut memory, &workspaces);
            let buckets = sets
                .iter()
                .map(|set| plan.buckets_of(set.positions.clone()));
            assert_eq!(plan.buckets(), buckets.sum::<usize>());
        }
    }
}
