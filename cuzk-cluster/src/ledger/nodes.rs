//! The record of the nodes' wrong proofs.
//!
//! It finds no causes. The invariants:
//!
//! * A node whose wrong proofs outweigh its good ones rests.
//! * Each rest is twice as long as the one before.
//! * The number of recorded nodes is bounded, since a node can give itself any name.

use std::collections::HashMap;
use std::time::Duration;

use super::settings::Settings;
use crate::name::Name;

/// The good proofs that make up for a wrong one, as for a device.
const GOOD_PER_FAULT: u32 = 8;

/// The longest rest.
const REST_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// The most nodes in the record.
const NODES_MAX: usize = 16 << 10;

#[derive(Debug)]
pub(super) struct Nodes {
    faults_max: u32,
    rest: Duration,
    /// The nodes with faults that they have not made up for.
    records: HashMap<Name, Record>,
}

#[derive(Clone, Copy, Debug)]
struct Record {
    score: u32,
    next_rest: Duration,
}

impl Nodes {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            faults_max: settings.node_faults_max.max(1),
            rest: settings.node_rest.min(REST_MAX),
            records: HashMap::new(),
        }
    }

    /// Records a good proof.
    pub(super) fn good(&mut self, node: &Name) {
        if let Some(record) = self.records.get_mut(node) {
            record.score = record.score.saturating_sub(1);
            if record.score == 0 {
                self.records.remove(node);
            }
        }
    }

    /// Records a wrong proof. Returns the rest that the node is to take, if it is to take one.
    pub(super) fn fault(&mut self, node: &Name) -> Option<Duration> {
        if !self.records.contains_key(node) && self.records.len() >= NODES_MAX {
            return None;
        }
        let record = self.records.entry(node.clone()).or_insert(Record {
            score: 0,
            next_rest: self.rest,
        });
        record.score = record.score.saturating_add(GOOD_PER_FAULT);
        if record.score < self.faults_max.saturating_mul(GOOD_PER_FAULT) {
            return None;
        }
        // One more fault after the rest leads to the next one.
        record.score = (self.faults_max - 1).saturating_mul(GOOD_PER_FAULT).max(1);
        let rest = record.next_rest;
        record.next_rest = rest.saturating_mul(2).min(REST_MAX);
        Some(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_proofs_in_a_row_lead_to_rests_that_grow() {
        let mut nodes = Nodes::new(&Settings::default());
        let node: Name = "node".parse().unwrap();
        let seconds = |rest: Option<Duration>| rest.map(|rest| rest.as_secs());
        assert_eq!(seconds(nodes.fault(&node)), None);
        assert_eq!(seconds(nodes.fault(&node)), None);
        assert_eq!(seconds(nodes.fault(&node)), Some(60));
        assert_eq!(seconds(nodes.fault(&node)), Some(120));
        (0..2 * GOOD_PER_FAULT).for_each(|_| nodes.good(&node));
        assert_eq!(seconds(nodes.fault(&node)), None, "it has made up for them");
    }
}
