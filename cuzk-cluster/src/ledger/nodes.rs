//! The record of the nodes: what they said of themselves, and their right and wrong proofs.
//!
//! It finds no causes. The invariants:
//!
//! * A node whose wrong proofs outweigh its good ones rests.
//! * Each rest is twice as long as the one before.
//! * The number of recorded nodes is bounded, since a node can give itself any name.
//! * Nothing that a node says of itself decides anything.

use std::collections::HashMap;
use std::time::Duration;

use super::settings::Settings;
use crate::message::Presence;
use crate::name::Name;
use crate::subject::Circuit;

/// The good proofs that make up for a wrong one, as for a device.
const GOOD_PER_FAULT: u32 = 8;

/// The longest rest.
const REST_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// The most nodes in the record.
const NODES_MAX: usize = 16 << 10;

/// A node that nobody has heard of for so long is forgotten, unless it has faults.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(15 * 60);

/// The nodes that an owner has heard of.
#[derive(Debug)]
pub struct Nodes {
    faults_max: u32,
    rest: Duration,
    records: HashMap<Name, Record>,
}

#[derive(Clone, Debug)]
struct Record {
    /// The faults that it has not made up for, times [`GOOD_PER_FAULT`].
    score: u32,
    next_rest: Duration,
    seen: Duration,
    progress: Option<Duration>,
    proved: u64,
    failed: u64,
    faults: u64,
    said: Option<Presence>,
}

/// A node, as an owner knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeReport {
    /// Its name.
    pub name: Name,
    /// Its version, if it has said so.
    pub version: Option<String>,
    /// The circuits that it has loaded.
    pub loaded: Vec<Circuit>,
    /// The circuits that it can load.
    pub others: Vec<Circuit>,
    /// The owner's partitions that it runs.
    pub running: usize,
    /// The owner's partitions that it has proved.
    pub proved: u64,
    /// The owner's partitions that it could not prove.
    pub failed: u64,
    /// Its wrong proofs.
    pub faults: u64,
    /// The time since it was last heard of.
    pub seen_ago: Duration,
    /// The time since a partition of the owner last advanced on it; none if none did.
    pub progress_ago: Option<Duration>,
}

