//! Bugs that a test plants into the engine, to see that the simulation finds them.
//!
//! Only tests have this module. The invariant: a bug is planted for one thread.

use std::cell::Cell;

/// A bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plant {
    /// The proof of a device leaves without verification.
    UnverifiedProof,
    /// A partition that has to be proved again is dropped.
    LosesRequeued,
    /// The queue takes whatever comes.
    NoBound,
    /// A partition forgets all devices that failed it but the last.
    SameDeviceAgain,
    /// Devices in quarantine get work like any other.
    TrustsAll,
    /// Partitions of jobs that have ended stay in the queues.
    KeepsEnded,
    /// The answer of a device that was given up counts.
    LateAnswerCounts,
    /// An end that the disk did not take is not written later.
    ForgetsEnds,
    /// The end of an earlier attempt is written after a later one was accepted.
    StaleEnds,
    /// A job is accepted that the disk did not take.
    AcceptsUnkept,
    /// A partition begins after its job's deadline.
    BeginsLate,
    /// Partitions wait for devices that do not come back.
    LeavesStranded,
    /// The memory of a partition is not given back.
    LeaksMemory,
    /// A new priority does not change the order.
    NoRerank,
    /// A partition that failed is not tried elsewhere.
    NoRetry,
}

thread_local! {
    static PLANTED: Cell<Option<Plant>> = const { Cell::new(None) };
}

/// Plants a bug for this thread, or none.
pub(crate) fn plant(bug: Option<Plant>) {
    PLANTED.set(bug);
}

/// Returns true if this bug is planted for this thread.
pub(crate) fn is_planted(bug: Plant) -> bool {
    PLANTED.get() == Some(bug)
}
