//! Partitions on devices, so that a device that never answers is noticed.
//!
//! Not a timer: one thread looks at all of them. The invariant: of the thread
//! that waits for a device and the thread that gave it up exactly one decides
//! what becomes of the partition.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cuzk_scheduler::admission::Ticket;

use super::shared::Shared;
use super::task::Task;
use crate::Error;

/// How many looks are taken in the time that a device is given.
const LOOKS: u32 = 20;

#[derive(Debug)]
pub(super) struct Watch {
    limit: Duration,
    state: Mutex<State>,
    closed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    next_key: u64,
    running: HashMap<u64, Running>,
    closed: bool,
}

#[derive(Debug)]
struct Running {
    station: usize,
    since: Instant,
    ticket: Ticket,
    /// What would be done again.
    again: Task,
}

/// A partition on a device.
#[derive(Debug)]
pub(super) struct Key(u64);

impl Watch {
    pub(super) fn new(limit: Duration) -> Self {
        Self {
            limit,
            state: Mutex::default(),
            closed: Condvar::new(),
        }
    }

    pub(super) fn begin(&self, station: usize, task: &Task, ticket: Ticket) -> Key {
        let mut state = self.lock();
        let key = state.next_key;
        state.next_key += 1;
        let running = Running {
            station,
            since: Instant::now(),
            ticket,
            again: task.again(),
        };
        state.running.insert(key, running);
        Key(key)
    }

    /// Whether the device answered before it was given up.
    pub(super) fn answered(&self, key: Key) -> bool {
        self.lock().running.remove(&key.0).is_some()
    }

    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.closed.notify_all();
    }

    /// Waits for the next look; whether there is one.
    fn next_look(&self) -> bool {
        let pause = (self.limit / LOOKS).max(Duration::from_millis(1));
        let (state, _) = self
            .closed
            .wait_timeout_while(self.lock(), pause, |state| !state.closed)
            .unwrap_or_else(PoisonError::into_inner);
        !state.closed
    }

    fn stalled(&self) -> Vec<Running> {
        let mut state = self.lock();
        let late = |running: &Running| running.since.elapsed() > self.limit;
        let keys: Vec<_> = state
            .running
            .iter()
            .filter(|(_, running)| late(running))
            .map(|(key, _)| *key)
            .collect();
        keys.iter()
            .filter_map(|key| state.running.remove(key))
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    pub(super) fn watch_until_closed(&self) {
        while self.watch.next_look() {
            for running in self.watch.stalled() {
                let Running {
                    station,
                    ticket,
                    again,
                    ..
                } = running;
                let error = Error::Stalled {
                    partition: again.partition,
                    after_s: self.watch.limit.as_secs(),
                };
                self.give_up(station, &error.to_string());
                self.retry(station, again, ticket, error);
            }
        }
    }
}
