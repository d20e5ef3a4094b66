//! Sums of selected bases: the terms whose scalars are ±1.

use group::{Group, prime::PrimeCurveAffine};
use rayon::prelude::*;

use super::packed::push_indices;
use super::part::Ones;
use super::stream::read_selected;
use super::{Bases, BasesError, TASK};
use crate::affine::{self, CurveOf, Kernel};
use crate::checkpoint::Checkpoint;
use crate::error::KernelError;

/// Words of packed scalars that one task sums: some 4096 ones.
const TASK_WORDS: usize = 128;

/// The sum over the scalars that are ±1.
///
/// # Errors
/// [`KernelError::Bases`], [`KernelError::Stopped`].
pub(super) fn sum_ones<K: Kernel>(
    kernel: K,
    bases: &dyn Bases<K::Affine>,
    ones: &Ones<'_>,
    checkpoint: &dyn Checkpoint,
) -> Result<CurveOf<K>, KernelError> {
    match ones {
        Ones::Listed { plus, minus } => {
            let plus = sum_listed(kernel, bases, plus, checkpoint)?;
            Ok(plus - sum_listed(kernel, bases, minus, checkpoint)?)
        }
        Ones::Bits(words) => sum_bits(kernel, bases, words, checkpoint),
    }
}

/// The sum of the bases with these indices.
fn sum_listed<K: Kernel>(
    kernel: K,
    bases: &dyn Bases<K::Affine>,
    indices: &[u32],
    checkpoint: &dyn Checkpoint,
) -> Result<CurveOf<K>, KernelError> {
    indices
        .par_chunks(TASK)
        .map_init(K::Scratch::default, |scratch, indices| {
            sum_few(kernel, bases, indices, scratch, checkpoint)
        })
        .try_reduce(CurveOf::<K>::identity, |a, b| Ok(a + b))
}

/// The sum of the bases whose bit is set.
fn sum_bits<K: Kernel>(
    kernel: K,
    bases: &dyn Bases<K::Affine>,
    words: &[u64],
    checkpoint: &dyn Checkpoint,
) -> Result<CurveOf<K>, KernelError> {
    words
        .par_chunks(TASK_WORDS)
        .enumerate()
        .map_init(
            || (K::Scratch::default(), Vec::new()),
            |(scratch, indices), (task, words)| {
                indices.clear();
                push_indices(words, task * TASK_WORDS * 64, indices);
                sum_few(kernel, bases, indices, scratch, checkpoint)
            },
        )
        .try_reduce(CurveOf::<K>::identity, |a, b| Ok(a + b))
}

/// What one task sums.
fn sum_few<K: Kernel>(
    kernel: K,
    bases: &dyn Bases<K::Affine>,
    indices: &[u32],
    scratch: &mut K::Scratch,
    checkpoint: &dyn Checkpoint,
) -> Result<CurveOf<K>, KernelError> {
    let mut points = vec![kernel.infinity(); indices.len()];
    import_selected(kernel, bases, indices, &mut points)?;
    checkpoint.check()?;
    affine::sum(kernel, &mut points, scratch, checkpoint)
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
    let mut decoded = vec![K::Affine::identity(); indices.len()];
    read_selected(bases, indices, &mut decoded)?;
    kernel.import(&decoded, points);
    Ok(())
}
