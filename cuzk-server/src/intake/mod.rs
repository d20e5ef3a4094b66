//! The budget of bytes of requests that are on their way in.
//!
//! Not what the engine takes for a job. The invariant: the bytes of all large
//! messages that are buffered are within the budget. A message counts from its first bytes
//! until the last [`IntakeGuard`] of its request is dropped. A PoRep or SnapDeals is not read
//! while critical work runs ([`Way`]).

mod body;
mod framing;
mod guard;
mod layer;
mod peek;
mod policy;
mod way;

pub use guard::{Intake, IntakeGuard};
pub use layer::{IntakeLayer, IntakeService};
pub use way::Way;

/// Messages of at most this many bytes are free: all calls but requests with a proof have
/// smaller ones.
pub const SMALL_BYTES_MAX: u64 = 64 << 10;

/// The window of a call, in bytes: what a client may send before the daemon reads it. A
/// call that waits for the budget has that much in memory.
pub const STREAM_WINDOW_BYTES: u32 = 256 << 10;

/// The calls of one connection at a time.
pub const STREAMS_MAX: u32 = 256;

/// The window of a connection. Calls that wait do not read, so it has room for all of
/// them: a PoSt on the same connection can then still be sent.
pub const CONNECTION_WINDOW_BYTES: u32 = STREAM_WINDOW_BYTES * STREAMS_MAX;

#[cfg(test)]
mod tests;
