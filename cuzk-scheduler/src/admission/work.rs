//! A piece of work on its way through an admission.

use std::time::Instant;

use super::need::OverBudget;
use super::reservation::{Evicted, Reservation};
use crate::priority::{Patience, Priority, Rank};

/// The workers that take a piece of work. Each piece of work belongs to one lane, and
/// so does each worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// All work that belongs to no other lane.
    Common,
    /// Critical work that must not wait for a worker. No other work can take this
    /// worker.
    Critical,
    /// Work that failed on another worker.
    Retry,
}

pub(super) const LANES: usize = 3;
pub(super) const LANE_LIST: [Lane; LANES] = [Lane::Common, Lane::Critical, Lane::Retry];

/// The conditions under which new work enters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entrance {
    /// It enters if the waiting work stays within the capacity.
    IfRoom,
    /// It enters however much waits. For work that is bounded elsewhere.
    AtOnce,
    /// It enters however much waits, even after closing. For more work of a job that
    /// had entered before. The caller must have a [`KeepOpen`](super::KeepOpen);
    /// otherwise the workers may have ended, and the work is refused.
    Again,
}

/// The reason for which work was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The waiting work is at its capacity.
    Full,
    /// New work is refused since closing.
    Closed,
}

/// The place of admitted work, with which it can be put back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    pub(super) rank: Rank,
}

impl Ticket {
    /// Returns its place in the order of work.
    #[must_use]
    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// Returns the place of the same work with another priority and time of arrival, as
    /// [`Rank::moved`] does.
    #[must_use]
    pub fn moved(self, priority: Priority, since: Instant, patience: Patience) -> Self {
        Self {
            rank: self.rank.moved(priority, since, patience),
        }
    }
}

/// Work that has its turn.
#[derive(Debug)]
pub enum Turn<T, K> {
    /// It may use its memory now.
    Admitted {
        /// The work.
        item: T,
        /// Its place in the order.
        ticket: Ticket,
        /// Its memory, charged until this is dropped.
        memory: Reservation<K>,
        /// The things that must be freed first. They are not charged any more.
        evicted: Evicted<K>,
    },
    /// Its memory can never be free.
    Impossible {
        /// The work.
        item: T,
        /// Its place in the order.
        ticket: Ticket,
        /// The missing memory.
        over: OverBudget,
        /// A reservation of no bytes. The work counts as running until this is dropped,
        /// so that it can be put back: no worker ends before.
        held: Reservation<K>,
    },
}
