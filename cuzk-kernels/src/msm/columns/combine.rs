//! From the buckets of labels to the sums of columns.

use std::iter::once;

use group::prime::PrimeCurveAffine;

use super::in_place::InPlace;
use crate::affine::{CurveOf, Kernel};
use crate::error::KernelError;

/// Returns for each bit j the sum of the buckets whose number has bit j, in order. There
/// are 2^k buckets, which are overwritten. The one with number 0 counts nowhere.
///
/// It takes about 2 · 2^k additions in k rounds, each of which is a batch or a few. The
/// upper half of the buckets has the sum of the last bit. Then it is added to the lower
/// half, which has the other bits. Upper halves are added up meanwhile, by half in each
/// round.
///
/// # Errors
/// [`KernelError::Stopped`].
pub(super) fn combine<K: Kernel>(
    buckets: &mut [K::Point],
    mut additions: InPlace<'_, K>,
) -> Result<Vec<CurveOf<K>>, KernelError> {
    let columns = buckets.len().ilog2();
    for column in (0..columns).rev() {
        let half = 1 << column;
        let uppers = (column + 1..columns).map(|upper| 1 << upper);
        let pairs = once(0)
            .chain(uppers)
            .flat_map(|start| (start..start + half).map(move |i| (i, i + half)))
            .filter(|(target, _)| *target != 0);
        for pair in pairs {
            additions.add(buckets, pair)?;
        }
        additions.finish(buckets)?;
    }
    let mut sums = vec![K::Affine::identity(); columns as usize];
    for (column, sum) in sums.iter_mut().enumerate() {
        let bucket = 1 << column;
        let kernel = additions.kernel;
        kernel.export(&buckets[bucket..=bucket], std::slice::from_mut(sum));
    }
    Ok(sums.iter().map(K::Affine::to_curve).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::affine::{BATCH, Serial};
    use crate::arithmetic::Blst;
    use blstrs::{G1Affine, Scalar};
    use cuzk_memory::NEVER_STOP;

    /// Also where a round is more than a batch. Bucket i has the point i², and −i² if i is
    /// odd. Bucket 0 has something else.
    #[test]
    fn a_sum_has_the_buckets_with_its_bit() {
        let kernel = Serial::<G1Affine, Blst>::new();
        let scalar = |i: u64| match i % 2 {
            0 => Scalar::from(i * i),
            _ => -Scalar::from(i * i),
        };
        for columns in [0, 1, 2, 5, 13] {
            let mut buckets: Vec<G1Affine> = (0..1 << columns)
                .map(|i| (G1Affine::generator() * scalar(i)).into())
                .collect();
            buckets[0] = G1Affine::generator();
            let additions = InPlace {
                kernel,
                sources: &mut vec![kernel.infinity(); BATCH],
                steps: &mut kernel.steps(),
                additions: &mut Vec::new(),
                checkpoint: &NEVER_STOP,
            };
            let expected: Vec<_> = (0..columns)
                .map(|column| {
                    let with_bit = (0..1 << columns).filter(|i| i >> column & 1 == 1);
                    G1Affine::generator() * with_bit.map(scalar).sum::<Scalar>()
                })
                .collect();
            let sums = combine(&mut buckets, additions).unwrap();
            assert_eq!(sums, expected, "{columns} columns");
        }
    }
}
