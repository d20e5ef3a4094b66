//! Which calls are of one job.

use cuzk_server::wire::v1::{self, await_proof_response::Status as JobStatus};

use crate::fixture::{Daemon, prove, request, verify};

async fn proved(client: &mut crate::fixture::Client) -> u64 {
    let status = client.get_status(v1::GetStatusRequest {}).await.unwrap();
    status.into_inner().total_proofs_completed
}

#[tokio::test]
async fn calls_of_one_input_at_once_are_one_job() {
    let mut daemon = Daemon::start("");
    let client = daemon.client().await;
    let calls: Vec<_> = (0..8)
        .map(|_| {
            let mut client = client.clone();
            tokio::spawn(async move { prove(&mut client, request("window-post")).await.unwrap() })
        })
        .collect();
    let mut responses = Vec::new();
    for call in calls {
        responses.push(call.await.unwrap());
    }
    for response in &responses {
        assert_eq!(response.job_id, responses[0].job_id);
        assert_eq!(response.proof, responses[0].proof);
    }
    verify("window-post", &responses[0]);
    assert_eq!(proved(&mut client.clone()).await, 1);
}

/// As the client in use does with the partitions of a deadline.
#[tokio::test]
async fn one_request_id_with_two_inputs_is_two_jobs() {
    let mut daemon = Daemon::start("");
    let mut client = daemon.client().await;
    let one = request("window-post");
    let mut other = request("winning-post");
    other.request_id = one.request_id.clone();
    let one = prove(&mut client, one).await.unwrap();
    let other = prove(&mut client, other).await.unwrap();
    assert_ne!(one.job_id, other.job_id);
    verify("window-post", &one);
    verify("winning-post", &other);
    assert_eq!(proved(&mut client).await, 2);
}

#[tokio::test]
async fn a_job_is_submitted_awaited_and_cancelled_by_its_name() {
    let mut daemon = Daemon::start("");
    let mut client = daemon.client().await;
    let submitted = client.submit_proof(request("window-post")).await.unwrap();
    let job_id = submitted.into_inner().job_id;
    let wait = |timeout_ms| v1::AwaitProofRequest {
        job_id: job_id.clone(),
        timeout_ms,
    };
    let early = client.await_proof(wait(1)).await.unwrap().into_inner();
    assert_eq!(early.status(), JobStatus::Timeout);
    let end = client.await_proof(wait(0)).await.unwrap().into_inner();
    verify("window-post", &end);
    let cancel = v1::CancelProofRequest {
        job_id: job_id.clone(),
    };
    let cancelled = client.cancel_proof(cancel).await.unwrap().into_inner();
    assert!(!cancelled.was_running);

    let submitted = client.submit_proof(request("snap-deals")).await.unwrap();
    let job_id = submitted.into_inner().job_id;
    let cancel = v1::CancelProofRequest {
        job_id: job_id.clone(),
    };
    assert!(
        client
            .cancel_proof(cancel)
            .await
            .unwrap()
            .into_inner()
            .was_running
    );
    let wait = v1::AwaitProofRequest {
        job_id,
        timeout_ms: 0,
    };
    let end = client.await_proof(wait).await.unwrap().into_inner();
    assert_eq!(end.status(), JobStatus::Cancelled);

    let nobody = v1::AwaitProofRequest {
        job_id: "nobody".to_owned(),
        timeout_ms: 0,
    };
    let end = client.await_proof(nobody).await.unwrap().into_inner();
    assert_eq!(end.status(), JobStatus::Unknown);
}
