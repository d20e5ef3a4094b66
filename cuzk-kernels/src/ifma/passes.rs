//! The passes of a transform in eight lanes.

use super::field::lanes::LANES;
use crate::matrix::passes as matrix;

pub(super) use matrix::rows_max;

/// Eight lanes of a task.
pub(super) type Lanes = matrix::Lanes<LANES>;

/// One pass over the values.
pub(super) type Pass = matrix::Pass<LANES>;

/// The passes of a transform, of which there are at least two.
pub(super) fn passes(len: usize) -> Vec<Pass> {
    matrix::passes(len)
}
