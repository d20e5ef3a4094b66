//! The budget, shared by all calls, and the part of it that a call holds.
//!
//! Not the rules, which are [`super::policy`]'s. The invariant: every ticket has one
//! [`IntakeGuard`], or clones of it, and is given back with the last of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cuzk_core::config::Server;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tonic::Status;

use super::policy::{Class, Policy, Refusal, Ticket};
use super::way::Way;

/// The budget of bytes, shared by all calls.
#[derive(Debug, Clone)]
pub struct Intake {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    started: Instant,
    way: Way,
}

#[derive(Debug)]
struct State {
    policy: Policy,
    /// Wakes the calls that wait.
    waiting: HashMap<Ticket, oneshot::Sender<()>>,
}

/// The part of the budget that a request holds. It is in the extensions of the request.
/// Drop it when the engine has the job.
#[derive(Debug, Clone)]
pub struct IntakeGuard {
    // Only the last clone gives the bytes back.
    ticket: Arc<OwnTicket>,
}

#[derive(Debug)]
struct OwnTicket {
    number: Ticket,
    class: Class,
    shared: Arc<Shared>,
}

impl Intake {
    /// Returns a budget of `request_memory_bytes`, whose calls give `way`.
    #[must_use]
    pub fn new(request_memory_bytes: u64, way: Way) -> Self {
        let state = State {
            policy: Policy::new(request_memory_bytes),
            waiting: HashMap::new(),
        };
        Self {
            shared: Arc::new(Shared {
                state: Mutex::new(state),
                started: Instant::now(),
                way,
            }),
        }
    }

    /// Returns the budget that a configuration has.
    #[must_use]
    pub fn configured(server: &Server, way: Way) -> Self {
        Self::new(server.request_memory_bytes, way)
    }

    /// Returns the bytes that requests hold.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        self.shared.lock().policy.held_bytes()
    }

    /// Returns the number of calls that wait for a part of the budget.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.shared.lock().policy.waiting()
    }

    /// Waits for a part of the budget. A caller that goes away gives its place up.
    pub(super) async fn reserve(&self, class: Class, bytes: u64) -> Result<IntakeGuard, Status> {
        let (guard, admitted) = self.enter(class, bytes).map_err(|refusal| match refusal {
            Refusal::TooMany => Status::resource_exhausted(
                "too many calls wait for server.request_memory; call again later",
            ),
            Refusal::TooLarge => Status::resource_exhausted(format!(
                "a message of {bytes} bytes does not fit into server.request_memory; raise it"
            )),
        })?;
        // An error would mean that the ticket was given back, which only the guard does.
        let _ = admitted.await;
        Ok(guard)
    }

    fn enter(
        &self,
        class: Class,
        bytes: u64,
    ) -> Result<(IntakeGuard, oneshot::Receiver<()>), Refusal> {
        let (wake, admitted) = oneshot::channel();
        let mut state = self.shared.lock();
        let number = state.policy.enter(class, bytes)?;
        state.waiting.insert(number, wake);
        state.admit(self.shared.now());
        drop(state);
        let ticket = OwnTicket {
            number,
            class,
            shared: Arc::clone(&self.shared),
        };
        let ticket = Arc::new(ticket);
        Ok((IntakeGuard { ticket }, admitted))
    }
}

impl IntakeGuard {
    /// Notes bytes of the message.
    pub(super) fn receive(&self, bytes: u64) {
        let OwnTicket { number, shared, .. } = &*self.ticket;
        shared.lock().policy.receive(*number, bytes);
    }

    /// Returns the way that the call gives. The call of a PoSt gives none.
    pub(super) fn way(&self) -> Option<&Way> {
        let OwnTicket { class, shared, .. } = &*self.ticket;
        (*class == Class::Sealing).then_some(&shared.way)
    }

    /// Begins to measure the pace of the sender anew, because nothing was read from it.
    pub(super) fn restart_pace(&self) {
        let OwnTicket { number, shared, .. } = &*self.ticket;
        let now = shared.now();
        shared.lock().policy.restart_pace(*number, now);
    }

    /// Gives the bytes back and returns true if the sender is too slow for those who wait.
    pub(super) fn end_if_slow(&self) -> bool {
        let OwnTicket { number, shared, .. } = &*self.ticket;
        let now = shared.now();
        let is_slow = shared.lock().policy.is_slow(*number, now);
        if is_slow {
            shared.leave(*number);
        }
        is_slow
    }
}

impl Drop for OwnTicket {
    fn drop(&mut self) {
        self.shared.leave(self.number);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    fn leave(&self, ticket: Ticket) {
        let mut state = self.lock();
        state.policy.leave(ticket);
        state.waiting.remove(&ticket);
        state.admit(self.now());
    }
}

impl State {
    fn admit(&mut self, now: Duration) {
        for ticket in self.policy.admit(now) {
            if let Some(wake) = self.waiting.remove(&ticket) {
                // A call that goes away at this moment gives its ticket back by itself.
                let _ = wake.send(());
            }
        }
    }
}

#[cfg(test)]
mod tests;
