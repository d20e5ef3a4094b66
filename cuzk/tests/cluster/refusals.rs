//! Servers that the daemon cannot use: each is told by name, and the daemon goes on alone.

use crate::fixture::{prove, request, verify};
use crate::hands::{cluster, daemon, until};
use crate::server::{Server, free_port, make_foreign_stream, old_server, shipped};

/// Starts a daemon of a cluster, waits until it names what is wrong, and has it prove.
async fn is_named(url: &str, expected: &str) {
    let mut daemon = daemon(url, &[]);
    let mut client = daemon.client().await;
    until(expected, || {
        let problem = cluster(&daemon)["problem"].clone();
        problem.as_str().is_some_and(|text| text.contains(expected))
    });
    let response = prove(&mut client, request("window-post")).await.unwrap();
    verify("window-post", &response);
    let (line, _) = daemon.page("/readyz");
    assert!(line.contains("200"), "{line}");
    let log = daemon.log();
    assert_eq!(log.matches(expected).count(), 1, "once: {log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_too_old_is_named() {
    is_named(&old_server("2.9.10"), "version 2.9.10 is too old").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a nats-server, see .ci/nats-server"]
async fn a_server_that_refuses_the_credentials_is_named() {
    let config = shipped("loopback.conf") + "authorization { user: a, password: b }\n";
    let server = Server::start_configured(free_port(), &config);
    is_named(&server.url(), "refused the credentials").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a nats-server, see .ci/nats-server"]
async fn a_server_without_streams_is_named() {
    let server = Server::start_configured(free_port(), "server_name: plain\n");
    is_named(&server.url(), "JetStream is off").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a nats-server, see .ci/nats-server"]
async fn a_stream_of_someone_else_is_named() {
    let server = Server::start();
    make_foreign_stream(&server).await;
    is_named(&server.url(), "stream CUZK_WORK: retention").await;
}
