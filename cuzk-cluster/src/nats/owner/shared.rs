//! The state that the owner's thread and tasks share.
//!
//! It decides nothing. The invariant: its lock is held for moments only, and never while the
//! server or the daemon is asked for something.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_nats::jetstream::Message;

use super::link::Link;
use super::{Home, OwnerSetup};
use crate::ledger::{Action, Ledger, Receipt, StreamId};
use crate::message::{Work, WorkId};
use crate::name::Name;
use crate::nats::lock;
use crate::nats::streams::Limits;

pub(super) struct Shared {
    pub(super) name: Name,
    pub(super) limits: Limits,
    pub(super) link: Link,
    pub(super) home: Box<dyn Home>,
    started: Instant,
    pub(super) state: Mutex<State>,
    changed: Condvar,
}

pub(super) struct State {
    pub(super) ledger: Ledger,
    /// The partitions of the ledger, without their inputs.
    pub(super) works: HashMap<WorkId, Arc<Work>>,
    /// The results that the server still has.
    pub(super) receipts: HashMap<Receipt, Message>,
    pub(super) next_receipt: u64,
    pub(super) stream: Option<StreamId>,
    /// True if work can be sent to the server.
    pub(super) is_usable: bool,
    is_stopped: bool,
}

impl State {
    /// Notes that the server can be used, or cannot.
    pub(super) fn connected(&mut self, is_usable: bool, now: Duration) {
        self.is_usable = is_usable;
        self.ledger.connected(is_usable, now);
    }
}

impl Shared {
    pub(super) fn new(setup: OwnerSetup) -> Self {
        Self {
            name: setup.name,
            limits: setup.limits,
            link: Link::new(setup.transport),
            home: setup.home,
            started: Instant::now(),
            state: Mutex::new(State {
                ledger: Ledger::new(setup.ledger),
                works: HashMap::new(),
                receipts: HashMap::new(),
                next_receipt: 0,
                stream: None,
                is_usable: false,
                is_stopped: false,
            }),
            changed: Condvar::new(),
        }
    }

    /// Ends the thread that acts.
    pub(super) fn stop(&self) {
        lock(&self.state).is_stopped = true;
        self.changed.notify_all();
    }

    pub(super) fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Calls `change` with the state and the time, and wakes the thread that acts.
    pub(super) fn with<R>(&self, change: impl FnOnce(&mut State, Duration) -> R) -> R {
        let result = change(&mut lock(&self.state), self.now());
        self.changed.notify_all();
        result
    }

    /// Waits for the next action of the ledger; none once the owner stops.
    pub(super) fn next_action(&self) -> Option<Action> {
        let mut state = lock(&self.state);
        loop {
            if state.is_stopped {
                return None;
            }
            if let Some(action) = state.ledger.next_action() {
                return Some(action);
            }
            let waited = self.changed.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }
}
