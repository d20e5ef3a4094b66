//! The ledger of an owner: each partition that it has accepted, from the offer to the end.
//!
//! It is not the journal, not the stream and not the verifier. A caller tells it what happened,
//! and carries out its [`Action`]s in order. The invariants:
//!
//! * Each offered partition gets one [`Action::End`], unless the owner cancels it.
//! * A proof is in an end only if [`Ledger::verified`] accepted it, or the owner made it.
//! * A partition that nobody has is published again. The stream is never trusted to have it.
//! * A partition that fails on several nodes is proved by the owner.
//!
//! ```text
//! Held ─▶ Publishing ─▶ Published ─▶ (a node runs it) ─▶ a proof is checked ─▶ End
//!   ▲                       │ lost, failed                   │ rejected
//!   └───────────────────────┴────────────────────────────────┘
//! ```
//!
//! An owner that starts again offers the unfinished partitions of its journal before it takes
//! results. Results of an earlier life then find their partitions.

mod action;
mod entry;
mod index;
mod nodes;
mod partitions;
mod settings;

use std::time::Duration;

use crate::message::{Outcome, WorkId, WorkResult};
use crate::name::Name;
use crate::subject::Subject;

use entry::{Candidate, Entry};
use partitions::Partitions;

pub use action::{Action, CheckId, End, Others, Position, Prover, Receipt, StreamId, Survey};
pub use nodes::{NodeReport, Nodes};
pub use settings::Settings;

/// The most proofs of one partition that wait while another one is verified.
const CANDIDATES_MAX: usize = 4;

/// The error of a partition that is offered while it is in the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("partition {0}: it was offered before and has not ended; wait for its end")]
pub struct Known(pub WorkId);

/// The partitions of one owner.
#[derive(Debug)]
pub struct Ledger {
    partitions: Partitions,
    /// The nodes that it has heard of.
    pub nodes: Nodes,
    next_check: u64,
}

