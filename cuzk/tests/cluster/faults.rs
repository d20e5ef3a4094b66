//! Machines that die or lie while they prove for a daemon.

use crate::doubles::{Double, Kind};
use crate::fixture::{Client, prove, request, verify};
use crate::hands::{Worker, cluster, daemon, proved_by, proved_here, until};
use crate::server::Server;

/// Proves a bundled request in the background.
fn proving(client: &Client, kind: &'static str) -> tokio::task::JoinHandle<()> {
    let mut client = client.clone();
    tokio::spawn(async move {
        let response = prove(&mut client, request(kind)).await.unwrap();
        verify(kind, &response);
    })
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a nats-server, see .ci/nats-server"]
async fn the_work_of_a_killed_worker_goes_to_another() {
    let server = Server::start();
    let mut daemon = daemon(&server.url(), &["--no-local"]);
    let mut dies = Worker::start(&server.url(), "dies");
    let client = daemon.client().await;
    let update = proving(&client, "snap-deals");
    dies.await_log("begun");
    dies.kill();
    let _lives = Worker::start(&server.url(), "lives");
    update.await.unwrap();
    assert_eq!((proved_here(&daemon), proved_by(&daemon, "lives")), (0, 1));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a nats-server, see .ci/nats-server"]
async fn all_goes_on_when_the_server_is_back() {
    let mut server = Server::start();
    let mut daemon = daemon(&server.url(), &["--no-local"]);
    let client = daemon.client().await;
    until("it is connected", || cluster(&daemon)["connected"] == true);
    server.kill();
    until("the loss is known", || {
        cluster(&daemon)["connected"] == false
    });
    // PoSts go on here, and sealing waits.
    proving(&client, "window-post").await.unwrap();
    let update = proving(&client, "snap-deals");
    server.restart();
    let _worker = Worker::start(&server.url(), "one");
    update.await.unwrap();
    assert_eq!((proved_here(&daemon), proved_by(&daemon, "one")), (1, 1));
    assert!(cluster(&daemon)["problem"].is_null());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a nats-server, see .ci/nats-server"]
async fn a_daemon_that_was_killed_gets_the_proof_of_its_worker() {
    let server = Server::start();
    let mut daemon = daemon(&server.url(), &["--no-local"]);
    let worker = Worker::start(&server.url(), "one");
    let client = daemon.client().await;
    let update = proving(&client, "snap-deals");
    worker.await_log("begun");
    daemon.kill();
    assert!(update.await.is_err(), "its call ended with the daemon");
    daemon.start_again();
    let client = daemon.client().await;
    proving(&client, "snap-deals").await.unwrap();
    assert_eq!((proved_here(&daemon), proved_by(&daemon, "one")), (0, 1));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a nats-server, see .ci/nats-server"]
async fn garbage_of_a_worker_is_no_proof_and_is_counted_against_it() {
    let server = Server::start();
    let mut daemon = daemon(&server.url(), &["--no-local"]);
    let client = daemon.client().await;
    let liar = Double::start(&server.url(), "liar", Kind::Liar).await;
    let update = proving(&client, "snap-deals");
    until("the lie is found", || {
        let nodes = cluster(&daemon)["nodes"].clone();
        let nodes = nodes.as_array().unwrap().clone();
        nodes
            .iter()
            .any(|node| node["name"] == "liar" && node["faults"] == 1)
    });
    let _honest = Worker::start(&server.url(), "honest");
    update.await.unwrap();
    assert_eq!(proved_by(&daemon, "liar"), 0);
    liar.end().await;
}
