//! Proofs of others, and the journal.

use cuzk_core::JobOptions;
use cuzk_core::job::JobHandle;

use super::*;
use crate::common::BoundedJob as _;
use crate::common::named;

/// Reads requests that are the number of their partitions, in words.
fn decoder() -> Decoder {
    Arc::new(|request: &[u8]| {
        let text = std::str::from_utf8(request).ok();
        let partitions: Option<usize> = text.and_then(|text| text.parse().ok());
        let wrong = || Error::request("request", "expected a number", "send a number");
        Ok(tiny::job(KIND, partitions.ok_or_else(wrong)?))
    })
}

fn config(folder: &Path) -> Config {
    let mut config = tiny::config(&folder.join("parameters"));
    config.jobs.journal = Some(folder.join("jobs.journal"));
    config
}

fn waiting(id: &str) -> JobOptions {
    JobOptions {
        waits: true,
        ..named(id)
    }
}

#[test]
fn a_proof_of_others_is_recorded_and_not_asked_for_again() {
    let folder = tempfile::tempdir().unwrap();
    let start = || Shared::start_with(config(folder.path()), true, Deed::Prove, decoder());
    let shared = start();
    let job = shared.engine.submit_bytes(b"3", named("job")).unwrap();
    let proofs = shared.proofs(KIND, 3);
    shared.prove(of(&job, 1), &proofs[1]);
    assert_eq!(
        shared
            .engine
            .shutdown_within(std::time::Duration::ZERO)
            .len(),
        1
    );
    drop(shared);

    let shared = start();
    wait_until("the job of the journal is queued", || {
        shared.remote.has_resumed()
    });
    let job: JobHandle = shared.engine.job("job").unwrap();
    wait_until("its partitions are offered", || {
        shared.place.all().len() == 2
    });
    let expected = [0, 2].map(|partition| Told::Queued(of(&job, partition)));
    assert_eq!(shared.place.all(), expected);
    shared.prove(of(&job, 0), &proofs[0]);
    shared.prove(of(&job, 2), &proofs[2]);
    assert_eq!(job.wait_bounded().unwrap().as_bytes(), proofs.concat());
    assert_eq!(shared.device.started(), 0);
}

/// The queue has room for many jobs, since other machines prove beside this one.
#[test]
fn jobs_of_the_journal_are_offered_ahead() {
    let folder = tempfile::tempdir().unwrap();
    let start = |is_left_to_others| {
        let config = config(folder.path());
        Shared::start_with(config, is_left_to_others, Deed::Prove, decoder())
    };
    let shared = start(true);
    for number in 0..50 {
        let id = format!("job {number}");
        let options = waiting(&id);
        shared.engine.submit_bytes(b"2", options).unwrap();
    }
    wait_until("all are queued", || {
        shared.engine.status().partitions_waiting == 100
    });
    assert!(shared.remote.has_resumed());
}
