//! The quotient's pointwise work, eight scalars at a time.
//!
//! Lengths are multiples of eight. Factors are sixteen times as large as
//! their value, as [`Fr`] wants them.

#![allow(unsafe_code)] // enters functions that enable the instructions

use rayon::prelude::*;

use super::Ifma;
use super::fr::{Fr, Words};
use super::lanes::LANES;
use super::ntt::Table;
use crate::checkpoint::Checkpoint;
use crate::error::KernelError;

/// Scalars per task.
const TASK: usize = 1 << 12;

/// `a[i] *= b[i]`.
pub(crate) fn multiply(
    token: Ifma,
    a: &mut [Words],
    b: &[Words],
    checkpoint: &dyn Checkpoint,
) -> Result<(), KernelError> {
    a.par_chunks_mut(TASK)
        .zip(b.par_chunks(TASK))
        .try_for_each(|(a, b)| {
            // SAFETY: the token proves the instructions.
            unsafe { multiply_task(token, a, b) }
            checkpoint.check()
        })
}

#[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
fn multiply_task(token: Ifma, a: &mut [Words], b: &[Words]) {
    for (a, b) in rows_mut(a).iter_mut().zip(rows(b)) {
        let factor = Fr::gather(token, b.each_ref()).times_16();
        let product = Fr::gather(token, a.each_ref()).mul_lazy(&factor);
        product.scatter(a.each_mut());
    }
}

/// `values[i] *= factor · table[i]`.
pub(crate) fn shift(
    table: Table<'_>,
    values: &mut [Words],
    factor: &Words,
    checkpoint: &dyn Checkpoint,
) -> Result<(), KernelError> {
    values
        .par_chunks_mut(TASK)
        .enumerate()
        .try_for_each(|(task, values)| {
            // SAFETY: the table's token proves the instructions.
            unsafe { shift_task(table, values, task * TASK, factor) }
            checkpoint.check()
        })
}

#[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
fn shift_task(table: Table<'_>, values: &mut [Words], start: usize, factor: &Words) {
    let token = table.token();
    let factor = Fr::broadcast(token, factor);
    for (i, values) in rows_mut(values).iter_mut().enumerate() {
        let shift = table.run::<false>(start + i * LANES);
        let shifted = Fr::gather(token, values.each_ref()).mul_lazy(&shift);
        shifted
            .carried()
            .mul_lazy(&factor)
            .scatter(values.each_mut());
    }
}

/// `values[i] = sums[i] · sum_scale − values[i] · scale / table[i]`.
pub(crate) fn unshift_from(
    (sums, sum_scale): (&[Words], &Words),
    table: Table<'_>,
    values: &mut [Words],
    scale: &Words,
    checkpoint: &dyn Checkpoint,
) -> Result<(), KernelError> {
    values
        .par_chunks_mut(TASK)
        .zip(sums.par_chunks(TASK))
        .enumerate()
        .try_for_each(|(task, (values, sums))| {
            // SAFETY: the table's token proves the instructions.
            unsafe { unshift_task((sums, sum_scale), table, values, task * TASK, scale) }
            checkpoint.check()
        })
}

#[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
fn unshift_task(
    (sums, sum_scale): (&[Words], &Words),
    table: Table<'_>,
    values: &mut [Words],
    start: usize,
    scale: &Words,
) {
    let token = table.token();
    let scale = Fr::broadcast(token, scale);
    let sum_scale = Fr::broadcast(token, sum_scale);
    for (i, (values, sums)) in rows_mut(values).iter_mut().zip(rows(sums)).enumerate() {
        // The table's inverses are negative.
        let unshift = table.run::<true>(start + i * LANES);
        let unshifted = Fr::gather(token, values.each_ref()).mul_lazy(&unshift);
        let minus = unshifted.carried().mul_lazy(&scale);
        let plus = Fr::gather(token, sums.each_ref()).mul_lazy(&sum_scale);
        plus.add_lazy(&minus).scatter(values.each_mut());
    }
}

fn rows(values: &[Words]) -> &[[Words; LANES]] {
    values.as_chunks().0
}

fn rows_mut(values: &mut [Words]) -> &mut [[Words; LANES]] {
    values.as_chunks_mut().0
}
