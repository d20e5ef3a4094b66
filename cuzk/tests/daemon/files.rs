//! A daemon that may open no more files.

use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use cuzk_server::wire::v1;

use crate::fixture::{Daemon, prove, request, verify};

/// More than a daemon without clients has open.
const FILES_MAX: u32 = 160;

/// The messages of the listeners for clients and of that for pages.
const MESSAGES: [&str; 2] = [
    "cannot accept a connection: Too many open files",
    "HTTP: a connection could not be accepted",
];

#[tokio::test]
async fn a_listener_without_descriptors_waits_and_goes_on() {
    let mut daemon = Daemon::start_with(Some(""), &[], Some(FILES_MAX));
    let mut client = daemon.client().await;
    let page = http_address(&daemon);
    let mut connections = Vec::new();
    while !MESSAGES
        .iter()
        .all(|message| daemon.log().contains(message))
    {
        // Silent clients lose their places, so some come again.
        let (unix, tcp) = (
            UnixStream::connect(daemon.socket()),
            TcpStream::connect(&page),
        );
        connections.push((unix.unwrap(), tcp.unwrap()));
        assert!(connections.len() < 400, "{}", daemon.log());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // The connections that it has are served.
    client.get_status(v1::GetStatusRequest {}).await.unwrap();
    drop(connections);
    let mut client = daemon.client().await;
    let response = prove(&mut client, request("window-post")).await.unwrap();
    verify("window-post", &response);
    assert!(daemon.page("/readyz").0.ends_with("200 OK"));
}

fn http_address(daemon: &Daemon) -> String {
    let log = daemon.log();
    let (_, rest) = log.rsplit_once("serves HTTP on tcp://").unwrap();
    rest.split_whitespace().next().unwrap().to_owned()
}