impl Nodes {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            faults_max: settings.node_faults_max.max(1),
            rest: settings.node_rest.min(REST_MAX),
            records: HashMap::new(),
        }
    }

    /// Notes what a node says of itself.
    pub fn announced(&mut self, presence: Presence, now: Duration) {
        if let Some(record) = self.record(&presence.node.clone(), now) {
            record.said = Some(presence);
        }
    }

    /// Notes that a node runs something.
    pub(super) fn seen(&mut self, node: &Name, now: Duration) {
        if let Some(record) = self.record(node, now) {
            record.progress = Some(now);
        }
    }

    /// Records a good proof.
    pub(super) fn good(&mut self, node: &Name, now: Duration) {
        if let Some(record) = self.record(node, now) {
            record.progress = Some(now);
            record.proved += 1;
            record.score = record.score.saturating_sub(1);
        }
    }

    /// Records a partition that a node could not prove.
    pub(super) fn failed(&mut self, node: &Name, now: Duration) {
        if let Some(record) = self.record(node, now) {
            record.failed += 1;
        }
    }

    /// Records a wrong proof. Returns the rest that the node is to take, if it is to take one.
    pub(super) fn fault(&mut self, node: &Name, now: Duration) -> Option<Duration> {
        let faults_max = self.faults_max;
        let record = self.record(node, now)?;
        record.faults += 1;
        record.score = record.score.saturating_add(GOOD_PER_FAULT);
        if record.score < faults_max.saturating_mul(GOOD_PER_FAULT) {
            return None;
        }
        // One more fault after the rest leads to the next one.
        record.score = (faults_max - 1).saturating_mul(GOOD_PER_FAULT).max(1);
        let rest = record.next_rest;
        record.next_rest = rest.saturating_mul(2).min(REST_MAX);
        Some(rest)
    }

    /// Returns the nodes by name. `running` has the partitions that run on each.
    pub(super) fn report(&self, running: &HashMap<&Name, usize>, now: Duration) -> Vec<NodeReport> {
        let mut nodes: Vec<_> = self.records.iter().collect();
        nodes.sort_unstable_by(|a, b| a.0.cmp(b.0));
        let report = |(name, record): (&Name, &Record)| {
            let ago = |at: Duration| now.saturating_sub(at);
            let said = record.said.as_ref();
            NodeReport {
                name: name.clone(),
                version: said.map(|said| said.version.clone()),
                loaded: said.map_or_else(Vec::new, |said| said.loaded.clone()),
                others: said.map_or_else(Vec::new, |said| said.others.clone()),
                running: running.get(name).copied().unwrap_or(0),
                proved: record.proved,
                failed: record.failed,
                faults: record.faults,
                seen_ago: ago(record.seen),
                progress_ago: record.progress.map(ago),
            }
        };
        nodes.into_iter().map(report).collect()
    }

    /// Returns the record of a node that was heard of now; none if there are too many.
    fn record(&mut self, node: &Name, now: Duration) -> Option<&mut Record> {
        if !self.records.contains_key(node) {
            if self.records.len() >= NODES_MAX {
                let is_kept = |record: &Record| {
                    record.score > 0 || record.seen.saturating_add(FORGOTTEN_AFTER) > now
                };
                self.records.retain(|_, record| is_kept(record));
            }
            if self.records.len() >= NODES_MAX {
                return None;
            }
            let record = Record {
                score: 0,
                next_rest: self.rest,
                seen: now,
                progress: None,
                proved: 0,
                failed: 0,
                faults: 0,
                said: None,
            };
            self.records.insert(node.clone(), record);
        }
        let record = self.records.get_mut(node)?;
        record.seen = now;
        Some(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subject::Fingerprint;

    const NOW: Duration = Duration::from_secs(100);

    #[test]
    fn wrong_proofs_in_a_row_lead_to_rests_that_grow() {
        let mut nodes = Nodes::new(&Settings::default());
        let node: Name = "node".parse().unwrap();
        let seconds = |rest: Option<Duration>| rest.map(|rest| rest.as_secs());
        assert_eq!(seconds(nodes.fault(&node, NOW)), None);
        assert_eq!(seconds(nodes.fault(&node, NOW)), None);
        assert_eq!(seconds(nodes.fault(&node, NOW)), Some(60));
        assert_eq!(seconds(nodes.fault(&node, NOW)), Some(120));
        (0..2 * GOOD_PER_FAULT).for_each(|_| nodes.good(&node, NOW));
        let rest = nodes.fault(&node, NOW);
        assert_eq!(seconds(rest), None, "it has made up for them");
    }

    #[test]
    fn a_report_has_what_a_node_said_and_what_it_did() {
        let mut nodes = Nodes::new(&Settings::default());
        let name: Name = "node".parse().unwrap();
        let circuit = |circuit: &str| Circuit {
            name: circuit.parse().unwrap(),
            fingerprint: Fingerprint([1; 32]),
        };
        let presence = Presence {
            node: name.clone(),
            version: "1.2.3".to_owned(),
            loaded: vec![circuit("porep-32GiB")],
            others: vec![circuit("snap")],
        };
        nodes.announced(presence, NOW);
        nodes.good(&name, NOW);
        nodes.failed(&name, NOW);
        nodes.fault(&name, NOW);
        let running = HashMap::from([(&name, 3)]);
        let report = nodes.report(&running, NOW + Duration::from_secs(2));
        let [node] = &report[..] else {
            panic!("{report:?}")
        };
        assert_eq!(node.version.as_deref(), Some("1.2.3"));
        assert_eq!(node.loaded[0].name.as_str(), "porep-32GiB");
        assert_eq!(node.others[0].name.as_str(), "snap");
        let counts = (node.running, node.proved, node.failed, node.faults);
        assert_eq!(counts, (3, 1, 1, 1));
        assert_eq!(node.progress_ago, Some(Duration::from_secs(2)));
    }

    #[test]
    fn made_up_names_take_no_more_than_their_room() {
        let mut nodes = Nodes::new(&Settings::default());
        let name = |number: usize| -> Name { format!("n{number}").parse().unwrap() };
        (0..NODES_MAX + 10).for_each(|number| nodes.seen(&name(number), NOW));
        assert_eq!(nodes.records.len(), NODES_MAX);
        let later = NOW + FORGOTTEN_AFTER;
        nodes.seen(&name(NODES_MAX + 10), later);
        assert_eq!(nodes.records.len(), 1, "the old ones have left");
    }
}
