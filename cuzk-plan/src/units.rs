//! Sizes as whole numbers of bytes.

const GIB: f64 = (1_u64 << 30) as f64;

/// Returns the bytes of a size in GiB.
pub(crate) fn gib(size_gib: f64) -> u64 {
    bytes(size_gib * GIB)
}

/// Returns a number of bytes without its fraction; none is negative or too large.
#[allow(
    clippy::cast_possible_truncation,
    reason = "the cast saturates, and descriptions have at most 10^15 of anything"
)]
pub(crate) fn bytes(size: f64) -> u64 {
    size as u64
}

/// Returns a number of bytes in GiB.
pub(crate) fn in_gib(bytes: u64) -> f64 {
    bytes as f64 / GIB
}

/// Returns a number of things without its fraction.
#[allow(
    clippy::cast_possible_truncation,
    reason = "the cast saturates, and counts are checked to be small"
)]
pub(crate) fn count(number: f64) -> u32 {
    number as u32
}
