//! The metrics of the other machines, by node.
//!
//! The invariant: every family is made of the status of the cluster, and counts nothing itself.

use super::family::Family;
use crate::cluster::{ClusterStatus, NodeStatus};

/// Returns the families of a cluster.
pub(super) fn families(cluster: &ClusterStatus) -> Vec<Family> {
    let connected = f64::from(u8::from(cluster.connected));
    let of_nodes = |name, kind, help, value: fn(&NodeStatus) -> f64| {
        let family = Family::new(name, kind, help);
        let nodes = cluster.nodes.iter();
        nodes.fold(family, |family, node| {
            // A name has letters, digits, `-` and `_` only.
            family.with(format!("{{node=\"{}\"}}", node.name), value(node))
        })
    };
    vec![
        Family::gauge(
            "cuzk_cluster_connected",
            "1 if work can be sent to the server of the cluster",
            connected,
        ),
        Family::gauge(
            "cuzk_cluster_open_partitions",
            "Partitions that other machines may prove and that have not ended",
            cluster.open_partitions as f64,
        ),
        of_nodes(
            "cuzk_node_running_partitions",
            "gauge",
            "Partitions of this daemon that the node proves",
            |node| node.running as f64,
        ),
        of_nodes(
            "cuzk_node_proved_total",
            "counter",
            "Partitions of this daemon that the node proved",
            |node| node.proved as f64,
        ),
        of_nodes(
            "cuzk_node_failed_total",
            "counter",
            "Partitions of this daemon that the node could not prove",
            |node| node.failed as f64,
        ),
        of_nodes(
            "cuzk_node_faults_total",
            "counter",
            "Wrong proofs of the node",
            |node| node.faults as f64,
        ),
        of_nodes(
            "cuzk_node_seen_seconds",
            "gauge",
            "Time since the node was last heard of",
            |node| node.seen_s_ago,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_node_has_a_sample_in_each_family() {
        let node = |name: &str, proved| NodeStatus {
            name: name.to_owned(),
            version: None,
            loaded: Vec::new(),
            others: Vec::new(),
            running: 2,
            proved,
            failed: 1,
            faults: 0,
            seen_s_ago: 1.5,
            progress_s_ago: None,
        };
        let cluster = ClusterStatus {
            servers: Vec::new(),
            connected: true,
            problem: None,
            local: true,
            open_partitions: 7,
            nodes: vec![node("one", 3), node("two", 4)],
        };
        let mut text = String::new();
        for family in families(&cluster) {
            family.write(&mut text);
        }
        for line in [
            "cuzk_cluster_connected 1",
            "cuzk_cluster_open_partitions 7",
            "cuzk_node_proved_total{node=\"one\"} 3",
            "cuzk_node_proved_total{node=\"two\"} 4",
            "cuzk_node_seen_seconds{node=\"two\"} 1.5",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
