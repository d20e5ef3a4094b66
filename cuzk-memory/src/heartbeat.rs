//! A count that grows while computations go on.
//!
//! This is not a clock and not a measure of progress: it tells a computation that goes on
//! from one that hangs. The invariant: the count never falls.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A count of signs of life. Clones share the count.
///
/// ```
/// use cuzk_memory::{Checkpoint, Heartbeat};
///
/// let heartbeat = Heartbeat::default();
/// let checkpoint = Checkpoint::never().counted_by(&heartbeat);
/// assert_eq!(checkpoint.check(), Ok(()));
/// assert_eq!(heartbeat.count(), 1);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Heartbeat(Arc<AtomicU64>);

impl Heartbeat {
    /// Counts a sign of life. Orders nothing: it costs one atomic addition.
    #[inline]
    pub fn beat(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of signs of life.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
