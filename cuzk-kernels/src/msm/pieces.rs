//! The sizes of the pieces in which an MSM is computed.

/// Bases that are in memory at a time.
pub(super) const CHUNK: usize = 1 << 17;

/// Bases that one task decodes or adds up at a time.
pub(super) const TASK: usize = 1 << 12;
