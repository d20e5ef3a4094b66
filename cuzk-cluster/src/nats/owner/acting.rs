//! The thread that carries out the actions of the ledger.
//!
//! It decides nothing. The invariant: actions are carried out in order, so an end is recorded
//! before its result is acknowledged.

use std::sync::Arc;
use std::thread;

use tokio::runtime::Handle;

use super::shared::Shared;
use super::tasks;
use crate::ledger::Action;
use crate::message::Control;
use crate::nats::lock;

/// Carries out the actions of the ledger until the owner stops.
pub(super) fn run(shared: &Arc<Shared>, handle: &Handle) {
    while let Some(action) = shared.next_action() {
        carry_out(Arc::clone(shared), action, handle);
    }
}

/// Runs `work` on a thread of its own, or here where the system gives none. Then the actions after
/// it are late.
fn apart(name: &str, work: impl FnOnce() + Clone + Send + 'static) {
    let thread = thread::Builder::new().name(name.to_owned());
    if thread.spawn(work.clone()).is_err() {
        work();
    }
}

fn carry_out(shared: Arc<Shared>, action: Action, handle: &Handle) {
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
        } => apart("cuzk-verify", move || {
            let Some(is_good) = shared.home.verify(&id, &proof) else {
                return;
            };
            if !is_good {
                tracing::warn!(%id, %node, "the proof of a node does not verify");
            }
            shared.with(|state, now| state.ledger.verified(&id, check, is_good, now));
        }),
        Action::ProveAtHome { id } => {
            let others = lock(&shared.state).ledger.others(&id);
            shared.home.prove(&id, others);
        }
        Action::StopAtHome { id } => shared.home.stop(&id),
        Action::Taken { id } => shared.home.taken(&id),
        Action::Returned { id } => shared.home.returned(&id),
        Action::End { id, end } => {
            shared.home.ended(&id, end);
            let work = lock(&shared.state).works.remove(&id);
            if let Some(work) = work {
                handle.spawn(tasks::forget_input(shared, work));
            }
        }
        Action::Acknowledge { receipt } => {
            let message = lock(&shared.state).receipts.remove(&receipt);
            if let Some(message) = message {
                handle.spawn(async move { drop(message.ack().await) });
            }
        }
    }
}
