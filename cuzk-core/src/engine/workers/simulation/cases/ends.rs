//! The ends of jobs: their proofs, what is remembered of them, and what refuses one.

use std::path::PathBuf;

use cuzk_groth16::params::ParamsError;
use cuzk_scheduler::admission::OverBudget;

use super::*;
use crate::Error;
use crate::engine::reverify::ProofKey;
use crate::engine::status::{EndedJob, Status};
use crate::engine::submission::refusal;

/// An engine with a job, and the two keys that its proofs can be verified with.
fn with_keys(partitions: usize) -> (Case, Arc<JobState>, [ProofKey; 2]) {
    let case = Case::new(1, false);
    let job = case.accept(POREP, partitions);
    let admitted = case.admit(Lane::Common).unwrap();
    let loaded = ProofKey::OfParams(Arc::clone(&admitted.params));
    let alone = case.core().assets.verifying_key(job.circuit()).unwrap();
    (case, job, [loaded, ProofKey::Alone(alone)])
}

#[test]
fn proofs_of_two_keys_are_verified_with_the_newest() {
    let (case, job, [loaded, alone]) = with_keys(2);
    case.core().settle(&job, 0, Ok((case.proof(0), alone)));
    assert_eq!(job.progress().partitions_done, 1);
    case.core().settle(&job, 1, Ok((case.proof(1), loaded)));
    let proof = job.outcome().unwrap().unwrap();
    let expected = [case.proof_bytes(0), case.proof_bytes(1)].concat();
    assert_eq!(proof.as_bytes(), expected);
    assert!(case.waiting().is_empty());
}

#[test]
fn a_proof_that_the_newest_key_rejects_is_made_again() {
    let (case, job, [loaded, alone]) = with_keys(2);
    let wrong = VerifiedProof::unchecked(*case.proof(1).as_bytes());
    case.core().settle(&job, 0, Ok((wrong, alone)));
    assert_eq!(case.waiting(), [(job.number(), 1, Lane::Common)]);
    case.core().settle(&job, 1, Ok((case.proof(1), loaded)));
    assert!(!job.has_ended());
    assert_eq!(job.missing(), [0]);
    let mut waiting = case.waiting();
    waiting.sort_unstable_by_key(|(_, partition, _)| *partition);
    let again = (job.number(), 0, Lane::Common);
    assert_eq!(waiting, [again, (job.number(), 1, Lane::Common)]);
}

#[test]
fn the_last_jobs_are_remembered_and_the_last_failures_longer() {
    let mut case = Case::new(1, false);
    let end = |case: &Case, kind, error| {
        let job = case.accept(kind, 1);
        assert!(case.core().end(&job, error));
        job.number()
    };
    let failed: Vec<_> = (0..25)
        .map(|_| end(&case, POREP, Error::DeadlinePassed))
        .collect();
    let cancelled: Vec<_> = (0..59)
        .map(|_| end(&case, WINDOW, Error::Cancelled))
        .collect();
    let shut_down = end(&case, WINDOW, Error::ShuttingDown);
    case.pass(1);
    let ended = Status::of(case.core()).ended;
    let newest = |numbers: &[u64], count: usize| {
        let newest = numbers.iter().rev().take(count);
        newest.copied().collect::<Vec<_>>()
    };
    // Fifty in all, and behind them twenty that failed.
    let expected = [vec![shut_down], newest(&cancelled, 49), newest(&failed, 20)].concat();
    let numbers: Vec<_> = ended.iter().map(|job| job.number).collect();
    assert_eq!(numbers, expected);
    let of = |job: &EndedJob| (job.outcome, job.kind, job.error.clone());
    let error = |error: Error| Some(error.to_string());
    assert_eq!(
        of(&ended[0]),
        ("shut_down", "window-post", error(Error::ShuttingDown))
    );
    assert_eq!(
        of(&ended[1]),
        ("cancelled", "window-post", error(Error::Cancelled))
    );
    assert_eq!(
        of(&ended[69]),
        ("failed", "porep", error(Error::DeadlinePassed))
    );
    case.accept(POREP, 1);
    case.work();
    assert_eq!(Status::of(case.core()).ended[0].outcome, "proved");
    // The last failures among the last jobs are there once.
    end(&case, POREP, Error::DeadlinePassed);
    assert_eq!(Status::of(case.core()).ended.len(), 50 + 19);
    let totals = Status::of(case.core()).totals.into_iter();
    let totals = totals.map(|of| (of.kind, of.proved, of.failed, of.cancelled));
    let totals: Vec<_> = totals
        .filter(|(_, proved, failed, cancelled)| proved + failed + cancelled > 0)
        .collect();
    assert_eq!(totals.len(), 2);
    assert!(totals.contains(&("porep", 1, 26, 0)));
    assert!(totals.contains(&("window-post", 0, 0, 59)));
}

#[test]
fn a_job_is_found_by_its_id_for_as_long_as_its_result_is_kept() {
    let mut case = Case::with(1, false, |sizes| {
        sizes.config.jobs.results_kept = 2;
        sizes.config.jobs.results_kept_for = Duration::from_secs(100);
    });
    let options = |id: &str| JobOptions {
        id: Some(id.to_owned()),
        ..JobOptions::default()
    };
    let prove = |case: &Case, id: &str| {
        let job = case.submit(request(POREP, 1), options(id)).unwrap();
        case.work();
        job
    };
    let is_found = |case: &Case, id: &str| case.core().jobs.registry.find(id).is_some();
    let job = prove(&case, "a");
    let again = case.submit(request(POREP, 1), options("a")).unwrap();
    assert!(Arc::ptr_eq(&job, &again));
    let other = case.submit(request(POREP, 2), options("a")).unwrap_err();
    assert!(matches!(other, Error::Conflict { id } if id == "a"));
    case.pass(100);
    assert!(is_found(&case, "a"));
    case.pass(1);
    assert!(!is_found(&case, "a"));
    for id in ["b", "c", "d"] {
        prove(&case, id);
    }
    let found = ["b", "c", "d"].map(|id| is_found(&case, id));
    assert_eq!(found, [false, true, true]);
    for (id, is_good) in [("", false), ("\n", false), ("x", true)] {
        let submitted = case.submit(request(POREP, 1), options(id));
        assert_eq!(submitted.is_ok(), is_good, "{id:?}");
    }
    for (bytes, is_good) in [(1024, true), (1025, false)] {
        let submitted = case.submit(request(POREP, 1), options(&"x".repeat(bytes)));
        assert_eq!(submitted.is_ok(), is_good, "{bytes}");
    }
}

#[test]
fn a_refusal_is_counted_under_its_reason() {
    let path = PathBuf::from("x.params");
    let over = OverBudget {
        needed_bytes: 2,
        available_bytes: 1,
    };
    let (id, capacity) = ("a".to_owned(), 1);
    let rows = [
        (
            Error::from(ParamsError::Missing { path }),
            "missing_parameters",
        ),
        (Error::Conflict { id }, "conflict"),
        (Error::Busy { capacity }, "busy"),
        (Error::from(over), "memory"),
        (
            Error::TooLate {
                deadline_ms: 1,
                estimate_ms: 2,
            },
            "deadline",
        ),
        (Error::ShuttingDown, "shutting_down"),
        (Error::request("a", "b", "c"), "invalid"),
        (Error::Cancelled, "internal"),
    ];
    for (error, expected) in rows {
        assert_eq!(refusal(&error).name(), expected, "{error}");
    }
}
