//! An admission as others see it: its usage, the work that waits, and the things that are
//! shared.
//!
//! These are plain values. They are outdated as soon as the lock is released.

use std::time::Duration;

use super::reservation::Evicted;
use super::work::Lane;

/// The numbers of pieces of work and of bytes at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Pieces of work that wait.
    pub waiting: usize,
    /// Pieces of work that were admitted, have not ended and were not abandoned, with the work
    /// of [`reserve_evicting`](super::Admission::reserve_evicting).
    pub running: usize,
    /// Pieces of work in the background that were charged and have not ended.
    pub in_background: usize,
    /// All charged bytes.
    pub used_bytes: u64,
    /// Those of them that would be evicted if work waited.
    pub idle_bytes: u64,
    /// The bytes that may be charged.
    pub total_bytes: u64,
}

/// A piece of work that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitingWork {
    /// The workers that take it.
    pub lane: Lane,
    /// The pieces of work of its lane that have their turn before it.
    pub ahead: usize,
    /// The bytes that are to be charged for it: without a shared thing that is charged.
    pub needed_bytes: u64,
    /// True if it is held, and has no turn until it is released.
    pub is_held: bool,
}

/// A thing that pieces of work share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedThing<K> {
    /// Its key.
    pub key: K,
    /// The bytes that are charged for it.
    pub bytes: u64,
    /// The pieces of work that use it, with those in the background.
    pub users: usize,
    /// The time since its last use ended; none while it is used.
    pub idle: Option<Duration>,
}

/// The numbers of those that use something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Users {
    /// Pieces of work that are waited for.
    pub work: usize,
    /// Pieces of work in the background.
    pub in_background: usize,
}

impl Users {
    /// Returns the number of all.
    #[must_use]
    pub fn all(self) -> usize {
        self.work + self.in_background
    }
}

/// The answer to a request to let go of a shared thing.
#[derive(Debug)]
pub enum LetGo<K> {
    /// It is not charged.
    Absent,
    /// It is in use.
    InUse(Users),
    /// It is charged no more, and has to be freed.
    Evicted {
        /// The thing. It is not charged anew until this is dropped.
        evicted: Evicted<K>,
        /// The bytes that were charged for it.
        bytes: u64,
    },
}
