//! The sizes of the pieces in which an MSM is computed.

/// Bases that are in memory at a time, at least, where there are so many.
pub(super) const CHUNK: usize = 1 << 17;

/// The most bases that are in memory at a time.
const CHUNK_MAX: usize = 1 << 20;

/// A large MSM has at least so many chunks.
const CHUNKS: usize = 32;

/// Returns how many of so many bases are in memory at a time. Each window goes through all of
/// its buckets for each chunk, so longer chunks read the buckets less often. A chunk is a small
/// part of the memory of its MSM all the same.
pub(super) fn chunk_len(bases: usize) -> usize {
    (bases / CHUNKS).clamp(CHUNK, CHUNK_MAX).min(bases)
}

/// Bases that one task decodes or adds up at a time.
pub(super) const TASK: usize = 1 << 12;
