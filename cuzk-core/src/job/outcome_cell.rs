//! The place of a job's outcome, where threads and futures wait for it.
//!
//! Not the decision how a job ends, which is the job's. The invariants: an outcome is set
//! once and stays; everyone who waits is woken by it; no lock is held while a caller's
//! waker runs, or is dropped.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use super::Outcome;

#[derive(Debug, Default)]
pub(crate) struct OutcomeCell {
    waiting: Mutex<Waiting>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    outcome: Option<Outcome>,
    /// At most one of each future, with the future's number.
    wakers: Vec<(u64, Waker)>,
    /// The number of futures that have left a waker.
    futures: u64,
}

impl OutcomeCell {
    /// Sets the outcome, and wakes everyone who waits for it.
    pub(super) fn set(&self, outcome: Outcome) {
        let mut waiting = self.lock();
        waiting.outcome = Some(outcome);
        let wakers = std::mem::take(&mut waiting.wakers);
        drop(waiting);
        self.ended.notify_all();
        for (_, waker) in wakers {
            // The waker is the caller's code.
            if catch_unwind(AssertUnwindSafe(|| waker.wake())).is_err() {
                tracing::error!("a waker of a job's future panicked");
            }
        }
    }

    /// Returns the outcome, if it is set.
    pub(crate) fn get(&self) -> Option<Outcome> {
        self.lock().outcome.clone()
    }

    /// Returns the outcome, if it is set. If not, `waker` is woken by it, in place of the
    /// one that the same future left before. `future` is the number of the future, once it
    /// has left a waker.
    pub(super) fn get_or_wake(&self, future: &mut Option<u64>, waker: &Waker) -> Option<Outcome> {
        // Cloned before the lock is taken: it is the caller's code.
        let waker = waker.clone();
        let mut waiting = self.lock();
        if waiting.outcome.is_some() {
            return waiting.outcome.clone();
        }
        let mut left = waiting.wakers.iter_mut();
        if let Some((_, left)) = left.find(|(number, _)| Some(*number) == *future) {
            let left = std::mem::replace(left, waker);
            drop(waiting);
            drop(left);
        } else {
            waiting.futures += 1;
            let number = waiting.futures;
            *future = Some(number);
            waiting.wakers.push((number, waker));
        }
        None
    }

    /// Drops the waker of a future that waits no longer.
    pub(super) fn forget_waker(&self, future: u64) {
        let mut waiting = self.lock();
        let forgotten = waiting
            .wakers
            .extract_if(.., |(number, _)| *number == future);
        let forgotten: Vec<_> = forgotten.collect();
        drop(waiting);
        drop(forgotten);
    }

    /// Returns the number of futures that wait.
    #[cfg(test)]
    pub(super) fn num_wakers(&self) -> usize {
        self.lock().wakers.len()
    }

    /// Blocks until the outcome is set.
    pub(super) fn wait(&self) -> Outcome {
        let mut waiting = self.lock();
        loop {
            if let Some(outcome) = &waiting.outcome {
                return outcome.clone();
            }
            let woken = self.ended.wait(waiting);
            waiting = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Blocks until the outcome is set, for at most `timeout`.
    pub(super) fn wait_for(&self, timeout: Duration) -> Option<Outcome> {
        let (waiting, _) = self
            .ended
            .wait_timeout_while(self.lock(), timeout, |waiting| waiting.outcome.is_none())
            .unwrap_or_else(PoisonError::into_inner);
        waiting.outcome.clone()
    }

    // Every change under the lock is whole before anything that can panic.
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
