//! Sums over full-size scalars: Pippenger's bucket method.

use std::ops::Range;

use group::Group;
use rayon::prelude::*;

use super::buckets::Buckets;
use super::multiples::Shape;
use super::part::{Terms, Wide};
use super::selected::import_selected;
use super::window::{Plan, plan, with_multiples};
use super::{CHUNK, TASK};
use crate::affine::{Addition, BATCH, CurveOf, Kernel};
use crate::checkpoint::Checkpoint;
use crate::digits::{Recoded, Window};
use crate::error::KernelError;

/// The sum over the wide scalars of all parts, whose buckets are the same.
///
/// # Errors
/// [`KernelError::Bases`], [`KernelError::Stopped`].
pub(super) fn multiply_wide<K: Kernel>(
    kernel: K,
    parts: &[Wide<'_, K::Affine>],
    checkpoint: &dyn Checkpoint,
) -> Result<CurveOf<K>, KernelError> {
    let terms = parts.iter().map(|part| part.indices.len()).sum();
    if terms == 0 {
        return Ok(CurveOf::<K>::identity());
    }
    let plan = plan(terms, rayon::current_num_threads());
    let mut sets = bucket_sets(kernel, &plan);
    let longest = parts.iter().map(|part| part.indices.len()).max();
    let mut chunk = Chunk::new(kernel, longest.unwrap_or(0).min(CHUNK));
    for part in parts {
        for start in (0..part.indices.len()).step_by(CHUNK) {
            let terms = start..(start + CHUNK).min(part.indices.len());
            let (points, recoded) = chunk.load(kernel, part, terms, &plan, checkpoint)?;
            add_to_all(
                &mut sets,
                &plan,
                (points, |place| place),
                recoded,
                checkpoint,
            )?;
        }
    }
    combine(sets, &plan, checkpoint)
}

/// Wide terms whose bases have multiples.
pub(super) struct InRows<'a, K: Kernel> {
    shape: Shape,
    /// Row after row.
    points: &'a [K::Point],
    /// By place among the wide terms: where in a row the base is.
    columns: Vec<u32>,
}

impl<'a, K: Kernel> InRows<'a, K> {
    /// `None` if not all of the terms have usable multiples.
    pub(super) fn new(kernel: K, terms: &Terms<'a, K::Affine>) -> Option<Self> {
        let multiples = terms.multiples?;
        let rank = |index: &u32| multiples.chosen().rank(*index);
        Some(Self {
            shape: multiples.shape(),
            points: multiples.points(kernel)?,
            columns: terms.wide.indices.iter().map(rank).collect::<Option<_>>()?,
        })
    }

    pub(super) fn shape(&self) -> Shape {
        self.shape
    }
}

/// The sum over the wide scalars of parts whose bases have multiples, all of
/// one shape.
///
/// # Errors
/// [`KernelError::Stopped`].
pub(super) fn multiply_in_rows<K: Kernel>(
    kernel: K,
    parts: &[(InRows<'_, K>, Wide<'_, K::Affine>)],
    checkpoint: &dyn Checkpoint,
) -> Result<CurveOf<K>, KernelError> {
    let Some((first, _)) = parts.first() else {
        return Ok(CurveOf::<K>::identity());
    };
    let plan = with_multiples(first.shape, rayon::current_num_threads());
    let mut sets = bucket_sets(kernel, &plan);
    let longest = parts.iter().map(|(_, part)| part.indices.len()).max();
    let mut recoded = first_touched_by_all(Recoded::default(), longest.unwrap_or(0).min(CHUNK));
    for (rows, part) in parts {
        for start in (0..part.indices.len()).step_by(CHUNK) {
            let len = (part.indices.len() - start).min(CHUNK);
            let recoded = &mut recoded[..len];
            recoded
                .par_iter_mut()
                .with_min_len(TASK)
                .enumerate()
                .for_each(|(i, to)| *to = plan.windows.recode(part.scalar(start + i)));
            let columns = &rows.columns[start..start + len];
            let column = |place: usize| columns[place] as usize;
            add_to_all(&mut sets, &plan, (rows.points, column), recoded, checkpoint)?;
        }
    }
    combine(sets, &plan, checkpoint)
}

/// Adds terms to all sets of buckets, in parallel.
fn add_to_all<K: Kernel>(
    sets: &mut [BucketSet<K>],
    plan: &Plan,
    (points, column): (&[K::Point], impl Fn(usize) -> usize + Sync),
    recoded: &[Recoded],
    checkpoint: &dyn Checkpoint,
) -> Result<(), KernelError> {
    sets.par_iter_mut()
        .with_max_len(1)
        .try_for_each(|set| set.add(plan, (points, &column), recoded, checkpoint))
}

/// Terms in memory: bases in the kernel's form, scalars ready to be cut.
struct Chunk<K: Kernel> {
    points: Vec<K::Point>,
    recoded: Vec<Recoded>,
}

impl<K: Kernel> Chunk<K> {
    fn new(kernel: K, len: usize) -> Self {
        Self {
            points: first_touched_by_all(kernel.infinity(), len),
            recoded: first_touched_by_all(Recoded::default(), len),
        }
    }

