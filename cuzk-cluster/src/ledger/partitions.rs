//! The partitions of the ledger, their index and the actions that follow.
//!
//! It does not decide where a partition goes: the ledger does. The invariant: an entry changes
//! through [`Partitions::change`] only, so the index always has its marks.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use super::action::{Action, End, Position, Prover};
use super::entry::{Entry, Place};
use super::index::Index;
use super::settings::Settings;
use crate::message::WorkId;
use crate::name::Name;
use crate::subject::{Subject, is_urgent};

#[derive(Debug)]
pub(super) struct Partitions {
    pub(super) settings: Settings,
    entries: HashMap<WorkId, Entry>,
    pub(super) index: Index,
    pub(super) actions: VecDeque<Action>,
    pub(super) is_connected: bool,
    /// Nothing is published before this time.
    pub(super) publish_after: Duration,
    next_order: u64,
}

impl Partitions {
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            settings,
            entries: HashMap::new(),
            index: Index::default(),
            actions: VecDeque::new(),
            is_connected: false,
            publish_after: Duration::ZERO,
            next_order: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn get(&self, id: &WorkId) -> Option<&Entry> {
        self.entries.get(id)
    }

    /// Returns true if a partition is in the stream since before `time`.
    pub(super) fn was_published_before(&self, id: &WorkId, time: Duration) -> bool {
        let since = self.get(id).and_then(Entry::published_since);
        since.is_some_and(|since| since < time)
    }

    /// Returns the number of partitions that each node runs.
    pub(super) fn running(&self) -> HashMap<&Name, usize> {
        let mut running = HashMap::new();
        for node in self.entries.values().flat_map(|entry| &entry.running) {
            *running.entry(&node.node).or_insert(0) += 1;
        }
        running
    }

    pub(super) fn add(&mut self, id: WorkId, subject: Subject) {
        let entry = Entry::new(subject, self.next_order);
        self.next_order += 1;
        let marks = entry.marks(&self.settings);
        self.index.add(&id, &entry.subject, &marks);
        self.entries.insert(id, entry);
    }

    /// Changes an entry, and keeps the index with it. Returns none if there is no such entry.
    pub(super) fn change<R>(
        &mut self,
        id: &WorkId,
        change: impl FnOnce(&mut Entry, &mut VecDeque<Action>) -> R,
    ) -> Option<R> {
        let entry = self.entries.get_mut(id)?;
        let before = entry.marks(&self.settings);
        let result = change(entry, &mut self.actions);
        let after = entry.marks(&self.settings);
        if before.is_taken != after.is_taken && !entry.is_home {
            let id = *id;
            self.actions.push_back(match after.is_taken {
                true => Action::Taken { id },
                false => Action::Returned { id },
            });
        }
        if before != after {
            self.index.remove(id, &entry.subject, &before);
            self.index.add(id, &entry.subject, &after);
        }
        Some(result)
    }

    /// Publishes held partitions in order, as far as the windows allow.
    pub(super) fn publish_held(&mut self, now: Duration) {
        while self.is_connected
            && now >= self.publish_after
            && self.index.publishing() < self.settings.publishing_max
        {
            let Some(id) = self.index.next_to_publish(self.settings.window) else {
                return;
            };
            self.change(&id, |entry, actions| {
                entry.place = Place::Publishing;
                let (attempt, excluded) = (entry.attempt, entry.failed_nodes.clone());
                actions.push_back(Action::Publish {
                    id,
                    attempt,
                    excluded,
                });
            });
        }
    }

    /// Notes the position of a partition that is expected to be published.
    pub(super) fn note_published(&mut self, id: &WorkId, position: Position, now: Duration) {
        // Two partitions at one position: the server has forgotten the earlier one.
        if let Some(other) = self.index.at(position).filter(|other| other != id) {
            self.publish_again(&other);
        }
        self.change(id, |entry, actions| {
            if entry.is_wanted_outside {
                entry.place = Place::Published {
                    position,
                    since: now,
                    missing_since: None,
                };
            } else {
                entry.place = Place::Withdrawn;
                actions.push_back(Action::Withdraw { position });
            }
        });
    }

    /// Holds a partition for another publication, because its message is lost or of no use.
    pub(super) fn publish_again(&mut self, id: &WorkId) {
        self.change(id, |entry, _| entry.hold_again());
    }

    /// Starts a partition at home. If `stays_outside` is true, nodes may prove it, too.
    pub(super) fn prove_at_home(&mut self, id: &WorkId, stays_outside: bool) {
        if self.move_home(id, stays_outside) {
            self.actions.push_back(Action::ProveAtHome { id: *id });
        }
    }

    /// Gives the nodes a time in which one of them must begin an urgent partition.
    pub(super) fn await_node(&mut self, id: &WorkId, now: Duration) {
        let until = now.saturating_add(self.settings.urgent_wait);
        self.change(id, |entry, _| {
            if entry.is_urgent() && !entry.is_home && !entry.is_taken() {
                entry.retry_until.get_or_insert(until);
            }
        });
    }

    /// Starts all urgent partitions at home that are not there.
    pub(super) fn prove_urgent_at_home(&mut self) {
        for id in self.index.urgent_outside() {
            self.prove_at_home(&id, true);
        }
    }

    /// Returns true if the partition was not at home before.
    pub(super) fn move_home(&mut self, id: &WorkId, stays_outside: bool) -> bool {
        let moved = self.change(id, |entry, actions| {
            let is_new = !entry.is_home;
            entry.is_home = true;
            entry.retry_until = None;
            if !stays_outside {
                let position = entry.withdraw();
                actions.extend(position.map(|position| Action::Withdraw { position }));
            }
            is_new
        });
        moved == Some(true)
    }

    /// Forgets the message of an attempt, which the node acknowledges after its result.
    pub(super) fn forget_message(&mut self, id: &WorkId, attempt: u32) {
        self.change(id, |entry, _| {
            if entry.attempt == attempt && entry.position().is_some() {
                entry.place = Place::Withdrawn;
            }
        });
    }

    /// Removes a partition, with its end if it has one.
    pub(super) fn finish(&mut self, id: &WorkId, end: Option<End>) {
        let Some(entry) = self.entries.remove(id) else {
            return;
        };
        let marks = entry.marks(&self.settings);
        self.index.remove(id, &entry.subject, &marks);
        let is_homes = end.as_ref().is_some_and(|end| match end {
            End::Proved { by, .. } => *by == Prover::Home,
            End::Failed { .. } => true,
        });
        let id = *id;
        let actions = &mut self.actions;
        actions.extend(end.map(|end| Action::End { id, end }));
        let receipts = entry.receipts().into_iter();
        actions.extend(receipts.map(|receipt| Action::Acknowledge { receipt }));
        if let Some(position) = entry.position() {
            actions.push_back(Action::Withdraw { position });
        }
        // The node of a result counts no more as one that runs it.
        if !entry.running.is_empty() {
            actions.push_back(Action::Cancel { id });
        }
        if entry.is_home && !is_homes {
            actions.push_back(Action::StopAtHome { id });
        }
    }

    /// Returns true if a partition is urgent and the server is gone.
    pub(super) fn is_cut_off(&self, subject: &Subject) -> bool {
        !self.is_connected && is_urgent(subject.priority)
    }
}
