//! The quotient's pointwise work with scalar instructions.

use blstrs::Scalar;
use rayon::prelude::*;

use super::TASK;
use super::pass::Direction;
use super::twiddles::Twiddles;

/// `a[i] *= b[i]`.
pub(super) fn multiply(a: &mut [Scalar], b: &[Scalar]) {
    a.par_iter_mut()
        .zip(b)
        .with_min_len(TASK)
        .for_each(|(a, b)| *a *= b);
}

/// `values[i] *= factor · T[i]`.
pub(super) fn shift(values: &mut [Scalar], twiddles: &Twiddles, factor: Scalar) {
    values
        .par_iter_mut()
        .enumerate()
        .with_min_len(TASK)
        .for_each(|(i, value)| *value *= twiddles.get(i, Direction::Forward) * factor);
}

/// `values[i] = sums[i] · sum_scale − values[i] · scale / T[i]`.
pub(super) fn unshift_from(
    (sums, sum_scale): (&[Scalar], Scalar),
    values: &mut [Scalar],
    twiddles: &Twiddles,
    scale: Scalar,
) {
    values
        .par_iter_mut()
        .zip(sums)
        .enumerate()
        .with_min_len(TASK)
        .for_each(|(i, (value, sum))| {
            let unshifted = *value * twiddles.get(i, Direction::Inverse);
            *value = *sum * sum_scale - unshifted * scale;
        });
}
