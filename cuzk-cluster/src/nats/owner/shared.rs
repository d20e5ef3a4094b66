//! The state that the owner's thread and tasks share, and the thread that acts.
//!
//! It decides nothing. The invariants: actions are carried out in order; no lock is held while
//! the server or the daemon is asked for something.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_nats::jetstream::Message;

use super::link::Link;
use super::{Home, tasks};
use crate::ledger::{Action, Ledger, Receipt, StreamId};
use crate::message::{Control, Work, WorkId};
use crate::name::Name;
use crate::nats::streams::Limits;
use crate::nats::{Settings, lock};

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
    pub(super) fn new(
        settings: &Settings,
        limits: Limits,
        name: Name,
        ledger: Ledger,
        home: Box<dyn Home>,
    ) -> Self {
        Self {
            name,
            limits,
            link: Link::new(settings.clone()),
            home,
            started: Instant::now(),
            state: Mutex::new(State {
                ledger,
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

    fn next_action(&self) -> Option<Action> {
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

    /// Carries out the actions of the ledger until the owner stops.
    pub(super) fn run(self: Arc<Self>, handle: &tokio::runtime::Handle) {
        while let Some(action) = self.next_action() {
            self.carry_out(action, handle);
        }
    }

    fn carry_out(self: &Arc<Self>, action: Action, handle: &tokio::runtime::Handle) {
        let shared = Arc::clone(self);
        match action {
            Action::Publish {
                id,
                attempt,
                excluded,
            } => drop(handle.spawn(tasks::publish(shared, id, attempt, excluded))),
            Action::Withdraw { position } => drop(handle.spawn(tasks::withdraw(shared, position))),
            Action::Cancel { id } => {
                drop(handle.spawn(tasks::order(shared, Control::Cancel(vec![id]))));
            }
            Action::Rest { node, rest } => {
                let rest_ms = u64::try_from(rest.as_millis()).unwrap_or(u64::MAX);
                tracing::warn!(%node, rest_ms, "a node rests because its proofs were wrong");
                drop(handle.spawn(tasks::order(shared, Control::Rest { node, rest_ms })));
            }
            Action::Verify {
                id,
                check,
                node,
                proof,
            } => drop(handle.spawn_blocking(move || {
                let Some(is_good) = shared.home.verify(&id, &proof) else {
                    return;
                };
                if !is_good {
                    tracing::warn!(%id, %node, "the proof of a node does not verify");
                }
                shared.with(|state, now| state.ledger.verified(&id, check, is_good, now));
            })),
            Action::ProveAtHome { id } => {
                let has_failed = lock(&self.state).ledger.has_failed(&id);
                self.home.prove(&id, has_failed);
            }
            Action::StopAtHome { id } => self.home.stop(&id),
            Action::Taken { id } => self.home.taken(&id),
            Action::Returned { id } => self.home.returned(&id),
            Action::End { id, end } => {
                self.home.ended(&id, end);
                let work = lock(&self.state).works.remove(&id);
                if let Some(work) = work {
                    handle.spawn(tasks::forget_input(shared, work));
                }
            }
            Action::Acknowledge { receipt } => {
                let message = lock(&self.state).receipts.remove(&receipt);
                if let Some(message) = message {
                    handle.spawn(async move { drop(message.ack().await) });
                }
            }
        }
    }
}
