//! Clients that go away before their proof.

use std::time::{Duration, Instant};

use cuzk_server::wire::v1::{self, await_proof_response::Status as JobStatus};

use crate::fixture::{Client, Daemon, PATIENCE, prove, request, verify};

/// Waits until the jobs of a kind that have not ended are as many.
async fn until_jobs(client: &mut Client, kind: &str, jobs: u32) {
    let until = Instant::now() + PATIENCE;
    loop {
        let status = client.get_status(v1::GetStatusRequest {}).await.unwrap();
        let queues = status.into_inner().queues;
        let queue = queues
            .iter()
            .find(|queue| queue.proof_kind == kind)
            .unwrap();
        if queue.pending + queue.in_progress == jobs {
            return;
        }
        assert!(Instant::now() < until, "{queues:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Calls, and goes away once the daemon has the job.
async fn call_and_go(client: &Client, kind: &'static str, queue: &str) {
    let mut caller = client.clone();
    let call = tokio::spawn(async move { prove(&mut caller, request(kind)).await });
    until_jobs(&mut client.clone(), queue, 1).await;
    call.abort();
    call.await.unwrap_err();
}

#[tokio::test]
async fn a_client_that_comes_back_attaches_to_its_job() {
    let mut daemon = Daemon::start("");
    let mut client = daemon.client().await;
    call_and_go(&client, "window-post", "window-post").await;
    let response = prove(&mut client, request("window-post")).await.unwrap();
    verify("window-post", &response);
    let status = client.get_status(v1::GetStatusRequest {}).await.unwrap();
    assert_eq!(status.into_inner().total_proofs_completed, 1);
}

#[tokio::test]
async fn a_proof_that_nobody_waited_for_is_kept() {
    let mut daemon = Daemon::start("");
    let mut client = daemon.client().await;
    call_and_go(&client, "window-post", "window-post").await;
    until_jobs(&mut client, "window-post", 0).await;
    let response = prove(&mut client, request("window-post")).await.unwrap();
    verify("window-post", &response);
    let status = client.get_status(v1::GetStatusRequest {}).await.unwrap();
    assert_eq!(status.into_inner().total_proofs_completed, 1);
}

/// It is of no use later: the block is lost.
#[tokio::test]
async fn a_winning_post_that_nobody_waits_for_is_cancelled() {
    let mut daemon = Daemon::start("");
    let mut client = daemon.client().await;
    call_and_go(&client, "winning-post", "winning-post").await;
    until_jobs(&mut client, "winning-post", 0).await;
    let status = client.get_status(v1::GetStatusRequest {}).await.unwrap();
    assert_eq!(status.into_inner().total_proofs_completed, 0);
}

/// The end of one call is not the end of another's job.
#[tokio::test]
async fn a_job_that_another_call_waits_for_goes_on() {
    let mut daemon = Daemon::start("");
    let client = daemon.client().await;
    let mut other = client.clone();
    let stays = tokio::spawn(async move { prove(&mut other, request("winning-post")).await });
    until_jobs(&mut client.clone(), "winning-post", 1).await;
    let mut goes = client.clone();
    let goes = tokio::spawn(async move { prove(&mut goes, request("winning-post")).await });
    tokio::time::sleep(Duration::from_millis(20)).await;
    goes.abort();
    let response = stays.await.unwrap().unwrap();
    assert_eq!(response.status(), JobStatus::Completed);
    verify("winning-post", &response);
}
