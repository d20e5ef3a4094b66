//! The sum of many points: a tree whose levels are batches.

use super::{Addition, CurveOf, Kernel};
use crate::error::KernelError;
use cuzk_memory::Checkpoint;

/// Below this many points an inversion costs more than it saves.
const TREE_MIN: usize = 32;

/// Adds up `points`, which are overwritten. `pairs` are `i += i`, at least half as many.
///
/// # Errors
/// [`KernelError::Stopped`].
pub(crate) fn sum<K: Kernel>(
    kernel: K,
    mut points: &mut [K::Point],
    (pairs, steps): (&[Addition], &mut [K::Step]),
    checkpoint: &Checkpoint<'_>,
) -> Result<CurveOf<K>, KernelError> {
    while points.len() >= TREE_MIN {
        let half = points.len() / 2;
        let (low, high) = points.split_at_mut(points.len() - half);
        kernel.accumulate(low, high, &pairs[..half], steps);
        points = low;
        checkpoint.check()?;
    }
    Ok(kernel.sum_few(points))
}
