//! The leases of the partitions that run on a worker.
//!
//! A lease is the server's promise that nobody else gets a partition. The server takes it back
//! if no progress is reported for a time. The invariant: progress of a partition is reported
//! only if its checkpoints advanced since the last report. So a busy machine keeps its leases,
//! and a machine that hangs loses them.
//!
//! The thread that reports progress owns this state behind a lock. It is not the thread of the
//! prover, and not that of the transport.

use std::collections::HashMap;
use std::time::Duration;

use crate::message::WorkId;

/// The server delivers a partition again if no progress was reported for so long.
pub const LEASE: Duration = Duration::from_secs(30);

/// The time between two reports of one partition. Two reports in a row can then be lost.
pub const REPORT_PERIOD: Duration = Duration::from_secs(10);

/// The running partitions with their leases. `L` is what the transport acknowledges.
#[derive(Debug)]
pub struct Leases<L> {
    runs: HashMap<WorkId, Run<L>>,
}

#[derive(Debug)]
struct Run<L> {
    /// All deliveries of the partition to this worker.
    leases: Vec<L>,
    checkpoints: u64,
    reported: Option<Report>,
}

#[derive(Clone, Copy, Debug)]
struct Report {
    at: Duration,
    checkpoints: u64,
}

impl<L> Default for Leases<L> {
    fn default() -> Self {
        Self {
            runs: HashMap::new(),
        }
    }
}

impl<L: Clone> Leases<L> {
    /// Adds a delivery of a partition, which begins to run if it does not run yet.
    pub fn add(&mut self, id: WorkId, lease: L) {
        let run = self.runs.entry(id).or_insert_with(|| Run {
            leases: Vec::new(),
            checkpoints: 0,
            reported: None,
        });
        run.leases.push(lease);
    }

    /// Notes the number of checkpoints that a partition has passed so far.
    pub fn advance(&mut self, id: &WorkId, checkpoints: u64) {
        if let Some(run) = self.runs.get_mut(id) {
            run.checkpoints = run.checkpoints.max(checkpoints);
        }
    }

    /// Returns the partitions whose progress is to be reported at `now`, with their leases.
    /// They count as reported. The first report of a partition is due at once.
    pub fn due(&mut self, now: Duration) -> Vec<(WorkId, Vec<L>)> {
        let due = self.runs.iter_mut().filter(|(_, run)| run.is_due(now));
        due.map(|(id, run)| {
            let checkpoints = run.checkpoints;
            run.reported = Some(Report {
                at: now,
                checkpoints,
            });
            (*id, run.leases.clone())
        })
        .collect()
    }

    /// Removes a partition that runs no more, and returns its leases.
    pub fn end(&mut self, id: &WorkId) -> Vec<L> {
        self.runs
            .remove(id)
            .map(|run| run.leases)
            .unwrap_or_default()
    }

    /// Returns the number of partitions that run.
    #[must_use]
    pub fn len(&self) -> usize {
        self.runs.len()
    }

    /// Returns true if no partition runs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }
}

impl<L> Run<L> {
    fn is_due(&self, now: Duration) -> bool {
        self.reported.is_none_or(|last| {
            self.checkpoints > last.checkpoints && now >= last.at.saturating_add(REPORT_PERIOD)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: WorkId = WorkId([1; 32]);

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn progress_is_reported_only_while_checkpoints_advance() {
        let mut leases = Leases::default();
        leases.add(ID, "lease");
        assert_eq!(leases.due(at(0)), [(ID, vec!["lease"])]);
        assert!(leases.due(at(20)).is_empty(), "it hangs");
        leases.advance(&ID, 1);
        assert_eq!(leases.due(at(21)).len(), 1);
        leases.advance(&ID, 2);
        assert!(leases.due(at(30)).is_empty(), "reported 9 s ago");
        assert_eq!(leases.due(at(31)).len(), 1);
        leases.advance(&ID, 1);
        assert!(leases.due(at(60)).is_empty(), "a count never falls");
    }

    #[test]
    fn a_second_delivery_joins_the_run() {
        let mut leases = Leases::default();
        leases.add(ID, 1);
        leases.add(ID, 2);
        assert_eq!((leases.len(), leases.is_empty()), (1, false));
        assert_eq!(leases.end(&ID), [1, 2]);
        assert!(leases.end(&ID).is_empty() && leases.due(at(99)).is_empty());
        leases.advance(&ID, 1);
    }

    #[test]
    fn two_lost_reports_do_not_cost_a_lease() {
        assert!(REPORT_PERIOD * 3 <= LEASE);
    }
}
