//! A daemon that is killed between accepting a call and its reply.

use std::path::Path;
use std::time::{Duration, Instant};

use cuzk_journal::{End, Journal, Limits, State};
use cuzk_server::wire::v1;
use serde_json::Value;

use crate::fixture::{Daemon, prove, request, verify};

/// The number of moments after the call at which the daemon is killed. The nightly run has
/// more.
fn points() -> u32 {
    let points = std::env::var("CUZK_TEST_KILLS").ok();
    points.map_or(3, |points| points.parse().unwrap())
}

/// A kind that the journal has. A PoRep, the other one, takes twice the time.
const KIND: &str = "snap-deals";

fn named(name: &str) -> v1::SubmitProofRequest {
    v1::SubmitProofRequest {
        request_id: name.to_owned(),
        ..request(KIND)
    }
}

/// Returns the number of partitions of a job whose proof the journal has. The job has one
/// partition.
fn finished(journal: &Path, job_id: &str) -> u64 {
    let journal = Journal::open(journal, Limits::default()).unwrap();
    if let Some(State::Ended(end)) = journal.state(job_id).unwrap() {
        assert!(matches!(end, End::Done(_)), "{end:?}");
        return 1;
    }
    let pending = journal.pending().unwrap();
    assert!(pending.damaged.is_empty(), "{:?}", pending.damaged);
    let job = pending.jobs.iter().find(|job| job.id == job_id);
    job.map_or(0, |job| job.finished.len() as u64)
}

/// Returns the number of partitions that the daemon has proved since its start.
fn proved(daemon: &Daemon) -> u64 {
    let (_, document) = daemon.page("/status");
    let document: Value = serde_json::from_str(&document).unwrap();
    let devices = document["engine"]["devices"].as_array().unwrap();
    let proved = devices.iter().map(|device| device["proved"].as_u64());
    proved.map(Option::unwrap).sum()
}

#[tokio::test]
async fn every_call_gets_its_proof_and_an_input_has_one() {
    let mut daemon = Daemon::start("");
    let mut client = daemon.client().await;
    let began = Instant::now();
    prove(&mut client, named("first")).await.unwrap();
    // From before it is decoded to after its proof.
    let whole = began.elapsed().mul_f64(1.1);
    for point in 0..points() {
        let moment: Duration = whole * point / points();
        client = daemon.client().await;
        let input = named(&format!("update-{point}"));
        let mut caller = client.clone();
        let asked = input.clone();
        let call = tokio::spawn(async move { prove(&mut caller, asked).await });
        tokio::time::sleep(moment).await;
        daemon.kill();
        let before = call.await.unwrap().ok();
        // A copy, since the journal is mended when it is opened, and the daemon has to do that.
        let copy = tempfile::NamedTempFile::new().unwrap();
        std::fs::copy(daemon.folder.path().join("jobs.redb"), copy.path()).unwrap();
        daemon.start_again();
        client = daemon.client().await;
        let after = prove(&mut client, input.clone()).await.unwrap();
        verify(KIND, &after);
        let again = prove(&mut client, input).await.unwrap();
        let proofs = before.iter().chain([&again]);
        for other in proofs {
            assert_eq!(other.proof, after.proof, "the input has two proofs");
        }
        assert_eq!(
            finished(copy.path(), &after.job_id) + proved(&daemon),
            1,
            "{moment:?}: a finished partition is not proved again"
        );
    }
}
