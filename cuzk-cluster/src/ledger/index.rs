//! The entries of the ledger, sorted by what happens to them next.
//!
//! It has no state of its own: everything follows from the marks of the entries. The
//! invariant: an entry is here with the marks that it has. Each question takes a time that
//! does not grow with the number of partitions, apart from a logarithm.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Unbounded};
use std::time::Duration;

use cuzk_scheduler::priority::Priority;

use super::action::{Position, StreamId};
use super::entry::Marks;
use crate::message::WorkId;
use crate::subject::Subject;

/// Partitions in order: the most urgent first, then the oldest.
type Ordered = BTreeMap<(Priority, u64), WorkId>;

#[derive(Debug, Default)]
pub(super) struct Index {
    takable: Ordered,
    urgent_outside: BTreeSet<WorkId>,
    due: BTreeSet<(Duration, WorkId)>,
    positions: BTreeMap<Position, WorkId>,
    subjects: BTreeMap<Subject, OfSubject>,
    publishing: usize,
}

/// The partitions of one subject. Subjects are few: a machine proves some ten circuits.
#[derive(Debug, Default)]
struct OfSubject {
    held: Ordered,
    positions: BTreeMap<Position, WorkId>,
    /// The partitions that take room in the window.
    counted: usize,
}

impl Index {
    pub(super) fn add(&mut self, id: &WorkId, subject: &Subject, marks: &Marks) {
        let key = (marks.priority, marks.order);
        if !self.subjects.contains_key(subject) {
            self.subjects.insert(subject.clone(), OfSubject::default());
        }
        let Some(of_subject) = self.subjects.get_mut(subject) else {
            return;
        };
        of_subject.counted += usize::from(marks.is_counted);
        if marks.is_held {
            of_subject.held.insert(key, *id);
        }
        if let Some(position) = marks.position {
            of_subject.positions.insert(position, *id);
            self.positions.insert(position, *id);
        }
        if marks.is_takable {
            self.takable.insert(key, *id);
        }
        if marks.is_urgent_outside {
            self.urgent_outside.insert(*id);
        }
        if let Some(due) = marks.due {
            self.due.insert((due, *id));
        }
        self.publishing += usize::from(marks.is_publishing);
    }

    pub(super) fn remove(&mut self, id: &WorkId, subject: &Subject, marks: &Marks) {
        let key = (marks.priority, marks.order);
        if let Some(of_subject) = self.subjects.get_mut(subject) {
            of_subject.counted -= usize::from(marks.is_counted);
            of_subject.held.remove(&key);
            if let Some(position) = marks.position {
                of_subject.positions.remove(&position);
            }
        }
        if let Some(position) = marks.position {
            self.positions.remove(&position);
        }
        self.takable.remove(&key);
        self.urgent_outside.remove(id);
        if let Some(due) = marks.due {
            self.due.remove(&(due, *id));
        }
        self.publishing -= usize::from(marks.is_publishing);
    }

    /// Returns the number of partitions on their way to the server.
    pub(super) fn publishing(&self) -> usize {
        self.publishing
    }

    /// Returns the next partition to be published: the most urgent one whose subject has less
    /// than `window` partitions in the stream.
    pub(super) fn next_to_publish(&self, window: usize) -> Option<WorkId> {
        let open = self.subjects.values().filter(|of| of.counted < window);
        let first = open.filter_map(|of| of.held.first_key_value());
        first.min_by_key(|(key, _)| **key).map(|(_, id)| *id)
    }

    pub(super) fn first_takable(&self) -> Option<WorkId> {
        self.takable.first_key_value().map(|(_, id)| *id)
    }

    pub(super) fn urgent_outside(&self) -> Vec<WorkId> {
        self.urgent_outside.iter().copied().collect()
    }

    /// Returns the partitions with something due at `now`.
    pub(super) fn due(&self, now: Duration) -> Vec<WorkId> {
        let due = self.due.iter().take_while(|(due, _)| *due <= now);
        due.map(|(_, id)| *id).collect()
    }

    pub(super) fn at(&self, position: Position) -> Option<WorkId> {
        self.positions.get(&position).copied()
    }

    /// Returns the partitions whose messages are in another stream, or beyond the last number
    /// of this one.
    pub(super) fn outside(&self, stream: StreamId, last_sequence: u64) -> Vec<WorkId> {
        let at = |sequence| Position { stream, sequence };
        let before = self.positions.range(..at(0));
        let after = self
            .positions
            .range((Excluded(at(last_sequence)), Unbounded));
        before.chain(after).map(|(_, id)| *id).collect()
    }

    /// Returns the partitions of a subject whose messages have numbers up to `floor`.
    pub(super) fn up_to(&self, subject: &Subject, stream: StreamId, floor: u64) -> Vec<WorkId> {
        let Some(of_subject) = self.subjects.get(subject) else {
            return Vec::new();
        };
        let at = |sequence| Position { stream, sequence };
        let range = of_subject.positions.range(at(0)..=at(floor));
        range.map(|(_, id)| *id).collect()
    }

    /// Returns the subjects of the partitions so far.
    pub(super) fn subjects(&self) -> impl Iterator<Item = &Subject> {
        self.subjects.keys()
    }
}
