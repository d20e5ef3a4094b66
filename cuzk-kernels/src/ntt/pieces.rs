//! The size of the pieces of pointwise work.

/// Scalars per task of pointwise work.
pub(super) const TASK: usize = 1 << 12;
