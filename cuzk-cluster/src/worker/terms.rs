//! The terms of the pull policy: what its caller tells it, and what it asks of its caller.
//!
//! It is not the policy's state. The invariant: each command has all that the caller needs.

use std::time::Duration;

use crate::message::WorkId;
use crate::subject::{Circuit, Subject};

/// A circuit that a worker can prove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ability {
    /// The circuit.
    pub circuit: Circuit,
    /// True if its parameters are in memory.
    pub is_loaded: bool,
}

/// The number of partitions that a worker can have at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capacity {
    /// Partitions of any priority.
    pub common: usize,
    /// Urgent partitions beside them.
    pub urgent: usize,
}

/// A partition that the server delivered. `L` is what the transport acknowledges.
#[derive(Clone, Debug)]
pub struct Delivery<L> {
    /// The partition.
    pub id: WorkId,
    /// Its subject.
    pub subject: Subject,
    /// True if this worker is among the nodes that failed to prove it.
    pub is_excluded: bool,
    /// The delivery's lease.
    pub lease: L,
}

/// The end of a partition on this worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// It has a proof.
    Proved,
    /// It has none.
    Failed,
    /// Its result is not needed.
    Stopped,
}

/// The number of a request for work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PullId(pub(super) u64);

/// An action that the caller carries out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command<L> {
    /// Ask for one partition. Report each delivery, then the end of the request.
    Pull {
        /// The number of the request.
        pull: PullId,
        /// The subject.
        subject: Subject,
        /// The time that the request waits at the server. Zero: it does not wait.
        wait: Duration,
    },
    /// Prove a partition.
    Start {
        /// The partition.
        id: WorkId,
        /// Its lease.
        lease: L,
    },
    /// Keep one more lease of a partition that runs.
    Join {
        /// The partition.
        id: WorkId,
        /// The other lease.
        lease: L,
    },
    /// Give a lease back, so that the server can deliver the partition after `delay`.
    Return {
        /// The lease.
        lease: L,
        /// The delay.
        delay: Duration,
    },
    /// Stop a partition. Its result is not needed.
    Stop {
        /// The partition.
        id: WorkId,
    },
    /// The worker is drained: nothing runs and nothing is asked for.
    Leave,
}
