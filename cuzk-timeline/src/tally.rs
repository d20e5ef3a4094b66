//! Times of a device, added up for one partition.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::Stage;

/// The time that a device takes for a partition, added up as it is recorded.
#[derive(Debug, Default)]
pub struct DeviceTally {
    waited_ns: AtomicU64,
    busy_ns: AtomicU64,
}

impl DeviceTally {
    /// Returns the time spent waiting for the device's lock.
    #[must_use]
    pub fn waited(&self) -> Duration {
        Duration::from_nanos(self.waited_ns.load(Ordering::Relaxed))
    }

    /// Returns the time in which the device was busy.
    #[must_use]
    pub fn busy(&self) -> Duration {
        Duration::from_nanos(self.busy_ns.load(Ordering::Relaxed))
    }

    pub(crate) fn add(&self, stage: Stage, time: Duration) {
        let sum = match stage {
            Stage::LockWait => &self.waited_ns,
            Stage::Device => &self.busy_ns,
            _ => return,
        };
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        sum.fetch_add(ns, Ordering::Relaxed);
    }
}
