//! A partition that runs on a worker.
//!
//! It is not the prover. The invariant: the number of checkpoints never falls.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::name::Name;

/// A partition that runs here, as its prover sees it.
#[derive(Debug)]
pub struct Run {
    pub(super) owner: Name,
    checkpoints: AtomicU64,
    is_stopped: AtomicBool,
}

impl Run {
    /// Returns a partition of `owner` that has just begun. A worker makes its own; this is for
    /// tests of a prover.
    #[must_use]
    pub fn new(owner: Name) -> Self {
        Self {
            owner,
            checkpoints: AtomicU64::new(0),
            is_stopped: AtomicBool::new(false),
        }
    }

    /// Notes that the partition advances.
    pub fn pass(&self) {
        self.checkpoints.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns true if the result is not needed any more.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// Notes that the result is not needed any more.
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    /// Returns the number of calls of [`Run::pass`].
    #[must_use]
    pub fn checkpoints(&self) -> u64 {
        self.checkpoints.load(Ordering::Relaxed)
    }
}
