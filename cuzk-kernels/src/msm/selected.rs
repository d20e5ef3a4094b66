//! Selected bases added up: those whose scalars are ±1.

use blstrs::Scalar;
use group::Group;
use rayon::prelude::*;

use super::import::import_selected;
use super::packed::SetBits;
use super::pieces::TASK;
use super::sorted::TASK_WORDS;
use super::term::{MsmTerm, Scalars, Wide};
use super::workspace::{SUMS, Scratch, Workspace, Workspaces};
use crate::affine::{self, CurveOf, Kernel};
use crate::bases::Bases;
use crate::context::Context;
use crate::error::KernelError;
use cuzk_memory::Lent;

/// Returns the sum over a term's scalars that are ±1, and the scalars that take a
/// multiplication.
///
/// # Errors
/// [`KernelError::Bases`], [`KernelError::Memory`], [`KernelError::Stopped`].
pub(super) fn sum_ones<'a, K: Kernel>(
    kernel: K,
    part: &MsmTerm<'a, K::Affine>,
    workspaces: &Workspaces<'_, K>,
    context: Context<'a>,
) -> Result<(CurveOf<K>, Wide<'a, K::Affine>), KernelError> {
    match part.scalars {
        Scalars::Plain(scalars) => {
            let mut marks = Lent::take(context.memory, scalars.len().div_ceil(64))?;
            let plain = (scalars, &mut marks[..]);
            let (sum, count) = sum_plain(kernel, part.bases, plain, workspaces, context)?;
            Ok((sum, Wide::of_plain(part, scalars, marks, count)))
        }
        Scalars::Packed(scalars) => {
            let ones = scalars.ones();
            let sum = sum_bits(kernel, part.bases, ones, workspaces, context)?;
            Ok((sum, Wide::of_packed(part, &scalars)))
        }
    }
}

/// Returns the sum over the scalars that are ±1, and the number of those that are neither
/// ±1 nor 0. `marks` gets the bits of the latter.
fn sum_plain<K: Kernel>(
    kernel: K,
    bases: &dyn Bases<K::Affine>,
    (scalars, marks): (&[Scalar], &mut [u64]),
    workspaces: &Workspaces<'_, K>,
    context: Context<'_>,
) -> Result<(CurveOf<K>, usize), KernelError> {
    scalars
        .par_chunks(TASK)
        .zip(marks.par_chunks_mut(TASK / 64))
        .enumerate()
        .map(|(task, (scalars, marks))| {
            workspaces.with(|workspace| {
                let Workspace {
                    scratch, sorted, ..
                } = workspace;
                sorted.sort(task * TASK, scalars, marks);
                let plus = sum_selected(kernel, bases, &sorted.plus, scratch, context)?;
                let minus = sum_selected(kernel, bases, &sorted.minus, scratch, context)?;
                Ok((plus - minus, sorted.wide))
            })
        })
        .try_reduce(
            || (CurveOf::<K>::identity(), 0),
            |(a, m), (b, n)| Ok((a + b, m + n)),
        )
}

/// Returns the sum of the bases whose bit is set.
fn sum_bits<K: Kernel>(
    kernel: K,
    bases: &dyn Bases<K::Affine>,
    words: &[u64],
    workspaces: &Workspaces<'_, K>,
    context: Context<'_>,
) -> Result<CurveOf<K>, KernelError> {
    words
        .par_chunks(TASK_WORDS)
        .enumerate()
        .map(|(task, words)| {
            workspaces.with(|workspace| {
                let Workspace {
                    scratch, sorted, ..
                } = workspace;
                let indices = &mut sorted.plus;
                indices.clear();
                indices.extend(SetBits::new(words, task * TASK_WORDS * 64));
                sum_selected(kernel, bases, indices, scratch, context)
            })
        })
        .try_reduce(CurveOf::<K>::identity, |a, b| Ok(a + b))
}

/// Adds up the bases with these indices. It reads as many as there is room for, adds the
/// others to them in turn, and then adds the results to each other.
fn sum_selected<K: Kernel>(
    kernel: K,
    bases: &dyn Bases<K::Affine>,
    indices: &[u32],
    scratch: &mut Scratch<'_, K>,
    context: Context<'_>,
) -> Result<CurveOf<K>, KernelError> {
    let Scratch {
        steps,
        points,
        pairs,
    } = scratch;
    let (first, others) = indices.split_at(indices.len().min(SUMS));
    let (sums, points) = points.split_at_mut(SUMS);
    let sums = &mut sums[..first.len()];
    import_selected(kernel, bases, first, sums)?;
    context.check()?;
    for indices in others.chunks(SUMS) {
        let points = &mut points[..indices.len()];
        import_selected(kernel, bases, indices, points)?;
        context.check()?;
        kernel.accumulate(sums, points, &pairs[..indices.len()], steps);
    }
    affine::sum(kernel, sums, (pairs, steps), context.checkpoint)
}
