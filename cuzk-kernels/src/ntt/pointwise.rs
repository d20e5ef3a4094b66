//! The quotient's pointwise work, one element after the other.

use blstrs::Scalar;
use ff::Field;
use rayon::prelude::*;

use super::direction::Direction;
use super::pieces::TASK;
use super::twiddles::Twiddles;
use crate::arithmetic::Arithmetic;
use crate::context::Context;
use crate::error::KernelError;

/// `to[i] *= by[i]`.
pub(super) fn multiply<A: Arithmetic>(
    to: &mut [Scalar],
    by: &[Scalar],
    context: Context<'_>,
) -> Result<(), KernelError> {
    to.par_chunks_mut(TASK)
        .zip(by.par_chunks(TASK))
        .try_for_each(|(to, by)| {
            to.iter_mut()
                .zip(by)
                .for_each(|(to, by)| A::multiply(to, by));
            context.check()
        })
}

/// `to[i] = from[i]`.
pub(super) fn copy(
    from: &[Scalar],
    to: &mut [Scalar],
    context: Context<'_>,
) -> Result<(), KernelError> {
    to.par_chunks_mut(TASK)
        .zip(from.par_chunks(TASK))
        .try_for_each(|(to, from)| {
            to.copy_from_slice(from);
            context.check()
        })
}

/// `to[i] = a[i] · b[i]`.
pub(super) fn multiply_to<A: Arithmetic>(
    to: &mut [Scalar],
    [a, b]: [&[Scalar]; 2],
    context: Context<'_>,
) -> Result<(), KernelError> {
    copy(a, to, context)?;
    multiply::<A>(to, b, context)
}

/// `values[i] *= factor · T[i]`.
pub(super) fn shift<A: Arithmetic>(
    values: &mut [Scalar],
    twiddles: &Twiddles,
    factor: Scalar,
    context: Context<'_>,
) -> Result<(), KernelError> {
    let is_one = factor == Scalar::ONE;
    values
        .par_chunks_mut(TASK)
        .enumerate()
        .try_for_each(|(task, values)| {
            for (i, value) in (task * TASK..).zip(values) {
                A::multiply(value, &twiddles.get(i, Direction::Forward));
                if !is_one {
                    A::multiply(value, &factor);
                }
            }
            context.check()
        })
}

/// `values[i] = sums[i] · sum_scale − values[i] · scale / T[i]`.
pub(super) fn unshift_from<A: Arithmetic>(
    (sums, sum_scale): (&[Scalar], Scalar),
    values: &mut [Scalar],
    twiddles: &Twiddles,
    scale: Scalar,
    context: Context<'_>,
) -> Result<(), KernelError> {
    values
        .par_chunks_mut(TASK)
        .zip(sums.par_chunks(TASK))
        .enumerate()
        .try_for_each(|(task, (values, sums))| {
            for (i, (value, sum)) in (task * TASK..).zip(values.iter_mut().zip(sums)) {
                let mut unshifted = *value;
                A::multiply(&mut unshifted, &twiddles.get(i, Direction::Inverse));
                A::multiply(&mut unshifted, &scale);
                *value = *sum;
                A::multiply(value, &sum_scale);
                A::subtract(value, &unshifted);
            }
            context.check()
        })
}
