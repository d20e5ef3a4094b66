//! An admission as others see it: the work that waits, and the things that are shared.
//!
//! These are plain values. They are outdated as soon as the lock is released.

use std::time::Duration;

use super::reservation::Evicted;
use super::work::Lane;

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
    /// The pieces of work that use it.
    pub users: usize,
    /// The time since its last use ended; none while it is used.
    pub idle: Option<Duration>,
}

/// The answer to a request to let go of a shared thing.
#[derive(Debug)]
pub enum LetGo<K> {
    /// It is not charged.
    Absent,
    /// So many pieces of work use it.
    InUse(usize),
    /// It is charged no more, and has to be freed.
    Evicted {
        /// The thing. It is not charged anew until this is dropped.
        evicted: Evicted<K>,
        /// The bytes that were charged for it.
        bytes: u64,
    },
}
