//! The quotient's pointwise work with scalar instructions.

use blstrs::Scalar;
use rayon::prelude::*;

use super::TASK;
use super::pass::Direction;
use super::twiddles::Twiddles;
use crate::checkpoint::Checkpoint;
use crate::error::KernelError;

/// `a[i] *= b[i]`.
pub(super) fn multiply(
    a: &mut [Scalar],
    b: &[Scalar],
    checkpoint: &dyn Checkpoint,
) -> Result<(), KernelError> {
    a.par_chunks_mut(TASK)
        .zip(b.par_chunks(TASK))
        .try_for_each(|(a, b)| {
            a.iter_mut().zip(b).for_each(|(a, b)| *a *= b);
            checkpoint.check()
        })
}

/// `values[i] *= factor · T[i]`.
pub(super) fn shift(
    values: &mut [Scalar],
    twiddles: &Twiddles,
    factor: Scalar,
    checkpoint: &dyn Checkpoint,
) -> Result<(), KernelError> {
    values
        .par_chunks_mut(TASK)
        .enumerate()
        .try_for_each(|(task, values)| {
            for (i, value) in (task * TASK..).zip(values) {
                *value *= &twiddles.get(i, Direction::Forward);
                *value *= &factor;
            }
            checkpoint.check()
        })
}

/// `values[i] = sums[i] · sum_scale − values[i] · scale / T[i]`.
pub(super) fn unshift_from(
    (sums, sum_scale): (&[Scalar], Scalar),
    values: &mut [Scalar],
    twiddles: &Twiddles,
    scale: Scalar,
    checkpoint: &dyn Checkpoint,
) -> Result<(), KernelError> {
    values
        .par_chunks_mut(TASK)
        .zip(sums.par_chunks(TASK))
        .enumerate()
        .try_for_each(|(task, (values, sums))| {
            for (i, (value, sum)) in (task * TASK..).zip(values.iter_mut().zip(sums)) {
                let mut unshifted = *value;
                unshifted *= &twiddles.get(i, Direction::Inverse);
                unshifted *= &scale;
                *value = *sum;
                *value *= &sum_scale;
                *value -= &unshifted;
            }
            checkpoint.check()
        })
}
