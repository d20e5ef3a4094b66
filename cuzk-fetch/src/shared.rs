//! The state of a run with its lock, and the choices and the client of its threads.
//!
//! The invariant: the lock of the state is not held while a thread waits for a source or
//! reads or writes bytes of a file.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::ListedFile;
use crate::options::Options;
use crate::remote::Client;
use crate::schedule::Began;
use crate::state::State;
use crate::verified::note_digest;

/// The run, for all its threads.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) client: Client,
    state: Mutex<State>,
    /// When each claim was made. Its lock is taken after that of the state.
    began: Mutex<Began>,
    changed: Condvar,
    arrived: Condvar,
    /// One thread notes a digest at a time.
    notes: Mutex<()>,
    /// The lock files that a thread of the run has or tries. Parameters and their key have one.
    turns: Mutex<BTreeSet<PathBuf>>,
}

/// The turn of a thread to try a lock file that other threads of the run need, too.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    shared: &'a Shared,
    lock: PathBuf,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.shared.turns().remove(&self.lock);
        self.shared.tell();
    }
}

impl Shared {
    pub(crate) fn new(options: Options, client: Client, state: State) -> Self {
        Self {
            options,
            client,
            state: Mutex::new(state),
            began: Mutex::new(Began::new()),
            changed: Condvar::new(),
            arrived: Condvar::new(),
            notes: Mutex::new(()),
            turns: Mutex::new(BTreeSet::new()),
        }
    }

    fn turns(&self) -> MutexGuard<'_, BTreeSet<PathBuf>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the turn to try a lock file, unless another thread of the run has it.
    pub(crate) fn turn(&self, lock: &Path) -> Option<Turn<'_>> {
        let is_free = self.turns().insert(lock.to_owned());
        is_free.then(|| Turn {
            shared: self,
            lock: lock.to_owned(),
        })
    }

    /// Locks the state.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the state at the end of the run.
    pub(crate) fn into_state(self) -> State {
        self.state
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the times of the claims.
    pub(crate) fn began(&self) -> MutexGuard<'_, Began> {
        self.began.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes all threads that wait for a change.
    pub(crate) fn tell(&self) {
        self.changed.notify_all();
        self.arrived.notify_all();
    }

    /// Wakes the threads that wait for bytes.
    pub(crate) fn tell_arrival(&self) {
        self.arrived.notify_all();
    }

    /// Waits for a change, and no longer than `time`.
    pub(crate) fn wait<'a>(
        &self,
        state: MutexGuard<'a, State>,
        time: Duration,
    ) -> MutexGuard<'a, State> {
        let waited = self.changed.wait_timeout(state, time);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Waits for bytes or a change, and no longer than `time`.
    pub(crate) fn wait_for_bytes<'a>(
        &self,
        state: MutexGuard<'a, State>,
        time: Duration,
    ) -> MutexGuard<'a, State> {
        let waited = self.arrived.wait_timeout(state, time);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Notes that a file has its digest. Without the note only people know less.
    pub(crate) fn note_digest(&self, file: &ListedFile) {
        let turn = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = note_digest(&self.options.folder, &file.name, file.digest);
        drop(turn);
    }

    /// Returns true if the threads must end.
    pub(crate) fn is_over(&self) -> bool {
        self.state().is_over()
    }

    /// Waits until `try_it` returns a value, and no longer than the run. Calls `waits` before
    /// the first wait.
    pub(crate) fn poll<T>(
        &self,
        waits: impl FnOnce(&mut State),
        mut try_it: impl FnMut() -> std::io::Result<Option<T>>,
    ) -> std::io::Result<Option<T>> {
        let mut waits = Some(waits);
        loop {
            if let Some(value) = try_it()? {
                return Ok(Some(value));
            }
            let mut state = self.state();
            if let Some(waits) = waits.take() {
                waits(&mut state);
            }
            if state.is_over() {
                return Ok(None);
            }
            drop(self.wait(state, POLL));
        }
    }
}

/// The time between two tries to get a lock.
const POLL: Duration = Duration::from_millis(200);
