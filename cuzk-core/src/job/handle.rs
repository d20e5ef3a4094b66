//! A job as its caller sees it.
//!
//! Not the job, which is the engine's and does not wait for handles. The invariant:
//! everyone who waits, on a thread or in a future, is woken by the end.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use cuzk_filecoin::CircuitId;
use cuzk_scheduler::priority::Priority;

use super::state::JobState;
use super::{JobTimes, Outcome, Owner, Progress};

/// A caller's handle on a job. Dropping it does not stop the job.
///
/// It can be waited for on a thread ([`JobHandle::wait`]) or in async code:
/// `handle.await` gives the same [`Outcome`], on any executor.
#[derive(Clone)]
pub struct JobHandle {
    state: Arc<JobState>,
    owner: Weak<dyn Owner>,
}

impl std::fmt::Debug for JobHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("JobHandle").field(&self.state).finish()
    }
}

impl JobHandle {
    pub(crate) fn new(state: Arc<JobState>, owner: Weak<dyn Owner>) -> Self {
        Self { state, owner }
    }

    /// Returns the job's number in the engine's timeline.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.state.number()
    }

    /// Returns the caller's name for the job, if it has one.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        self.state.id()
    }

    /// Returns the job's priority, as it was set last.
    #[must_use]
    pub fn priority(&self) -> Priority {
        self.state.priority()
    }

    /// Blocks until the job has ended. A thread of the engine's own pool must not wait, because
    /// the job may need that thread; it can await the handle, or [poll](Self::poll) it.
    ///
    /// # Errors
    /// The first error of any of its partitions. [`Error::OwnThread`](crate::Error::OwnThread) on
    /// a thread of the engine's own pool, if the job has not ended; the job goes on.
    pub fn wait(&self) -> Outcome {
        if let Some(outcome) = self.poll() {
            return outcome;
        }
        if let Some(owner) = self.owner.upgrade() {
            owner.check_caller()?;
        }
        self.state.told().wait()
    }

    /// Blocks until the job has ended, but no longer than `timeout`. On a thread of the engine's
    /// own pool it can delay the job for as long.
    #[must_use]
    pub fn wait_for(&self, timeout: Duration) -> Option<Outcome> {
        self.state.told().wait_for(timeout)
    }

    /// Returns the job's outcome; none while it runs.
    #[must_use]
    pub fn poll(&self) -> Option<Outcome> {
        self.state.told().get()
    }

    /// Ends the job with [`Error::Cancelled`](crate::Error::Cancelled). Waiting partitions
    /// are dropped; running ones stop at their next checkpoint, and their memory is free
    /// then. Returns true if this ended the job.
    pub fn cancel(&self) -> bool {
        let owner = self.owner.upgrade();
        owner.is_some_and(|owner| owner.cancel(&self.state))
    }

    /// Gives the job another priority. Its waiting partitions take the place that they
    /// would have if the job had been submitted with it; running ones go on as they are. A
    /// job that was accepted as critical keeps its worker, its memory and its place before
    /// all others. A job that was not is at most as urgent as [`Priority::High`] ones. The
    /// journal keeps the first priority: a restart begins with that again.
    pub fn set_priority(&self, priority: Priority) {
        if let Some(owner) = self.owner.upgrade() {
            owner.set_priority(&self.state, priority);
        }
    }

    /// Returns the circuit that every partition of the job instantiates.
    #[must_use]
    pub fn circuit(&self) -> CircuitId {
        self.state.circuit()
    }

    /// Returns how many partitions are proved.
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.state.progress()
    }

    /// Returns where the job's time went so far. They are kept with its end.
    #[must_use]
    pub fn times(&self) -> JobTimes {
        self.state.times()
    }
}

impl IntoFuture for JobHandle {
    type Output = Outcome;
    type IntoFuture = Ended;

    fn into_future(self) -> Ended {
        Ended {
            state: self.state,
            waker: None,
        }
    }
}

/// The end of a job, as a future. Dropping it does not stop the job.
#[derive(Debug)]
pub struct Ended {
    state: Arc<JobState>,
    /// The number of this future at the job, once it has left a waker there.
    waker: Option<u64>,
}

impl Future for Ended {
    type Output = Outcome;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome> {
        let Self { state, waker } = self.get_mut();
        match state.told().get_or_wake(waker, context.waker()) {
            Some(outcome) => Poll::Ready(outcome),
            None => Poll::Pending,
        }
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        if let Some(number) = self.waker {
            self.state.told().forget_waker(number);
        }
    }
}
