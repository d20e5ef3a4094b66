//! A daemon that is killed between accepting a call and its reply.

use std::time::Duration;

use cuzk_server::wire::v1;

use crate::fixture::{Daemon, prove, request, verify};

/// The moments after the call at which the daemon is killed. The nightly run has more.
fn moments() -> Vec<Duration> {
    let points = std::env::var("CUZK_TEST_KILLS").ok();
    let points = points.and_then(|points| points.parse().ok()).unwrap_or(3);
    // A 2 KiB PoRep takes a second or more: from before it is decoded to after its proof.
    (0..points)
        .map(|point| Duration::from_millis(40 * point * point % 2500 + 7 * point))
        .collect()
}

#[tokio::test]
async fn every_call_gets_its_proof_and_an_input_has_one() {
    let mut daemon = Daemon::start("");
    let mut known: Option<Vec<u8>> = None;
    for (point, moment) in moments().into_iter().enumerate() {
        let mut client = daemon.client().await;
        let input = v1::SubmitProofRequest {
            request_id: format!("porep-{}", point / 2),
            ..request("porep")
        };
        let mut caller = client.clone();
        let asked = input.clone();
        let call = tokio::spawn(async move { prove(&mut caller, asked).await });
        tokio::time::sleep(moment).await;
        daemon.kill();
        let before = call.await.unwrap().ok();
        daemon.start_again();
        client = daemon.client().await;
        let after = prove(&mut client, input).await.unwrap();
        verify("porep", &after);
        if let Some(before) = before {
            assert_eq!(before.proof, after.proof, "the input has two proofs");
        }
        // Every second point is the same input again.
        if point % 2 == 1 {
            assert_eq!(known, Some(after.proof.clone()), "the input has two proofs");
        }
        known = Some(after.proof);
    }
}
