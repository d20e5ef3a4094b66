//! One partition of the ledger.
//!
//! It is not the partition's input, and it decides nothing. The invariant: all that the index
//! sorts by is computed by [`Entry::marks`], so an entry and its index cannot differ.

use std::collections::VecDeque;
use std::time::Duration;

use cuzk_scheduler::priority::Priority;

use super::CANDIDATES_MAX;
use super::action::{CheckId, Others, Position, Receipt};
use super::settings::Settings;
use crate::message::EXCLUDED_MAX;
use crate::name::Name;
use crate::subject::{Subject, is_urgent};

/// The most nodes that are noted for a partition. A node can claim to run anything.
const RUNNING_MAX: usize = 8;

/// Where the message of a partition is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// With the owner, to be published.
    Held,
    /// On its way to the server.
    Publishing,
    /// In the stream, or with a node.
    Published {
        position: Position,
        since: Duration,
        /// The time since which the server says that the message was acknowledged.
        missing_since: Option<Duration>,
    },
    /// Nowhere: the owner proves it alone.
    Withdrawn,
}

/// A node that runs a partition.
#[derive(Clone, Debug)]
pub(super) struct Running {
    pub(super) node: Name,
    pub(super) sign: Duration,
}

/// A proof that nobody has verified yet.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) node: Name,
    pub(super) attempt: u32,
    pub(super) proof: Vec<u8>,
    pub(super) receipt: Receipt,
}

/// A proof that is being verified.
#[derive(Debug)]
pub(super) struct Check {
    pub(super) number: CheckId,
    pub(super) candidate: Candidate,
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) subject: Subject,
    pub(super) order: u64,
    pub(super) attempt: u32,
    pub(super) place: Place,
    pub(super) is_home: bool,
    /// True if nodes may prove it.
    pub(super) is_wanted_outside: bool,
    pub(super) running: Vec<Running>,
    pub(super) failed_nodes: Vec<Name>,
    pub(super) failures: u32,
    pub(super) silent_nodes: u32,
    /// A node must begin it by this time.
    pub(super) retry_until: Option<Duration>,
    pub(super) check: Option<Check>,
    pub(super) candidates: VecDeque<Candidate>,
}

/// The marks that the index sorts an entry by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Marks {
    pub(super) priority: Priority,
    pub(super) order: u64,
    pub(super) is_held: bool,
    pub(super) is_publishing: bool,
    /// It takes room in the window.
    pub(super) is_counted: bool,
    /// The owner may take it.
    pub(super) is_takable: bool,
    /// Nodes run it, or have a proof of it that is not verified yet.
    pub(super) is_taken: bool,
    /// It is urgent and not at home.
    pub(super) is_urgent_outside: bool,
    pub(super) position: Option<Position>,
    pub(super) due: Option<Duration>,
}

impl Entry {
    pub(super) fn new(subject: Subject, order: u64) -> Self {
        Self {
            subject,
            order,
            attempt: 0,
            place: Place::Held,
            is_home: false,
            is_wanted_outside: true,
            running: Vec::new(),
            failed_nodes: Vec::new(),
            failures: 0,
            silent_nodes: 0,
            retry_until: None,
            check: None,
            candidates: VecDeque::new(),
        }
    }

    pub(super) fn marks(&self, settings: &Settings) -> Marks {
        let priority = self.subject.priority;
        let urgent = self.is_urgent();
        let is_publishing = self.place == Place::Publishing;
        let position = self.position();
        let silent = self.running.iter();
        let silent = silent.map(|running| running.sign.saturating_add(settings.silence));
        Marks {
            priority,
            order: self.order,
            is_held: self.place == Place::Held,
            is_publishing,
            is_counted: !urgent && (is_publishing || position.is_some()),
            is_takable: !self.is_home && !self.is_taken(),
            is_taken: self.is_taken(),
            is_urgent_outside: urgent && !self.is_home,
            position,
            due: silent.chain(self.retry_until).min(),
        }
    }

    /// Returns true if nodes run it, or have a proof of it that is not verified yet.
    pub(super) fn is_taken(&self) -> bool {
        !self.running.is_empty() || self.check.is_some()
    }

