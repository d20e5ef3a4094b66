//! The end of a daemon.

use std::time::{Duration, Instant};

use cuzk_server::wire::v1;

use crate::fixture::{Daemon, PATIENCE, prove, request, verify};

#[tokio::test]
async fn what_runs_is_finished_and_the_daemon_ends_well() {
    let mut daemon = Daemon::start("");
    let mut client = daemon.client().await;
    let mut caller = client.clone();
    let call = tokio::spawn(async move { prove(&mut caller, request("window-post")).await });
    let until = Instant::now() + PATIENCE;
    loop {
        assert!(Instant::now() < until, "it does not begin");
        let status = client
            .get_status(v1::GetStatusRequest {})
            .await
            .unwrap()
            .into_inner();
        if status.total_proofs_completed > 0
            || status.queues.iter().any(|queue| queue.in_progress > 0)
        {
            break;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    daemon.signal("TERM");
    let response = call.await.unwrap().unwrap();
    verify("window-post", &response);
    assert_eq!(daemon.wait_bounded(), Some(0), "{}", daemon.log());
    assert!(!daemon.socket().exists());
}

#[tokio::test]
async fn what_was_accepted_goes_on_at_the_next_start() {
    let mut daemon = Daemon::start("[server]\ndrain_s = 1\n");
    let mut client = daemon.client().await;
    let mut ids = Vec::new();
    for number in 0..2 {
        let input = v1::SubmitProofRequest {
            request_id: format!("snap-{number}"),
            ..request("snap-deals")
        };
        let submitted = client.submit_proof(input).await.unwrap();
        ids.push(submitted.into_inner().job_id);
    }
    daemon.signal("TERM");
    assert_eq!(daemon.wait_bounded(), Some(0), "{}", daemon.log());
    daemon.start_again();
    let mut client = daemon.client().await;
    for job_id in ids {
        let wait = v1::AwaitProofRequest {
            job_id,
            timeout_ms: 0,
        };
        let response = client.await_proof(wait).await.unwrap().into_inner();
        verify("snap-deals", &response);
    }
}

/// The queue has more than a second of PoSts, which a drain would finish.
#[tokio::test]
async fn a_second_signal_ends_the_daemon_at_once() {
    let mut daemon = Daemon::start("[server]\ndrain_s = 1000\n");
    let mut client = daemon.client().await;
    let mut ids = Vec::new();
    for number in 0..40 {
        let input = v1::SubmitProofRequest {
            request_id: format!("wdpost-{number}"),
            ..request("window-post")
        };
        let submitted = client.submit_proof(input).await.unwrap();
        ids.push(submitted.into_inner().job_id);
    }
    daemon.signal("TERM");
    daemon.await_log("SIGTERM: finishes what runs");
    let (line, missing) = daemon.page("/readyz");
    assert!(line.contains("503"), "{line}");
    assert!(missing.contains("the daemon is stopping"), "{missing}");
    daemon.signal("TERM");
    assert_eq!(daemon.wait_bounded(), Some(143), "{}", daemon.log());
    // The jobs were accepted, so they are proved after the next start. The first ones may have
    // ended before the signal. A daemon knows the ids of those only until it ends.
    daemon.start_again();
    let mut client = daemon.client().await;
    for job_id in ids.into_iter().rev().take(2) {
        let wait = v1::AwaitProofRequest {
            job_id,
            timeout_ms: 0,
        };
        let response = client.await_proof(wait).await.unwrap().into_inner();
        verify("window-post", &response);
    }
}
