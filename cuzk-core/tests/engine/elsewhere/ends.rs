//! The ends of jobs and of the engine while partitions are elsewhere.

use std::thread;
use std::time::Duration;

use cuzk_bounded::BoundedJoin;

use super::*;
use crate::common::BoundedJob as _;
use crate::common::MOMENTS;

#[test]
fn a_cancelled_job_is_taken_from_others() {
    let folder = tempfile::tempdir().unwrap();
    let shared = Shared::start(folder.path(), true, Deed::Prove);
    let job = submit(&shared.engine, tiny::job(KIND, 3));
    let proofs = shared.proofs(KIND, 3);
    let late = shared.verify(of(&job, 0), &proofs[0]).unwrap();
    assert!(job.cancel());
    for partition in 0..3 {
        assert!(shared.place.count(&Told::Ended(of(&job, partition))) > 0);
    }
    let id = of(&job, 0);
    shared.remote.proved(id, late, "late", Duration::ZERO);
    shared.remote.give_back(id, GiveBack::Free);
    assert!(shared.verify(id, &proofs[0]).is_err());
    let error = job.wait_bounded().unwrap_err();
    assert!(matches!(*error, Error::Cancelled), "{error}");
    assert_eq!(shared.engine.status().partitions_waiting, 0);
}

#[test]
fn a_job_that_is_refused_is_taken_from_others() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = tiny::config(folder.path());
    config.jobs.queued_partitions = 2;
    let shared = Shared::start_with(config, true, Deed::Prove, no_decoder());
    let first = submit(&shared.engine, tiny::job(KIND, 2));
    let options = cuzk_core::JobOptions::default();
    let second = shared.engine.submit_job(tiny::job(KIND, 1), options);
    let error = second.unwrap_err();
    assert!(matches!(error, Error::Busy { .. }), "{error}");
    let all = shared.place.all();
    let queued = all.iter().filter(|told| matches!(told, Told::Queued(_)));
    let ended = all.iter().filter(|told| matches!(told, Told::Ended(_)));
    assert_eq!(queued.count(), 2 + ended.count(), "{all:?}");
    assert!(first.poll().is_none());
}

#[test]
fn a_drain_begins_nothing_here_and_takes_the_proofs_of_others() {
    let folder = tempfile::tempdir().unwrap();
    let shared = Shared::start(folder.path(), true, Deed::Prove);
    let job = submit(&shared.engine, tiny::job(KIND, 2));
    let proofs = shared.proofs(KIND, 2);
    shared.engine.drain();
    shared.remote.give_back(of(&job, 0), GiveBack::Free);
    shared.prove(of(&job, 1), &proofs[1]);
    assert!(job.wait_for(Duration::from_millis(50)).is_none());
    assert_eq!(shared.device.started(), 0);
    shared.engine.resume();
    assert_eq!(job.wait_bounded().unwrap().partitions(), 2);
    assert_eq!(shared.device.started(), 1);
    // A partition that is left to others stays with them after a drain.
    let other = submit(&shared.engine, tiny::job(KIND, 1));
    shared.engine.drain();
    shared.engine.resume();
    assert!(other.wait_for(Duration::from_millis(50)).is_none());
    assert_eq!(shared.device.started(), 1);
}

#[test]
fn a_shutdown_waits_for_others_and_ends_with_their_proof() {
    let folder = tempfile::tempdir().unwrap();
    let shared = Shared::start(folder.path(), true, Deed::Prove);
    let job = submit(&shared.engine, tiny::job(KIND, 1));
    let proofs = shared.proofs(KIND, 1);
    let Shared { engine, remote, .. } = shared;
    let ending = thread::spawn(move || engine.shutdown());
    let id = of(&job, 0);
    let proof = remote.verify(id, &proofs[0]).unwrap();
    remote.proved(id, proof, "node", Duration::ZERO);
    ending.join_bounded().unwrap();
    assert_eq!(job.wait_bounded().unwrap().as_bytes(), proofs[0]);
    // The engine is gone, and its place may not know it yet.
    assert!(remote.statement(id).is_none() && remote.has_resumed());
    assert!(remote.engine().is_none());
    remote.give_back(id, GiveBack::Failed);
}

#[test]
fn a_job_that_goes_on_at_the_next_start_stays_with_others() {
    let folder = tempfile::tempdir().unwrap();
    let shared = Shared::start(folder.path(), true, Deed::Prove);
    let job = submit(&shared.engine, tiny::job(KIND, 2));
    let left = shared.engine.shutdown_within(Duration::ZERO);
    assert_eq!(left.len(), 1);
    let error = job.wait_for(MOMENTS).unwrap().unwrap_err();
    assert!(matches!(*error, Error::ShuttingDown), "{error}");
    let all = shared.place.all();
    assert!(
        !all.iter().any(|told| matches!(told, Told::Ended(_))),
        "{all:?}"
    );
}
