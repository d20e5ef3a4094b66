//! The other machines of a daemon, as `cuzk status` and `cuzk top` show them.

use super::daemon_report::{Cluster, Node};
use super::table::{table, time};

/// A worker that said nothing for so long is shown as silent. It says something every 5 s.
const SILENT_AFTER_S: f64 = 20.0;

/// Returns the state of the server in one line, and the workers as a table.
pub(super) fn text(cluster: &Cluster) -> String {
    let nodes = cluster.nodes.iter().map(row);
    let header = [
        "NODE", "VERSION", "RUNNING", "PROVED", "FAILED", "FAULTS", "PROGRESS", "LOADED",
    ];
    let nodes = table(&header, nodes);
    let nodes = nodes.unwrap_or_else(|| "no workers were seen yet".to_owned());
    format!("{}\n\n{nodes}", line(cluster))
}

/// Returns the state of the server in one line.
pub(super) fn line(cluster: &Cluster) -> String {
    let servers = cluster.servers.join(", ");
    let state = match (&cluster.problem, cluster.connected) {
        (Some(problem), _) => problem.clone(),
        (None, true) => format!("connected to {servers}"),
        (None, false) => format!("connects to {servers}"),
    };
    let open = cluster.open_partitions;
    format!("cluster: {state}; {open} partitions are open")
}

fn row(node: &Node) -> Vec<String> {
    let progress = match node.progress_s_ago {
        _ if node.seen_s_ago > SILENT_AFTER_S => {
            format!("silent for {}", time(whole(node.seen_s_ago)))
        }
        Some(ago) => format!("{} ago", time(whole(ago))),
        None => String::new(),
    };
    let counts = [node.proved, node.failed, node.faults].map(|count| count.to_string());
    let mut row = vec![
        node.name.clone(),
        node.version.clone().unwrap_or_default(),
        node.running.to_string(),
    ];
    row.extend(counts);
    row.extend([progress, node.loaded.join(" ")]);
    row
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an age in whole seconds"
)]
fn whole(seconds: f64) -> u64 {
    seconds as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::daemon_report::DaemonReport;

    fn cluster(json: &str) -> Cluster {
        let report = DaemonReport::parse(&format!(r#"{{"cluster": {json}}}"#));
        report.unwrap().cluster.unwrap()
    }

    #[test]
    fn workers_are_shown_with_what_they_do() {
        let shown = text(&cluster(
            r#"{"servers": ["nats://a:4222"], "connected": true, "open_partitions": 7, "nodes": [
                {"name": "one", "version": "1.2.3", "loaded": ["porep-32GiB"], "running": 2,
                 "proved": 40, "failed": 1, "faults": 0, "seen_s_ago": 1.0, "progress_s_ago": 61.5},
                {"name": "two", "seen_s_ago": 90.0, "progress_s_ago": 95.0}]}"#,
        ));
        for part in [
            "cluster: connected to nats://a:4222; 7 partitions are open",
            "one",
            "1.2.3",
            "40",
            "1 min 1 s ago",
            "porep-32GiB",
            "silent for 1 min 30 s",
        ] {
            assert!(shown.contains(part), "{part:?} is not in\n{shown}");
        }
    }

    #[test]
    fn a_server_that_cannot_be_used_is_told_with_its_reason() {
        let shown = text(&cluster(
            r#"{"servers": ["nats://a:1"], "problem": "server nats://a:1: gone"}"#,
        ));
        assert!(
            shown.starts_with("cluster: server nats://a:1: gone; "),
            "{shown}"
        );
        assert!(shown.ends_with("no workers were seen yet"), "{shown}");
    }
}