impl Ledger {
    /// Returns an empty ledger of an owner that has no connection yet.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            nodes: Nodes::new(&settings),
            partitions: Partitions::new(settings),
            next_check: 0,
        }
    }

    /// Returns the next action.
    pub fn next_action(&mut self) -> Option<Action> {
        self.partitions.actions.pop_front()
    }

    /// Returns the number of partitions that have not ended.
    #[must_use]
    pub fn len(&self) -> usize {
        self.partitions.len()
    }

    /// Returns true if each partition has ended.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the subjects of the partitions so far, for the next [`Survey`].
    pub fn subjects(&self) -> impl Iterator<Item = &Subject> {
        self.partitions.index.subjects()
    }

    /// Adds a partition. If `starts_at_home` is true, the owner proves it, too, at once.
    ///
    /// # Errors
    /// [`Known`].
    pub fn offer(
        &mut self,
        id: WorkId,
        subject: Subject,
        starts_at_home: bool,
        now: Duration,
    ) -> Result<(), Known> {
        if self.partitions.get(&id).is_some() {
            return Err(Known(id));
        }
        let is_cut_off = self.partitions.is_cut_off(&subject);
        self.partitions.add(id, subject);
        if starts_at_home || is_cut_off {
            self.partitions.prove_at_home(&id, true);
        }
        self.partitions.await_node(&id, now);
        self.partitions.publish_held(now);
        Ok(())
    }

    /// Returns the nodes that it has heard of, by name.
    #[must_use]
    pub fn nodes(&self, now: Duration) -> Vec<NodeReport> {
        self.nodes.report(&self.partitions.running(), now)
    }

    /// Notes that the connection to the server is there, or is gone. Urgent work is proved at
    /// home while it is gone.
    pub fn connected(&mut self, is_connected: bool, now: Duration) {
        self.partitions.is_connected = is_connected;
        self.partitions.publish_after = Duration::ZERO;
        if !is_connected {
            self.partitions.prove_urgent_at_home();
        }
        self.partitions.publish_held(now);
    }

    /// Notes that the server has stored an attempt of a partition.
    pub fn published(&mut self, id: &WorkId, attempt: u32, position: Position, now: Duration) {
        let is_expected = |entry: &Entry| entry.is_publishing(attempt);
        if self.partitions.get(id).is_some_and(is_expected) {
            self.partitions.note_published(id, position, now);
        } else {
            // It has ended or was lost meanwhile, so nobody needs this message.
            let withdraw = Action::Withdraw { position };
            self.partitions.actions.push_back(withdraw);
        }
        self.partitions.publish_held(now);
    }

    /// Notes that the server has not confirmed an attempt of a partition. It may have it.
    pub fn publish_failed(&mut self, id: &WorkId, attempt: u32, now: Duration) {
        self.partitions.publish_after = now.saturating_add(self.partitions.settings.publish_pause);
        self.partitions.change(id, |entry, _| {
            if entry.is_publishing(attempt) {
                entry.place = entry.place_of_unpublished();
            }
        });
    }

    /// Notes a sign of life of a node: these partitions advance on it.
    pub fn signed(&mut self, node: &Name, ids: &[WorkId], now: Duration) {
        self.nodes.seen(node, now);
        for id in ids {
            let known = self
                .partitions
                .change(id, |entry, _| entry.note_running(node, now));
            if known.is_none() {
                self.partitions
                    .actions
                    .push_back(Action::Cancel { id: *id });
            }
        }
    }

    /// Notes the result of a node. The receipt is acknowledged when the result is not needed
    /// any more.
    pub fn result(&mut self, outcome: Outcome, receipt: Receipt, now: Duration) {
        let Outcome {
            id,
            node,
            attempt,
            result,
            ..
        } = outcome;
        let proof = match result {
            WorkResult::Proof(proof) if self.partitions.get(&id).is_some() => proof,
            result => {
                self.partitions
                    .actions
                    .push_back(Action::Acknowledge { receipt });
                if let WorkResult::Failure(_) = result {
                    self.nodes.failed(&node, now);
                    self.partitions
                        .change(&id, |entry, _| entry.note_failure(&node));
                    self.after_failure(&id, now);
                }
                return;
            }
        };
        let candidate = Candidate {
            node,
            attempt,
            proof,
            receipt,
        };
        let dropped = self
            .partitions
            .change(&id, |entry, _| entry.add_candidate(candidate));
        if let Some(Some(dropped)) = dropped {
            let receipt = dropped.receipt;
            self.partitions
                .actions
                .push_back(Action::Acknowledge { receipt });
        }
        self.check_next(&id);
    }

    /// Notes whether a proof was accepted that an [`Action::Verify`] asked about.
    pub fn verified(&mut self, id: &WorkId, check: CheckId, is_good: bool, now: Duration) {
        let finished = self
            .partitions
            .change(id, |entry, _| entry.end_check(check));
        let Some(Some(checked)) = finished else {
            return;
        };
        let Candidate {
            node,
            attempt,
            proof,
            receipt,
        } = checked;
        if is_good {
            self.nodes.good(&node, now);
            self.partitions.forget_message(id, attempt);
            let by = Prover::Node(node);
            self.partitions.finish(id, Some(End::Proved { proof, by }));
            self.partitions
                .actions
                .push_back(Action::Acknowledge { receipt });
            self.partitions.publish_held(now);
            return;
        }
        self.partitions
            .actions
            .push_back(Action::Acknowledge { receipt });
        if let Some(rest) = self.nodes.fault(&node, now) {
            let node = node.clone();
            self.partitions
                .actions
                .push_back(Action::Rest { node, rest });
        }
        self.partitions
            .change(id, |entry, _| entry.note_failure(&node));
        if !self.check_next(id) {
            self.after_failure(id, now);
        }
    }

    /// Notes the owner's own proof of a partition, which is verified.
    pub fn proved_at_home(&mut self, id: &WorkId, proof: Vec<u8>, now: Duration) {
        let by = Prover::Home;
        self.partitions.finish(id, Some(End::Proved { proof, by }));
        self.partitions.publish_held(now);
    }

    /// Notes that the owner could not prove a partition on any of its devices. The partition
    /// ends with the reason, such as a false statement.
    pub fn failed_at_home(&mut self, id: &WorkId, reason: String, now: Duration) {
        self.partitions.finish(id, Some(End::Failed { reason }));
        self.partitions.publish_held(now);
    }

    /// Notes that the owner has begun a partition. Unless it is to start at home and outside,
    /// it is withdrawn from the stream.
    pub fn begun_at_home(&mut self, id: &WorkId, now: Duration) {
        if self.partitions.get(id).is_some_and(|entry| !entry.is_home) {
            self.partitions.move_home(id, false);
        }
        self.partitions.publish_held(now);
    }

    /// Notes that a partition can never be published. The owner proves it.
    pub fn unpublishable(&mut self, id: &WorkId, now: Duration) {
        self.partitions.prove_at_home(id, false);
        self.partitions.publish_held(now);
    }

    /// Returns the part of the nodes in a partition that is proved at home.
    #[must_use]
    pub fn others(&self, id: &WorkId) -> Others {
        let entry = self.partitions.get(id);
        entry.map_or(Others::MayNot, Entry::others)
    }

    /// Takes the most urgent partition that no node runs, to be proved by the owner. It is
    /// withdrawn from the stream. To be called while the owner itself has room.
    pub fn take_home(&mut self, now: Duration) -> Option<WorkId> {
        let id = self.partitions.index.first_takable()?;
        self.partitions.move_home(&id, false);
        self.partitions.publish_held(now);
        Some(id)
    }

    /// Removes a partition that is not needed any more. Nodes that run it are to stop.
    pub fn cancel(&mut self, id: &WorkId, now: Duration) {
        self.partitions.finish(id, None);
        self.partitions.publish_held(now);
    }

    /// Compares the ledger with the state of the stream, and publishes again what was lost.
    pub fn survey(&mut self, survey: &Survey, now: Duration) {
        let mut lost = self
            .partitions
            .index
            .outside(survey.stream, survey.last_sequence);
        let mut missing = Vec::new();
        for (subject, floor) in &survey.floors {
            missing.extend(self.partitions.index.up_to(subject, survey.stream, *floor));
        }
        lost.retain(|id| self.partitions.was_published_before(id, survey.asked_at));
        for id in missing {
            let grace = self.partitions.settings.grace;
            let is_lost = self
                .partitions
                .change(&id, |entry, _| entry.note_missing(now, grace));
            if is_lost == Some(true) {
                lost.push(id);
            }
        }
        for id in lost {
            self.partitions.publish_again(&id);
        }
        self.partitions.publish_held(now);
    }

    /// Notes that time passes. To be called a few times a second.
    pub fn tick(&mut self, now: Duration) {
        for id in self.partitions.index.due(now) {
            let silence = self.partitions.settings.silence;
            self.partitions
                .change(&id, |entry, _| entry.drop_silent(now, silence));
            let is_hopeless = |entry: &Entry| {
                entry.silent_nodes >= self.partitions.settings.silent_nodes_max
                    || entry.retry_until.is_some_and(|until| until <= now)
            };
            let entry = self.partitions.get(&id);
            let Some(entry) = entry.filter(|entry| is_hopeless(entry)) else {
                self.partitions.await_node(&id, now);
                continue;
            };
            let waits_for_first = entry.failures == 0 && entry.silent_nodes == 0;
            let stays_outside = entry.is_urgent() && waits_for_first;
            self.partitions.prove_at_home(&id, stays_outside);
        }
        self.partitions.publish_held(now);
    }

    /// Begins to verify the next proof of a partition, if there is one. Returns true if a proof
    /// is being verified.
    fn check_next(&mut self, id: &WorkId) -> bool {
        let check = CheckId(self.next_check);
        let begun = self.partitions.change(id, |entry, actions| {
            let (node, proof) = entry.begin_check(check)?;
            let id = *id;
            actions.push_back(Action::Verify {
                id,
                check,
                node,
                proof,
            });
            Some(())
        });
        self.next_check += u64::from(begun == Some(Some(())));
        self.partitions
            .get(id)
            .is_some_and(|entry| entry.check.is_some())
    }

    /// Decides how a partition goes on after a failure on a node.
    fn after_failure(&mut self, id: &WorkId, now: Duration) {
        let Some(entry) = self.partitions.get(id) else {
            return;
        };
        if entry.is_home || entry.check.is_some() {
            return;
        }
        let settings = &self.partitions.settings;
        let is_hopeless = entry.failed_nodes.len() >= settings.failed_nodes_max
            || entry.failures >= settings.failures_max;
        if is_hopeless {
            self.partitions.prove_at_home(id, false);
        } else {
            let retry_until = now.saturating_add(settings.retry_of(entry.is_urgent()));
            self.partitions.change(id, |entry, actions| {
                entry.retry_until = Some(retry_until);
                let position = entry.position();
                actions.extend(position.map(|position| Action::Withdraw { position }));
            });
            self.partitions.publish_again(id);
        }
        self.partitions.publish_held(now);
    }
}

#[cfg(test)]
mod tests;