    pub(super) fn others(&self) -> Others {
        match (self.failures > 0, self.is_wanted_outside) {
            (true, _) => Others::HaveFailed,
            (false, true) => Others::MayProve,
            (false, false) => Others::MayNot,
        }
    }

    pub(super) fn is_urgent(&self) -> bool {
        is_urgent(self.subject.priority)
    }

    pub(super) fn is_publishing(&self, attempt: u32) -> bool {
        self.place == Place::Publishing && self.attempt == attempt
    }

    pub(super) fn position(&self) -> Option<Position> {
        match self.place {
            Place::Published { position, .. } => Some(position),
            _ => None,
        }
    }

    pub(super) fn published_since(&self) -> Option<Duration> {
        match self.place {
            Place::Published { since, .. } => Some(since),
            _ => None,
        }
    }

    pub(super) fn place_of_unpublished(&self) -> Place {
        match self.is_wanted_outside {
            true => Place::Held,
            false => Place::Withdrawn,
        }
    }

    /// Returns the receipts of all proofs that it has.
    pub(super) fn receipts(&self) -> Vec<Receipt> {
        let checked = self.check.iter().map(|check| &check.candidate);
        let all = checked.chain(&self.candidates);
        all.map(|candidate| candidate.receipt).collect()
    }

    pub(super) fn note_running(&mut self, node: &Name, now: Duration) {
        self.retry_until = None;
        let known = self.running.iter_mut().find(|known| known.node == *node);
        if let Some(known) = known {
            known.sign = now;
        } else if self.running.len() < RUNNING_MAX {
            let (node, sign) = (node.clone(), now);
            self.running.push(Running { node, sign });
        }
    }

    pub(super) fn drop_silent(&mut self, now: Duration, silence: Duration) {
        let before = self.running.len();
        self.running
            .retain(|running| running.sign.saturating_add(silence) > now);
        let silent = u32::try_from(before - self.running.len()).unwrap_or(u32::MAX);
        self.silent_nodes = self.silent_nodes.saturating_add(silent);
    }

    pub(super) fn note_failure(&mut self, node: &Name) {
        self.failures = self.failures.saturating_add(1);
        self.running.retain(|running| running.node != *node);
        if !self.failed_nodes.contains(node) && self.failed_nodes.len() < EXCLUDED_MAX {
            self.failed_nodes.push(node.clone());
        }
    }

    /// Adds a proof. Returns it if there are too many.
    pub(super) fn add_candidate(&mut self, candidate: Candidate) -> Option<Candidate> {
        self.running
            .retain(|running| running.node != candidate.node);
        if self.candidates.len() >= CANDIDATES_MAX {
            return Some(candidate);
        }
        self.candidates.push_back(candidate);
        None
    }

    /// Begins to verify the next proof, unless one is being verified.
    pub(super) fn begin_check(&mut self, number: CheckId) -> Option<(Name, Vec<u8>)> {
        if self.check.is_some() {
            return None;
        }
        let candidate = self.candidates.pop_front()?;
        let asked = (candidate.node.clone(), candidate.proof.clone());
        self.check = Some(Check { number, candidate });
        Some(asked)
    }

    pub(super) fn end_check(&mut self, number: CheckId) -> Option<Candidate> {
        let check = self.check.take_if(|check| check.number == number)?;
        Some(check.candidate)
    }

    /// Notes that the server says that the message was acknowledged. Returns true if the
    /// result has not come for `grace`.
    pub(super) fn note_missing(&mut self, now: Duration, grace: Duration) -> bool {
        let has_proof = self.check.is_some() || !self.candidates.is_empty();
        let Place::Published { missing_since, .. } = &mut self.place else {
            return false;
        };
        let since = *missing_since.get_or_insert(now);
        !has_proof && now >= since.saturating_add(grace)
    }

    /// Takes the partition out of the stream, for good. Returns the message to be removed.
    pub(super) fn withdraw(&mut self) -> Option<Position> {
        self.is_wanted_outside = false;
        let position = self.position();
        if self.place != Place::Publishing {
            self.place = Place::Withdrawn;
        }
        position
    }

    /// Holds the partition for another publication.
    pub(super) fn hold_again(&mut self) {
        self.attempt = self.attempt.saturating_add(1);
        self.place = self.place_of_unpublished();
    }
}
