//! The sum of many points: a tree whose levels are batches.

use super::{Addition, CurveOf, Kernel};

/// Below this many points an inversion costs more than it saves.
const TREE_MIN: usize = 32;

/// Adds up `points`, which are overwritten.
pub(crate) fn sum<K: Kernel>(
    kernel: K,
    mut points: &mut [K::Point],
    scratch: &mut K::Scratch,
) -> CurveOf<K> {
    let pairs: Vec<Addition> = (0..points.len() / 2)
        .map(|i| Addition::new(i, i, false))
        .collect();
    while points.len() >= TREE_MIN {
        let half = points.len() / 2;
        let (low, high) = points.split_at_mut(points.len() - half);
        kernel.accumulate(low, high, &pairs[..half], scratch);
        points = low;
    }
    kernel.sum_few(points)
}