    /// Decodes the bases and recodes the scalars of these terms of a part, in
    /// parallel.
    fn load(
        &mut self,
        kernel: K,
        part: &Wide<'_, K::Affine>,
        terms: Range<usize>,
        plan: &Plan,
        checkpoint: &dyn Checkpoint,
    ) -> Result<(&[K::Point], &[Recoded]), KernelError> {
        let points = &mut self.points[..terms.len()];
        let recoded = &mut self.recoded[..terms.len()];
        let indices = &part.indices[terms.clone()];
        points
            .par_chunks_mut(TASK)
            .zip(recoded.par_chunks_mut(TASK))
            .zip(indices.par_chunks(TASK))
            .enumerate()
            .try_for_each(|(task, ((points, recoded), indices))| {
                let first = terms.start + task * TASK;
                for (place, recoded) in (first..).zip(recoded) {
                    *recoded = plan.windows.recode(part.scalar(place));
                }
                import_selected(kernel, part.bases, indices, points)?;
                checkpoint.check()
            })?;
        Ok((points, recoded))
    }
}

/// A vector whose pages are mapped by all threads: one alone takes milliseconds,
/// in which the others wait and no checkpoint is asked.
fn first_touched_by_all<T: Copy + Send + Sync>(value: T, len: usize) -> Vec<T> {
    (0..len)
        .into_par_iter()
        .with_min_len(TASK)
        .map(|_| value)
        .collect()
}

/// The buckets of some positions, for one share of the terms.
struct BucketSet<K: Kernel> {
    positions: Range<usize>,
    split: usize,
    buckets: Buckets<K>,
}

/// What the digits of one window are added to, and from where.
struct Cut {
    window: Window,
    /// The bucket of the digit 1, less one.
    bucket: usize,
    /// Where the window's row begins.
    row: usize,
}

impl<K: Kernel> BucketSet<K> {
    /// Adds this set's share of the terms, whose bases are in the column of
    /// `points` that `column` says.
    fn add(
        &mut self,
        plan: &Plan,
        (points, column): (&[K::Point], impl Fn(usize) -> usize),
        recoded: &[Recoded],
        checkpoint: &dyn Checkpoint,
    ) -> Result<(), KernelError> {
        let share = recoded.len().div_ceil(plan.splits);
        let start = (self.split * share).min(recoded.len());
        let end = (start + share).min(recoded.len());
        let cuts = self.cuts(plan, points.len() / plan.rows);
        let part_len = BATCH.div_ceil(cuts.len());
        for part in (start..end).step_by(part_len) {
            checkpoint.check()?;
            let terms = part..(part + part_len).min(end);
            for (place, recoded) in terms.clone().zip(&recoded[terms]) {
                let column = column(place);
                for cut in &cuts {
                    let (magnitude, negative) = cut.window.digit(recoded);
                    if magnitude != 0 {
                        let addition =
                            Addition::new(cut.bucket + magnitude - 1, cut.row + column, negative);
                        self.buckets.add(addition, points);
                    }
                }
            }
        }
        self.buckets.finish(points);
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

/// Empty buckets for all positions, those of the first positions first.
fn bucket_sets<K: Kernel>(kernel: K, plan: &Plan) -> Vec<BucketSet<K>> {
    let count = plan.positions;
    (0..count.div_ceil(plan.together) * plan.splits)
        .into_par_iter()
        .map(|i| {
            let first = i / plan.splits * plan.together;
            let positions = first..(first + plan.together).min(count);
            BucketSet {
                split: i % plan.splits,
                buckets: Buckets::new(kernel, positions.len() * plan.windows.digit_max()),
                positions,
            }
        })
        .collect()
}

/// `Σ 2^(cp) · W_p`, where W_p is the weighted sum of the buckets of position
/// p, and c the bits of a window.
fn combine<K: Kernel>(
    sets: Vec<BucketSet<K>>,
    plan: &Plan,
    checkpoint: &dyn Checkpoint,
) -> Result<CurveOf<K>, KernelError> {
    let sums: Vec<(usize, Vec<CurveOf<K>>)> = sets
        .into_par_iter()
        .with_max_len(1)
        .map(|set| {
            let digit_max = plan.windows.digit_max();
            let sums = set.buckets.weighted_sums(digit_max, checkpoint)?;
            Ok((set.positions.start, sums))
        })
        .collect::<Result<_, KernelError>>()?;
    let mut positions = vec![CurveOf::<K>::identity(); plan.positions];
    for (start, sums) in sums {
        for (position, sum) in positions.iter_mut().skip(start).zip(sums) {
            *position += sum;
        }
    }
    let total = positions
        .iter()
        .rev()
        .fold(CurveOf::<K>::identity(), |total, position| {
            (0..plan.windows.bits()).fold(total, |t, _| t.double()) + position
        });
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::affine::Portable;
    use blstrs::G2Affine;

    #[test]
    fn buckets_are_counted() {
        for (terms, threads) in [(1, 1), (1000, 2), (1 << 16, 96)] {
            let plan = plan(terms, threads);
            let sets = bucket_sets(Portable::<G2Affine>::new(), &plan);
            let positions: usize = sets.iter().map(|set| set.positions.len()).sum();
            assert_eq!(plan.buckets(), positions * plan.windows.digit_max());
        }
    }
}
