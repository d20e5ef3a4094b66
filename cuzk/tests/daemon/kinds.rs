//! Every kind, from a request of the wire to a proof that the reference verifier accepts.

use crate::fixture::{Daemon, prove, request, verify};

async fn a_kind(kind: &str) {
    let mut daemon = Daemon::start("");
    let mut client = daemon.client().await;
    let response = prove(&mut client, request(kind)).await.unwrap();
    verify(kind, &response);
    assert!(response.total_ms >= response.gpu_compute_ms, "{response:?}");
    assert!(response.error_message.is_empty());
    // The same call again gets the same proof, and nothing is proved.
    let again = prove(&mut client, request(kind)).await.unwrap();
    assert_eq!(again.proof, response.proof);
}

#[tokio::test]
async fn porep() {
    a_kind("porep").await;
}

#[tokio::test]
async fn snap_deals() {
    a_kind("snap-deals").await;
}

#[tokio::test]
async fn window_post() {
    a_kind("window-post").await;
}

#[tokio::test]
async fn winning_post() {
    a_kind("winning-post").await;
}
