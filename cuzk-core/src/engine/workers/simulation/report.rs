//! The numbers of jobs, ends and faults of a run.
//!
//! The invariant: two runs with equal reports had the same memory in use after each step.

use std::fmt;

use cuzk_scheduler::admission::Usage;

use crate::Error;
use crate::job::Outcome;

/// The number of times that a run met each thing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) accepted: u64,
    pub(super) refused: u64,
    pub(super) attached: u64,
    pub(super) proved: u64,
    pub(super) failed: u64,
    pub(super) cancelled: u64,
    pub(super) late: u64,
    pub(super) waited_in_journal: u64,
    pub(super) resumed: u64,
    pub(super) faults: u64,
    pub(super) given_up: u64,
    pub(super) trials: u64,
    pub(super) disk_failures: u64,
    pub(super) slow_writes: u64,
    pub(super) kills: u64,
    pub(super) floods: u64,
    pub(super) leaps: u64,
    pub(super) drains: u64,
    /// A digest of the usage after every step.
    trail: u64,
}

impl Report {
    /// Returns the counts with their names.
    pub(super) fn counts(&self) -> [(&'static str, u64); 18] {
        [
            ("accepted", self.accepted),
            ("refused", self.refused),
            ("attached", self.attached),
            ("proved", self.proved),
            ("failed", self.failed),
            ("cancelled", self.cancelled),
            ("late", self.late),
            ("waited in the journal", self.waited_in_journal),
            ("resumed", self.resumed),
            ("faults of devices", self.faults),
            ("given up", self.given_up),
            ("on probation", self.trials),
            ("failed writes", self.disk_failures),
            ("slow writes", self.slow_writes),
            ("kills", self.kills),
            ("floods", self.floods),
            ("leaps of the clocks", self.leaps),
            ("drains", self.drains),
        ]
    }

    pub(super) fn add(&mut self, other: &Self) {
        let sum = |own: &mut u64, more: u64| *own = own.wrapping_add(more);
        sum(&mut self.accepted, other.accepted);
        sum(&mut self.refused, other.refused);
        sum(&mut self.attached, other.attached);
        sum(&mut self.proved, other.proved);
        sum(&mut self.failed, other.failed);
        sum(&mut self.cancelled, other.cancelled);
        sum(&mut self.late, other.late);
        sum(&mut self.waited_in_journal, other.waited_in_journal);
        sum(&mut self.resumed, other.resumed);
        sum(&mut self.faults, other.faults);
        sum(&mut self.given_up, other.given_up);
        sum(&mut self.trials, other.trials);
        sum(&mut self.disk_failures, other.disk_failures);
        sum(&mut self.slow_writes, other.slow_writes);
        sum(&mut self.kills, other.kills);
        sum(&mut self.floods, other.floods);
        sum(&mut self.leaps, other.leaps);
        sum(&mut self.drains, other.drains);
        sum(&mut self.trail, other.trail);
    }

    /// Returns the count of jobs that ended in this way.
    pub(super) fn count_of(&mut self, outcome: &Outcome) -> &mut u64 {
        match outcome.as_ref().map_err(|error| &**error) {
            Ok(_) => &mut self.proved,
            Err(Error::Cancelled) => &mut self.cancelled,
            Err(Error::DeadlinePassed) => &mut self.late,
            Err(_) => &mut self.failed,
        }
    }

    /// Notes the usage after a step.
    pub(super) fn note(&mut self, usage: &Usage) {
        let now = [usage.waiting as u64, usage.running as u64, usage.used_bytes];
        for number in now {
            // The prime of FNV-1a.
            self.trail = (self.trail ^ number).wrapping_mul(0x100_0000_01b3);
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = self.counts();
        let counts = counts.iter().map(|(name, count)| format!("{count} {name}"));
        f.write_str(&counts.collect::<Vec<_>>().join(", "))
    }
}
