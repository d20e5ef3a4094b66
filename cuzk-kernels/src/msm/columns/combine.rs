//! From the buckets of labels to the sums of columns.

use crate::affine::{self, Addition, CurveOf, Kernel};
use crate::error::KernelError;
use cuzk_memory::Checkpoint;

/// Returns for each bit j the sum of the buckets whose number has bit j, in order. There
/// are 2^k buckets, which are overwritten. The one with number 0 counts nowhere. It takes
/// about 2 · 2^k additions: the upper half of the buckets has the sum of the last bit.
/// Then it is added to the lower half, which has the other bits. `pairs` are `i += i`, at
/// least half as many as buckets.
///
/// # Errors
/// [`KernelError::Stopped`].
pub(super) fn combine<K: Kernel>(
    kernel: K,
    mut buckets: &mut [K::Point],
    (pairs, steps): (&[Addition], &mut [K::Step]),
    checkpoint: &Checkpoint<'_>,
) -> Result<Vec<CurveOf<K>>, KernelError> {
    let mut sums = Vec::new();
    while buckets.len() > 1 {
        let half = buckets.len() / 2;
        let (low, high) = buckets.split_at_mut(half);
        kernel.accumulate(low, high, &pairs[1..half], steps);
        checkpoint.check()?;
        sums.push(affine::sum(kernel, high, (pairs, steps), checkpoint)?);
        buckets = low;
    }
    sums.reverse();
    Ok(sums)
}
