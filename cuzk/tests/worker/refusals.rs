//! Servers that a worker cannot use, and configurations that name none: each is told by name,
//! with the exit code of bad input.

use cuzk_bounded::bounded;

use crate::fixture::Worker;
use crate::server::{Server, make_foreign_stream, old_server};

/// Starts a worker that cannot begin, and returns its log.
fn refused(config: &str, arguments: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut worker = Worker::start(folder.path(), config, arguments);
    assert_eq!(worker.code(), Some(2), "{}", worker.log());
    worker.log()
}

#[test]
fn a_worker_without_a_server_says_how_to_name_one() {
    let log = refused("", &[]);
    assert!(log.contains("give --cluster nats://HOST:PORT"), "{log}");
}

#[test]
fn a_bad_address_or_name_is_told() {
    let log = refused("", &["--cluster", "127.0.0.1:4222"]);
    assert!(log.contains("the scheme is missing"), "{log}");
    let named = ["--cluster", "nats://127.0.0.1:4222", "--name", "a.b"];
    let log = refused("", &named);
    assert!(log.contains("cluster.name") && log.contains("a.b"), "{log}");
}

#[test]
fn a_file_that_is_not_there_is_told_with_its_key() {
    let config = "[cluster]\nservers = [\"nats://127.0.0.1:4222\"]\ncredentials = \"/no/creds\"\n";
    let log = refused(config, &[]);
    assert!(log.contains("cluster.credentials: /no/creds"), "{log}");
}

#[test]
fn a_server_that_is_too_old_is_told() {
    let log = refused("", &["--cluster", &old_server("2.9.10")]);
    assert!(log.contains("version 2.9.10 is too old"), "{log}");
    assert!(log.contains("install nats-server 2.14 or later"), "{log}");
}

#[test]
#[ignore = "needs a nats-server, see .ci/nats-server"]
fn a_stream_of_someone_else_is_told() {
    let server = Server::start();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    bounded(|| runtime.block_on(make_foreign_stream(&server)));
    let log = refused("", &["--cluster", &server.url()]);
    assert!(log.contains("stream CUZK_WORK: retention"), "{log}");
}
