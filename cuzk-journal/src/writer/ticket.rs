//! A change on its way to its answer.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::JournalError;
use crate::change::{Answer, Change};

pub(super) type Answered = Result<Answer, JournalError>;

/// A change that waits for its answer.
#[derive(Debug)]
pub(super) struct Ticket(Mutex<State>);

#[derive(Debug)]
enum State {
    Queued(Change),
    Taken,
    Answered(Answered),
}

impl Ticket {
    pub(super) fn new(change: Change) -> Arc<Self> {
        Arc::new(Self(Mutex::new(State::Queued(change))))
    }

    /// Returns true if it waits to accept a job.
    pub(super) fn accepts(&self) -> bool {
        matches!(&*lock(&self.0), State::Queued(Change::Accept { .. }))
    }

    pub(super) fn take(&self) -> Option<Change> {
        match std::mem::replace(&mut *lock(&self.0), State::Taken) {
            State::Queued(change) => Some(change),
            State::Taken | State::Answered(_) => None,
        }
    }

    pub(super) fn put(&self, answer: Answered) {
        *lock(&self.0) = State::Answered(answer);
    }

    pub(super) fn answer(&self) -> Option<Answered> {
        match &*lock(&self.0) {
            State::Answered(answer) => Some(answer.clone()),
            State::Queued(_) | State::Taken => None,
        }
    }
}

/// Locks, also after a panic of another thread: the values under these locks are whole
/// at any time.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
