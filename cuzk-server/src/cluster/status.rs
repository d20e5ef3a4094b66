//! The state of the cluster, as the documents and the page of a daemon show it.
//!
//! Not the state itself, which the ledger has. The invariant: a pure function of its report.

use std::time::Duration;

use cuzk_cluster::ledger::NodeReport;
use cuzk_cluster::nats::Report;
use serde::Serialize;

/// The state of the cluster of a daemon.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClusterStatus {
    /// The addresses of the servers.
    pub servers: Vec<String>,
    /// True if work can be sent to the server now.
    pub connected: bool,
    /// The reason for which the server cannot be used, or the last request failed.
    pub problem: Option<String>,
    /// True if the daemon begins partitions itself that others could prove.
    pub local: bool,
    /// The partitions that other machines may prove and that have not ended.
    pub open_partitions: usize,
    /// The workers that it has heard of, by name.
    pub nodes: Vec<NodeStatus>,
}

/// A worker of the cluster.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NodeStatus {
    /// Its name.
    pub name: String,
    /// Its version; none before it has said it.
    pub version: Option<String>,
    /// The circuits whose parameters it has in memory.
    pub loaded: Vec<String>,
    /// The other circuits that it can prove.
    pub others: Vec<String>,
    /// Partitions of this daemon that it proves now.
    pub running: usize,
    /// Partitions of this daemon that it proved.
    pub proved: u64,
    /// Partitions of this daemon that it could not prove.
    pub failed: u64,
    /// Its wrong proofs.
    pub faults: u64,
    /// The time since it was last heard of, in seconds.
    pub seen_s_ago: f64,
    /// The time since a partition of this daemon last advanced on it, in seconds.
    pub progress_s_ago: Option<f64>,
}

impl ClusterStatus {
    /// Returns the status of a report. `local` is true if the daemon proves itself, too.
    #[must_use]
    pub fn of(report: Report, local: bool) -> Self {
        Self {
            servers: report.servers,
            connected: report.is_connected,
            problem: report.problem,
            local,
            open_partitions: report.open_partitions,
            nodes: report.nodes.into_iter().map(node).collect(),
        }
    }
}

fn node(node: NodeReport) -> NodeStatus {
    let names = |circuits: Vec<cuzk_cluster::subject::Circuit>| {
        let names = circuits.into_iter().map(|circuit| circuit.name.to_string());
        names.collect()
    };
    NodeStatus {
        name: node.name.to_string(),
        version: node.version,
        loaded: names(node.loaded),
        others: names(node.others),
        running: node.running,
        proved: node.proved,
        failed: node.failed,
        faults: node.faults,
        seen_s_ago: node.seen_ago.as_secs_f64(),
        progress_s_ago: node.progress_ago.map(|ago: Duration| ago.as_secs_f64()),
    }
}
