//! Sums of selected bases: the terms whose scalars are ±1.

use blstrs::Scalar;
use ff::Field;
use group::{Group, prime::PrimeCurveAffine};
use rayon::prelude::*;

use super::packed::SetBits;
use super::part::{Part, Scalars, Wide};
use super::stream::read_selected;
use super::workspace::{SUMS, Scratch, Workspace, Workspaces};
use super::{Bases, BasesError, TASK};
use crate::affine::{self, CurveOf, Kernel};
use crate::context::Context;
use crate::error::KernelError;
use cuzk_memory::Lent;

/// Words of packed scalars that one task sums: some 4096 ones.
const TASK_WORDS: usize = 128;

/// Points that are decoded at a time where they are not read from their encodings.
pub(super) const DECODED: usize = 128;

/// The sum over a part's scalars that are ±1, and the terms that take a
/// multiplication.
///
/// # Errors
/// [`KernelError::Bases`], [`KernelError::Memory`], [`KernelError::Stopped`].
pub(super) fn sum_ones<'a, K: Kernel>(
    kernel: K,
    part: &Part<'a, K::Affine>,
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

/// The sum over the scalars that are ±1, and how many are neither that nor 0,
/// which `marks` gets the bits of.
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

/// The sum of the bases whose bit is set.
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

/// Some plain scalars, by what has to be done.
pub(super) struct Sorted {
    /// Indices of those that are 1, also of packed ones.
    plus: Vec<u32>,
    /// Indices of those that are −1.
    minus: Vec<u32>,
    /// How many take a multiplication.
    wide: usize,
}

impl Default for Sorted {
    fn default() -> Self {
        Self {
            plus: Vec::with_capacity(Self::PLUS_MAX),
            minus: Vec::with_capacity(TASK),
            wide: 0,
        }
    }
}

impl Sorted {
    const PLUS_MAX: usize = if TASK_WORDS * 64 > TASK {
        TASK_WORDS * 64
    } else {
        TASK
    };

    /// What it has on the heap.
    pub(super) const HEAP_BYTES: usize = (Self::PLUS_MAX + TASK) * size_of::<u32>();

    /// Sorts scalars, the first of which has index `start`. `marks` gets a bit for
    /// each that takes a multiplication.
    #[expect(clippy::cast_possible_truncation, reason = "at most 2^31 scalars")]
    fn sort(&mut self, start: usize, scalars: &[Scalar], marks: &mut [u64]) {
        let minus_one = -Scalar::ONE;
        self.plus.clear();
        self.minus.clear();
        self.wide = 0;
        for (word, (scalars, mark)) in scalars.chunks(64).zip(marks).enumerate() {
            *mark = 0;
            for (bit, scalar) in scalars.iter().enumerate() {
                let index = (start + word * 64 + bit) as u32;
                if *scalar == Scalar::ZERO {
                } else if *scalar == Scalar::ONE {
                    self.plus.push(index);
                } else if *scalar == minus_one {
                    self.minus.push(index);
                } else {
                    *mark |= 1 << bit;
                }
            }
            self.wide += mark.count_ones() as usize;
        }
    }
}

/// The sum of the bases with these indices: as many as there is room for, to which the
/// others are added in turn, and then to each other.
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

/// Reads the bases with these indices into the kernel's form.
///
/// # Errors
/// When a base is no point.
pub(super) fn import_selected<K: Kernel>(
    kernel: K,
    bases: &dyn Bases<K::Affine>,
    indices: &[u32],
    points: &mut [K::Point],
) -> Result<(), BasesError> {
    if let Some(encoded) = bases.encoded()
        && kernel.import_encoded(encoded, indices, points)
    {
        return Ok(());
    }
    // Also if an encoding is bad: reading it again tells which, and why.
    let mut decoded = vec![K::Affine::identity(); indices.len().min(DECODED)];
    for (indices, points) in indices.chunks(DECODED).zip(points.chunks_mut(DECODED)) {
        let decoded = &mut decoded[..indices.len()];
        read_selected(bases, indices, decoded)?;
        kernel.import(decoded, points);
    }
    Ok(())
}
