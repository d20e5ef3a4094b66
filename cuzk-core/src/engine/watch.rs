//! Partitions on devices, so that a device that never answers is noticed, and keeps
//! neither a partition nor the engine's end waiting.
//!
//! Not a timer: one thread looks at all of them. The invariants: of the thread
//! that waits for a device and the thread that gave it up exactly one decides what
//! becomes of the partition; memory that a device may still use stays charged.

use std::collections::{HashMap, HashSet};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use cuzk_scheduler::admission::{Reservation, Ticket};

use super::shared::Shared;
use super::task::Task;
use crate::Error;
use crate::config::Gpus;
use crate::kinds::CircuitId;

/// How many looks are taken in the time that a device is given.
const LOOKS: u32 = 20;

/// The time that devices are given at an end that does not wait for jobs. A region
/// takes seconds at most.
const GRACE: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct Watch {
    limit: Duration,
    look: Duration,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    next_key: u64,
    running: HashMap<u64, Running>,
    /// The device workers that wait for a device that was given up.
    lost: HashSet<ThreadId>,
    /// The device workers that have ended.
    gone: HashSet<ThreadId>,
    hurried: Option<Instant>,
    closed: bool,
}

#[derive(Debug)]
struct Running {
    station: usize,
    since: Instant,
    thread: ThreadId,
    ticket: Ticket,
    /// Whether its device can fall silent.
    is_watched: bool,
    /// What would be done again. None once the device was given up.
    again: Option<Task>,
    memory: Reservation<CircuitId>,
}

/// A partition on a device.
#[derive(Debug, Clone, Copy)]
pub(super) struct Key(u64);

/// A partition whose device was given up.
struct Stalled {
    key: Key,
    station: usize,
    ticket: Ticket,
    again: Task,
}

/// A thread that works for a device, until this is dropped.
pub(super) struct AtDevice<'a>(&'a Watch);

impl Watch {
    pub(super) fn new(gpus: &Gpus) -> Self {
        Self {
            limit: gpus.stall,
            look: (gpus.stall.min(gpus.rest) / LOOKS).max(Duration::from_millis(1)),
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// The current thread hands a partition to a station's device, which may use
    /// `memory` until it answers.
    pub(super) fn begin(
        &self,
        (station, is_watched): (usize, bool),
        task: &Task,
        ticket: Ticket,
        memory: Reservation<CircuitId>,
    ) -> Key {
        let mut state = self.lock();
        let key = state.next_key;
        state.next_key += 1;
        let running = Running {
            station,
            since: Instant::now(),
            thread: thread::current().id(),
            ticket,
            is_watched,
            again: Some(task.again()),
            memory,
        };
        state.running.insert(key, running);
        Key(key)
    }

    /// The device answered. Its memory, unless it was given up before.
    pub(super) fn answered(&self, Key(key): Key) -> Option<Reservation<CircuitId>> {
        let mut state = self.lock();
        let running = state.running.remove(&key)?;
        if running.again.is_some() {
            return Some(running.memory);
        }
        state.lost.remove(&running.thread);
        None
    }

    /// The partition was put elsewhere: nobody waits for the device any more.
    fn strand(&self, Key(key): Key) {
        if let Some(running) = self.lock().running.get_mut(&key) {
            running.memory.strand();
        }
    }

    /// From now on no device is given more than [`GRACE`].
    pub(super) fn hurry(&self) {
        self.lock().hurried.get_or_insert_with(Instant::now);
        self.changed.notify_all();
    }

    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    /// The current thread is a device worker.
    pub(super) fn enter(&self) -> AtDevice<'_> {
        AtDevice(self)
    }

    /// Waits until a device worker has ended; false if it waits for a device that
    /// was given up.
    pub(super) fn has_ended(&self, worker: ThreadId) -> bool {
        let undecided =
            |state: &mut State| !state.gone.contains(&worker) && !state.lost.contains(&worker);
        let state = self.changed.wait_while(self.lock(), undecided);
        let state = state.unwrap_or_else(PoisonError::into_inner);
        state.gone.contains(&worker)
    }

    /// Waits for the next look; whether there is one.
    fn next_look(&self) -> bool {
        let state = self.lock();
        let is_hurried = state.hurried.is_some();
        let look = if is_hurried {
            self.look.min(GRACE / LOOKS)
        } else {
            self.look
        };
        let (state, _) = self
            .changed
            .wait_timeout_while(state, look, |state| {
                !state.closed && state.hurried.is_some() == is_hurried
            })
            .unwrap_or_else(PoisonError::into_inner);
        !state.closed
    }

    fn stalled(&self) -> Vec<Stalled> {
        let mut state = self.lock();
        let State {
            running,
            lost,
            hurried,
            ..
        } = &mut *state;
        let no_grace = hurried.is_some_and(|since| since.elapsed() > GRACE);
        let late = |running: &Running| {
            running.is_watched && (no_grace || running.since.elapsed() > self.limit)
        };
        let late = running.iter_mut().filter(|(_, running)| late(running));
        let stalled: Vec<_> = late
            .filter_map(|(key, running)| {
                let again = running.again.take()?;
                lost.insert(running.thread);
                Some(Stalled {
                    key: Key(*key),
                    station: running.station,
                    ticket: running.ticket,
                    again,
                })
            })
            .collect();
        drop(state);
        self.changed.notify_all();
        stalled
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for AtDevice<'_> {
    fn drop(&mut self) {
        self.0.lock().gone.insert(thread::current().id());
        self.0.changed.notify_all();
    }
}

impl Shared {
    pub(super) fn watch_until_closed(&self) {
        while self.watch.next_look() {
            for stalled in self.watch.stalled() {
                self.has_stalled(stalled);
            }
            // What only a rested device can take may have waited for its rest.
            if self.stations.any_is_rested() {
                self.ready.wake();
            }
        }
    }

    fn has_stalled(&self, stalled: Stalled) {
        let Stalled {
            key,
            station,
            ticket,
            again,
        } = stalled;
        let error = Error::Stalled {
            partition: again.partition,
            after_s: self.watch.limit.as_secs(),
        };
        self.give_up(station, &error.to_string());
        self.retry(station, again, ticket, error);
        self.watch.strand(key);
    }
}
