//! Partitions that a worker proves, and its end.

use std::collections::BTreeSet;

use cuzk_cluster::nats::Settings;
use cuzk_filecoin::ProofKind;
use serde_json::Value;
use tempfile::TempDir;

use crate::fixture::{Daemon, Worker};
use crate::server::{Server, free_port};

fn settings(server: &Server) -> Settings {
    Settings {
        addresses: vec![server.url()],
        ..Settings::default()
    }
}

/// Starts a worker whose files stay when its server goes.
fn worker(server: &Server, folder: &TempDir) -> Worker {
    let arguments = ["--cluster", &server.url(), "--name", "hands"];
    Worker::start(folder.path(), "", &arguments)
}

#[test]
#[ignore = "needs a nats-server, see .ci/nats-server"]
fn a_worker_proves_partitions_of_all_kinds() {
    let server = Server::start();
    let daemon = Daemon::start(&settings(&server));
    let folder = tempfile::tempdir().unwrap();
    let mut worker = worker(&server, &folder);
    let ids = ProofKind::ALL.map(|kind| daemon.offer(kind));
    for id in &ids {
        assert!(daemon.proved(id).contains("hands"));
    }
    let event = worker.event("proved");
    assert_eq!(
        (&event["owner"], &event["partition"]),
        (&"daemon".into(), &0.into())
    );
    assert!(event["elapsed_ms"].is_u64(), "{event}");
    let keys = |event: &Value| event.as_object().unwrap().keys().cloned().collect();
    let keys: [BTreeSet<String>; 2] = [keys(&event), keys(&documented_event())];
    assert_eq!(keys[0], keys[1]);
}

/// Returns the event that the page shows.
fn documented_event() -> Value {
    let page = include_str!("../../../docs/cluster.md");
    let (_, block) = page.split_once("\n```json\n").unwrap();
    let (block, _) = block.split_once("\n```").unwrap();
    serde_json::from_str(block).unwrap()
}

#[test]
#[ignore = "needs a nats-server, see .ci/nats-server"]
fn a_worker_waits_for_its_server_and_says_so() {
    let port = free_port();
    let folder = tempfile::tempdir().unwrap();
    let address = format!("nats://127.0.0.1:{port}");
    let mut worker = Worker::start(folder.path(), "", &["--cluster", &address]);
    worker.logged("tries again after a pause");
    worker.logged(&address);
    let server = Server::start_at(port);
    let daemon = Daemon::start(&settings(&server));
    daemon.proved(&daemon.offer(ProofKind::WindowPost));
}

#[test]
#[ignore = "needs a nats-server, see .ci/nats-server"]
fn a_worker_comes_back_with_its_server() {
    let server = Server::start();
    let daemon = Daemon::start(&settings(&server));
    let folder = tempfile::tempdir().unwrap();
    let mut worker = worker(&server, &folder);
    daemon.proved(&daemon.offer(ProofKind::WindowPost));
    let port = server.port;
    drop(server);
    worker.logged("the server of the cluster is gone");
    // The new server has none of the streams.
    let _server = Server::start_at(port);
    daemon.proved(&daemon.offer(ProofKind::WinningPost));
}

#[test]
#[ignore = "needs a nats-server, see .ci/nats-server"]
fn a_worker_that_is_told_to_stop_finishes_and_leaves() {
    let server = Server::start();
    let daemon = Daemon::start(&settings(&server));
    let folder = tempfile::tempdir().unwrap();
    let mut worker = worker(&server, &folder);
    let id = daemon.offer(ProofKind::Porep);
    let begun = worker.event("begun");
    assert_eq!(begun["circuit"], "porep-2KiB");
    worker.signal("TERM");
    assert_eq!(worker.code(), Some(0), "{}", worker.log());
    assert!(
        worker.log().contains("left the cluster"),
        "{}",
        worker.log()
    );
    daemon.proved(&id);
}

#[test]
#[ignore = "needs a nats-server, see .ci/nats-server"]
fn a_second_signal_ends_a_worker_at_once() {
    let server = Server::start();
    let daemon = Daemon::start(&settings(&server));
    let folder = tempfile::tempdir().unwrap();
    let mut worker = worker(&server, &folder);
    daemon.offer(ProofKind::Porep);
    worker.event("begun");
    // Without its server the worker cannot leave, even if it has finished by now.
    drop(server);
    worker.signal("TERM");
    worker.logged("then leaves");
    worker.signal("INT");
    assert_eq!(worker.code(), Some(130), "{}", worker.log());
}

#[test]
#[ignore = "needs a nats-server, see .ci/nats-server"]
fn a_partition_that_is_not_needed_stops() {
    let server = Server::start();
    let daemon = Daemon::start(&settings(&server));
    let folder = tempfile::tempdir().unwrap();
    let mut worker = worker(&server, &folder);
    let id = daemon.offer(ProofKind::Porep);
    worker.event("begun");
    daemon.owner.cancel(&id);
    worker.event("stopped");
    // It goes on with other work.
    daemon.proved(&daemon.offer(ProofKind::WindowPost));
}

/// The input goes through the object store, and is no partition.
#[test]
#[ignore = "needs a nats-server, see .ci/nats-server"]
fn an_input_that_is_no_partition_fails_by_name() {
    let server = Server::start();
    let daemon = Daemon::start(&settings(&server));
    let folder = tempfile::tempdir().unwrap();
    let mut worker = worker(&server, &folder);
    daemon.offer_bytes(ProofKind::WindowPost, vec![7; 9 << 20]);
    let failed = worker.event("failed");
    let reason = failed["reason"].as_str().unwrap();
    assert!(reason.contains("no partition of a statement"), "{reason}");
}
