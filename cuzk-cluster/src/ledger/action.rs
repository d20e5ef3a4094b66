//! The actions that the ledger asks of its caller, and the terms that both use.
//!
//! It is not the ledger's state. The invariant: each action has all that the caller needs.

use std::time::Duration;

use crate::message::WorkId;
use crate::name::Name;
use crate::subject::Subject;

/// A stream, by the time of its creation. A stream that was made anew is another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub i128);

/// The position of a message in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The stream.
    pub stream: StreamId,
    /// The number of the message in it.
    pub sequence: u64,
}

/// The caller's number of a result, to acknowledge it by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Receipt(pub u64);

/// The number of a verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CheckId(pub u64);

/// The maker of a proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prover {
    /// The owner itself.
    Home,
    /// A node.
    Node(Name),
}

/// The part of the nodes in a partition that the owner proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    /// They may prove it, too.
    MayProve,
    /// They get it no more.
    MayNot,
    /// They have failed to prove it, or their proofs were wrong.
    HaveFailed,
}

/// The end of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// It has a verified proof.
    Proved {
        /// The bytes of the proof.
        proof: Vec<u8>,
        /// Its maker.
        by: Prover,
    },
    /// The owner could not prove it, either.
    Failed {
        /// The owner's reason.
        reason: String,
    },
}

impl End {
    /// Returns the maker of the proof.
    #[must_use]
    pub fn prover(&self) -> Option<&Prover> {
        match self {
            Self::Proved { by, .. } => Some(by),
            Self::Failed { .. } => None,
        }
    }
}

/// An action that the caller carries out, in the order of the actions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Publish a partition. Report the end with [`Ledger::published`] or
    /// [`Ledger::publish_failed`].
    ///
    /// [`Ledger::published`]: super::Ledger::published
    /// [`Ledger::publish_failed`]: super::Ledger::publish_failed
    Publish {
        /// The partition.
        id: WorkId,
        /// The number of earlier tries. The server drops a second copy of the same attempt.
        attempt: u32,
        /// The nodes that failed to prove it.
        excluded: Vec<Name>,
    },
    /// Remove a message from the stream, if it is still there. Nothing depends on it.
    Withdraw {
        /// The message.
        position: Position,
    },
    /// Tell all nodes to stop a partition. Nothing depends on it.
    Cancel {
        /// The partition.
        id: WorkId,
    },
    /// Verify a proof. Report with [`Ledger::verified`](super::Ledger::verified).
    Verify {
        /// The partition.
        id: WorkId,
        /// The number of this verification.
        check: CheckId,
        /// The node that made the proof.
        node: Name,
        /// The bytes of the proof.
        proof: Vec<u8>,
    },
    /// Prove a partition here, and check its witness against the constraints. Report with
    /// [`Ledger::proved_at_home`](super::Ledger::proved_at_home) or
    /// [`Ledger::failed_at_home`](super::Ledger::failed_at_home).
    ProveAtHome {
        /// The partition.
        id: WorkId,
    },
    /// Stop a partition here. Its result is not needed.
    StopAtHome {
        /// The partition.
        id: WorkId,
    },
    /// A node has begun a partition that is not at home, or has a proof of it.
    Taken {
        /// The partition.
        id: WorkId,
    },
    /// No node has a partition any more that is not at home.
    Returned {
        /// The partition.
        id: WorkId,
    },
    /// A partition has ended. Record the end before the next action.
    End {
        /// The partition.
        id: WorkId,
        /// Its end.
        end: End,
    },
    /// Acknowledge a result, so that the server forgets it.
    Acknowledge {
        /// The result.
        receipt: Receipt,
    },
    /// Tell a node to pull nothing for a time, because its proofs were wrong.
    Rest {
        /// The node.
        node: Name,
        /// The time.
        rest: Duration,
    },
}

/// The state of the stream at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survey {
    /// The time at which the owner asked for it.
    pub asked_at: Duration,
    /// The stream.
    pub stream: StreamId,
    /// The highest number that the stream has given.
    pub last_sequence: u64,
    /// For each subject, the number up to which all its messages were acknowledged.
    pub floors: Vec<(Subject, u64)>,
}
