//! The effects of each call, and the calls that are refused.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failure in a test fails the test"
)]

mod common;

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use common::{TestClock, limits, noise, options};
use cuzk_journal::{
    Accepted, End, FAILURE_BYTES_MAX, ID_BYTES_MAX, JobOptions, Journal, JournalError,
    KIND_BYTES_MAX, Limits, PARTITION_PROOF_BYTES_MAX, PARTITIONS_MAX, PROOF_BYTES_MAX, State,
    other_file_problem,
};
use tempfile::TempDir;

fn fresh(limits: Limits) -> (TempDir, Journal) {
    let directory = tempfile::tempdir().unwrap();
    let journal = Journal::open(directory.path().join("j"), limits).unwrap();
    (directory, journal)
}

fn done(bytes: &[u8]) -> End {
    End::Done(bytes.to_vec())
}

#[test]
fn is_send_and_sync() {
    fn check<T: Send + Sync>() {}
    check::<Journal>();
}

/// As of a process that is killed before a new journal has its name.
#[test]
fn what_a_killed_process_left_of_a_new_journal_is_removed_by_the_next() {
    let directory = tempfile::tempdir().unwrap();
    let name = ".cuzk-0123abcd-0123-0123-0123-0123456789ab-aaaaaa.partial";
    let left = directory.path().join(name);
    let file = File::create(&left).unwrap();
    let two_days = Duration::from_secs(2 * 24 * 3600);
    file.set_modified(SystemTime::now() - two_days).unwrap();
    drop(file);
    let path = directory.path().join("j");
    drop(Journal::open(&path, limits()).unwrap());
    assert!(!left.exists());
    let mode = path.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_file_that_is_no_journal_is_a_problem() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("j");
    assert_eq!(other_file_problem(&path), None);
    drop(Journal::open(&path, limits()).unwrap());
    assert_eq!(other_file_problem(&path), None);
    let problem = "it is there, and no journal; name another file";
    assert_eq!(
        other_file_problem(directory.path()).as_deref(),
        Some(problem)
    );
    for other in ["", "the text of another program"] {
        fs::write(&path, other).unwrap();
        assert_eq!(
            other_file_problem(&path).as_deref(),
            Some(problem),
            "{other}"
        );
    }
}

#[test]
fn a_journal_has_the_limits_that_it_was_opened_with() {
    let (_directory, journal) = fresh(limits());
    assert_eq!(*journal.limits(), limits());
    let week = Limits {
        jobs_max: 1_000,
        request_bytes_max: 8_589_934_592,
        results_max: 10_000,
        result_age: Duration::from_secs(604_800),
    };
    assert_eq!(Limits::default(), week);
}

#[test]
fn what_is_accepted_and_finished_is_there_after_reopening() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("j");
    let clock = TestClock::at(5_000);
    let requests = [noise(1, 0), noise(2, 1_000_000), vec![b'a'; 3_000_000]];
    {
        let journal = Journal::open_with_clock(&path, limits(), clock.read()).unwrap();
        for (n, request) in requests.iter().enumerate() {
            let accepted = journal.accept(&format!("job-{n}"), &options(10), request);
            assert_eq!(accepted.unwrap(), Accepted::New);
        }
        journal.finish_partition("job-1", 9, b"nine").unwrap();
        journal.finish_partition("job-1", 2, &[]).unwrap();
    }
    let journal = Journal::open_with_clock(&path, limits(), clock.read()).unwrap();
    let pending = journal.pending().unwrap();
    assert!(pending.damaged.is_empty());
    assert_eq!(pending.jobs.len(), 3);
    for (n, (job, request)) in pending.jobs.iter().zip(&requests).enumerate() {
        assert_eq!(job.id, format!("job-{n}"));
        assert_eq!(job.options, options(10));
        assert_eq!(job.accepted_unix_ms, 5_000);
        assert_eq!(job.request_bytes, request.len() as u64);
        assert_eq!(&journal.request(&job.id).unwrap(), request);
    }
    let finished = vec![(2, vec![]), (9, b"nine".to_vec())];
    assert_eq!(pending.jobs[1].finished, finished);
    let usage = journal.usage().unwrap();
    let total: usize = requests.iter().map(Vec::len).sum();
    assert_eq!((usage.jobs, usage.request_bytes), (3, total as u64));
}

#[test]
fn the_same_input_attaches_and_another_is_refused() {
    let (_directory, journal) = fresh(limits());
    assert_eq!(
        journal.accept("a", &options(2), b"in").unwrap(),
        Accepted::New
    );
    let hurried = JobOptions {
        priority: 0,
        deadline_unix_ms: None,
        ..options(2)
    };
    assert_eq!(
        journal.accept("a", &hurried, b"in").unwrap(),
        Accepted::Attached(State::Pending)
    );
    let other_kind = JobOptions {
        kind: b"kinf".to_vec(),
        ..options(2)
    };
    for (options, request) in [
        (options(2), &b"on"[..]),
        (options(3), b"in"),
        (other_kind, b"in"),
    ] {
        let error = journal.accept("a", &options, request).unwrap_err();
        assert!(matches!(&error, JournalError::OtherInput { id } if id == "a"));
        assert!(error.to_string().contains("\"a\""), "{error}");
    }
    for end in [done(b"p"), End::Failed("why".to_owned()), End::Cancelled] {
        journal.forget("a").unwrap();
        journal.accept("a", &options(2), b"in").unwrap();
        journal.end("a", end.clone()).unwrap();
        assert_eq!(
            journal.accept("a", &options(2), b"in").unwrap(),
            Accepted::Attached(State::Ended(end))
        );
        assert!(matches!(
            journal.accept("a", &options(2), b"on"),
            Err(JournalError::OtherInput { .. })
        ));
    }
}

#[test]
fn a_partition_has_one_proof() {
    let (_directory, journal) = fresh(limits());
    journal.accept("a", &options(2), b"in").unwrap();
    journal.finish_partition("a", 1, b"proof").unwrap();
    journal.finish_partition("a", 1, b"proof").unwrap();
    assert!(matches!(
        journal.finish_partition("a", 2, b"proof"),
        Err(JournalError::InvalidInput {
            field: "partition",
            ..
        })
    ));
    assert!(matches!(
        journal.finish_partition("b", 0, b"proof"),
        Err(JournalError::Unknown { .. })
    ));
    assert_eq!(journal.pending().unwrap().jobs[0].finished.len(), 1);
    journal.end("a", End::Cancelled).unwrap();
    assert!(matches!(
        journal.finish_partition("a", 1, b"proof"),
        Err(JournalError::Ended {
            end: "cancelled",
            ..
        })
    ));
}

#[test]
fn a_proof_that_was_found_to_be_wrong_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("j");
    let journal = Journal::open(&path, limits()).unwrap();
    journal.accept("a", &options(3), b"in").unwrap();
    journal.finish_partition("a", 0, b"old").unwrap();
    journal.finish_partition("a", 1, b"kept").unwrap();
    for _ in 0..2 {
        journal.finish_partition("a", 0, b"new").unwrap();
    }
    // One that was never there is a first one.
    journal.finish_partition("a", 2, b"first").unwrap();
    assert!(matches!(
        journal.finish_partition("a", 3, b"new"),
        Err(JournalError::InvalidInput {
            field: "partition",
            ..
        })
    ));
    drop(journal);
    let journal = Journal::open(&path, limits()).unwrap();
    let proofs = [(0, &b"new"[..]), (1, b"kept"), (2, b"first")];
    let proofs = proofs.map(|(partition, proof)| (partition, proof.to_vec()));
    assert_eq!(journal.pending().unwrap().jobs[0].finished, proofs);
    journal.end("a", End::Cancelled).unwrap();
    assert!(matches!(
        journal.finish_partition("a", 0, b"late"),
        Err(JournalError::Ended { .. })
    ));
    assert!(matches!(
        journal.finish_partition("b", 0, b"new"),
        Err(JournalError::Unknown { .. })
    ));
}

#[test]
fn a_job_ends_once() {
    let (_directory, journal) = fresh(limits());
    journal
        .accept("a", &options(2), &noise(1, 1_000_000))
        .unwrap();
    journal.finish_partition("a", 0, b"proof").unwrap();
    journal.end("a", done(b"proof")).unwrap();
    journal.end("a", done(b"proof")).unwrap();
    for other in [done(b"other"), End::Cancelled, End::Failed(String::new())] {
        assert!(matches!(
            journal.end("a", other),
            Err(JournalError::Ended { end: "done", .. })
        ));
    }
    assert_eq!(
        journal.state("a").unwrap(),
        Some(State::Ended(done(b"proof")))
    );
    assert!(journal.pending().unwrap().jobs.is_empty());
    assert!(matches!(
        journal.request("a"),
        Err(JournalError::Ended { .. })
    ));
    let usage = journal.usage().unwrap();
    assert_eq!((usage.jobs, usage.request_bytes, usage.results), (0, 0, 1));
    assert!(matches!(
        journal.end("b", End::Cancelled),
        Err(JournalError::Unknown { .. })
    ));
}

#[test]
fn a_forgotten_job_leaves_nothing() {
    let (_directory, journal) = fresh(limits());
    for ended in [false, true] {
        journal.accept("a", &options(2), b"in").unwrap();
        journal.finish_partition("a", 0, b"proof").unwrap();
        if ended {
            journal.end("a", End::Cancelled).unwrap();
        }
        assert!(journal.forget("a").unwrap());
        assert!(!journal.forget("a").unwrap());
        assert_eq!(journal.state("a").unwrap(), None);
        assert!(journal.pending().unwrap().jobs.is_empty());
        let usage = journal.usage().unwrap();
        assert_eq!((usage.jobs, usage.request_bytes, usage.results), (0, 0, 0));
        // Nor does it come back with the same id.
        assert_eq!(
            journal.accept("a", &options(2), b"on").unwrap(),
            Accepted::New
        );
        assert!(journal.pending().unwrap().jobs[0].finished.is_empty());
        journal.forget("a").unwrap();
    }
}

#[test]
fn a_full_journal_says_what_is_full_and_takes_more_when_a_job_ends() {
    let (_directory, journal) = fresh(Limits {
        jobs_max: 2,
        request_bytes_max: 100,
        ..limits()
    });
    journal.accept("a", &options(1), &[0; 60]).unwrap();
    let error = journal.accept("b", &options(1), &[0; 41]).unwrap_err();
    let full = matches!(
        error,
        JournalError::Full {
            what: "request bytes",
            used: 60,
            more: 41,
            max: 100
        }
    );
    assert!(full, "{error}");
    journal.accept("b", &options(1), &[0; 40]).unwrap();
    let error = journal.accept("c", &options(1), &[]).unwrap_err();
    let full = matches!(
        error,
        JournalError::Full {
            what: "jobs",
            used: 2,
            more: 1,
            max: 2
        }
    );
    assert!(full, "{error}");
    let attached = journal.accept("a", &options(1), &[0; 60]).unwrap();
    assert_eq!(attached, Accepted::Attached(State::Pending));
    journal.end("a", End::Cancelled).unwrap();
    journal.accept("c", &options(1), &[0; 60]).unwrap();
    // A request that can never fit is an error of the input.
    assert!(matches!(
        journal.accept("d", &options(1), &[0; 101]),
        Err(JournalError::InvalidInput {
            field: "request",
            ..
        })
    ));
    for id in ["b", "c"] {
        journal.end(id, End::Cancelled).unwrap();
    }
    journal.accept("d", &options(1), &[0; 100]).unwrap();
}

#[test]
fn without_another_clock_the_systems_is_read() {
    let unix_ms = || SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis();
    let (_directory, journal) = fresh(limits());
    let before = unix_ms();
    journal.accept("a", &options(1), b"in").unwrap();
    let accepted = journal.pending().unwrap().jobs[0].accepted_unix_ms;
    // The clock may be set meanwhile, but not to 1970.
    assert!(before.abs_diff(accepted.into()) < before / 2, "{accepted}");
}

#[test]
fn results_expire_by_age_and_by_number() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("j");
    let clock = TestClock::at(1_000_000);
    let limits = Limits {
        results_max: 3,
        result_age: Duration::from_millis(1_000),
        ..limits()
    };
    let known = |journal: &Journal| -> Vec<String> {
        (0..10)
            .map(|n| n.to_string())
            .filter(|id| journal.state(id).unwrap().is_some())
            .collect()
    };
    let journal = Journal::open_with_clock(&path, limits, clock.read()).unwrap();
    for n in 0..5 {
        journal.accept(&n.to_string(), &options(1), b"in").unwrap();
        journal.end(&n.to_string(), End::Cancelled).unwrap();
        clock.advance(100);
    }
    assert_eq!(known(&journal), ["2", "3", "4"]);
    clock.advance(699);
    assert_eq!(known(&journal), ["2", "3", "4"]);
    clock.advance(1);
    assert_eq!(known(&journal), ["3", "4"]);
    // An expired id is free again, though nothing has been written since.
    let accepted = journal.accept("2", &options(1), b"other input").unwrap();
    assert_eq!(accepted, Accepted::New);
    drop(journal);
    clock.advance(1_000);
    let journal = Journal::open_with_clock(&path, limits, clock.read()).unwrap();
    assert_eq!(known(&journal), ["2"]);
    assert_eq!(journal.usage().unwrap().results, 0);
}

/// As where a machine begins with a wrong clock, which is set right later.
#[test]
fn a_clock_that_is_years_ahead_takes_no_results_with_it() {
    const DAY_MS: u64 = 24 * 3600 * 1000;
    let directory = tempfile::tempdir().unwrap();
    let clock = TestClock::at(20_000 * DAY_MS);
    let limits = Limits {
        result_age: Duration::from_millis(8 * DAY_MS),
        ..limits()
    };
    let path = directory.path().join("j");
    let open = || Journal::open_with_clock(&path, limits, clock.read()).unwrap();
    let end = |journal: &Journal, id| {
        journal.accept(id, &options(1), b"in").unwrap();
        journal.end(id, End::Cancelled).unwrap();
    };
    let known = |journal: &Journal| ["old", "new"].map(|id| journal.state(id).unwrap().is_some());
    let journal = open();
    end(&journal, "old");
    drop(journal);
    clock.advance(10_000 * DAY_MS);
    for _ in 0..3 {
        assert_eq!(known(&open()), [true, false]);
    }
    let journal = open();
    end(&journal, "new");
    clock.set_back(10_000 * DAY_MS);
    assert_eq!(known(&journal), [true, true]);
    // They are as old as they can have become, and no older.
    for days in 2..=9 {
        assert_eq!(known(&journal), [days <= 8, true], "{days}");
        clock.advance(DAY_MS);
    }
    assert_eq!(known(&journal), [false, false]);
}

/// Each end gives way to the next three, however the clock goes, and however
/// long ago its job was accepted.
#[test]
fn the_results_written_last_are_kept_whatever_the_clock_says() {
    let directory = tempfile::tempdir().unwrap();
    let clock = TestClock::at(1_000_000);
    let limits = Limits {
        results_max: 3,
        ..limits()
    };
    let path = directory.path().join("j");
    let mut journal = Journal::open_with_clock(&path, limits, clock.read()).unwrap();
    let ids: Vec<_> = (0..24).map(|n| format!("job-{n}")).collect();
    for id in ids.iter().rev() {
        journal.accept(id, &options(1), b"in").unwrap();
    }
    for (n, id) in ids.iter().enumerate() {
        match n % 4 {
            0 => clock.set_back(2_000),
            1 => clock.advance(1_000),
            _ => {}
        }
        if n % 7 == 6 {
            drop(journal);
            journal = Journal::open_with_clock(&path, limits, clock.read()).unwrap();
        }
        journal.end(id, End::Cancelled).unwrap();
        for (m, id) in ids.iter().enumerate() {
            let expected = if m > n {
                Some(State::Pending)
            } else {
                (m + 3 > n).then_some(State::Ended(End::Cancelled))
            };
            assert_eq!(journal.state(id).unwrap(), expected, "{m} after {n}");
        }
    }
}

#[test]
fn input_out_of_bounds_is_refused_and_at_its_bounds_is_kept() {
    let (_directory, journal) = fresh(limits());
    let field = |result: Result<(), JournalError>| match result {
        Err(JournalError::InvalidInput { field, .. }) => field,
        other => panic!("{other:?}"),
    };
    let accept = |id: &str, options: &JobOptions| journal.accept(id, options, b"").map(|_| ());
    for id in ["", "a\nb", "\u{7f}", "\0", &"x".repeat(ID_BYTES_MAX + 1)] {
        assert_eq!(field(accept(id, &options(1))), "id");
        assert_eq!(field(journal.end(id, End::Cancelled)), "id");
        assert_eq!(field(journal.finish_partition(id, 0, b"")), "id");
        assert_eq!(field(journal.forget(id).map(|_| ())), "id");
        assert_eq!(field(journal.state(id).map(|_| ())), "id");
        assert_eq!(field(journal.request(id).map(|_| ())), "id");
    }
    for partitions in [0, PARTITIONS_MAX + 1, u32::MAX] {
        assert_eq!(
            field(accept("a", &options(partitions))),
            "options.partitions"
        );
    }
    let kind = |len| JobOptions {
        kind: vec![1; len],
        ..options(PARTITIONS_MAX)
    };
    assert_eq!(
        field(accept("a", &kind(KIND_BYTES_MAX + 1))),
        "options.kind"
    );

    let id = "wdpost-1000-0-[1 2 ü]".to_owned() + &"x".repeat(ID_BYTES_MAX - 22);
    assert_eq!(id.len(), ID_BYTES_MAX);
    accept(&id, &kind(KIND_BYTES_MAX)).unwrap();
    let proof = noise(1, PROOF_BYTES_MAX + 1);
    let (bound, long) = (
        &proof[..PARTITION_PROOF_BYTES_MAX],
        &proof[..=PARTITION_PROOF_BYTES_MAX],
    );
    assert_eq!(field(journal.finish_partition(&id, 0, long)), "proof");
    journal
        .finish_partition(&id, PARTITIONS_MAX - 1, bound)
        .unwrap();
    assert_eq!(field(journal.end(&id, done(&proof))), "proof");
    journal.end(&id, done(&proof[1..])).unwrap();
    assert_eq!(
        journal.state(&id).unwrap(),
        Some(State::Ended(done(&proof[1..])))
    );
}

#[test]
fn a_long_failure_is_cut_between_characters() {
    let (_directory, journal) = fresh(limits());
    journal.accept("a", &options(1), b"").unwrap();
    let text = format!("x{}", "ü".repeat(FAILURE_BYTES_MAX));
    journal.end("a", End::Failed(text.clone())).unwrap();
    journal.end("a", End::Failed(text.clone())).unwrap();
    match journal.state("a").unwrap() {
        Some(State::Ended(End::Failed(kept))) => {
            assert_eq!(kept.len(), FAILURE_BYTES_MAX - 1);
            assert!(text.starts_with(&kept));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn threads_share_the_journal_and_one_of_them_wins_an_id() {
    const THREADS: u32 = 8;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("j");
    let journal = Journal::open(&path, limits()).unwrap();
    let won = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (journal, won) = (&journal, &won);
            scope.spawn(move || {
                for job in 0..20 {
                    let shared = format!("shared-{job}");
                    match journal.accept(&shared, &options(THREADS), b"in").unwrap() {
                        Accepted::New => won.fetch_add(1, Ordering::SeqCst),
                        Accepted::Attached(State::Pending) => 0,
                        Accepted::Attached(State::Ended(end)) => panic!("{end:?}"),
                    };
                    let proof = noise(u64::from(thread), 192);
                    journal.finish_partition(&shared, thread, &proof).unwrap();
                    let own = format!("own-{thread}-{job}");
                    journal.accept(&own, &options(1), own.as_bytes()).unwrap();
                    if job % 2 == 0 {
                        journal.end(&own, done(own.as_bytes())).unwrap();
                    }
                }
            });
        }
    });
    assert_eq!(won.into_inner(), 20);
    drop(journal);
    let journal = Journal::open(&path, limits()).unwrap();
    let usage = journal.usage().unwrap();
    assert_eq!((usage.jobs, usage.results), (20 + 80, 80));
    for job in journal.pending().unwrap().jobs {
        if job.id.starts_with("shared") {
            let expected = (0..THREADS).map(|t| (t, noise(u64::from(t), 192)));
            assert_eq!(job.finished, expected.collect::<Vec<_>>());
        } else {
            assert_eq!(journal.request(&job.id).unwrap(), job.id.as_bytes());
        }
    }
}

#[test]
fn the_file_does_not_grow_with_the_number_of_jobs() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("j");
    let limits = Limits {
        results_max: 10,
        ..limits()
    };
    let mut journal = Journal::open(&path, limits).unwrap();
    let mut largest = [0; 2];
    for job in 0..240_u64 {
        let id = format!("job-{job}");
        let request = noise(
            job,
            300_000 + usize::try_from(job * 7_919 % 700_000).unwrap(),
        );
        journal.accept(&id, &options(4), &request).unwrap();
        journal.finish_partition(&id, 3, &noise(job, 192)).unwrap();
        // Three pending at any time.
        if let Some(oldest) = job.checked_sub(3) {
            journal
                .end(&format!("job-{oldest}"), done(&noise(job, 1920)))
                .unwrap();
        }
        if job % 60 == 59 {
            drop(journal);
            journal = Journal::open(&path, limits).unwrap();
        }
        let half = usize::from(job >= 120);
        largest[half] = largest[half].max(journal.usage().unwrap().file_bytes);
    }
    // 4 requests of 300 KB to 1 MB, and the store's own slack.
    let size = 1 << 20..16 << 20;
    assert!(size.contains(&largest[0]), "{largest:?}");
    assert!(largest[1] <= largest[0], "{largest:?}");
}

#[test]
fn a_file_that_was_large_is_small_after_reopening() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("j");
    let journal = Journal::open(&path, limits()).unwrap();
    for job in 0..24 {
        let id = format!("job-{job}");
        journal
            .accept(&id, &options(1), &noise(job, 8 << 20))
            .unwrap();
    }
    // The last stays, at the end of the file.
    for job in 0..23 {
        journal.end(&format!("job-{job}"), End::Cancelled).unwrap();
    }
    drop(journal);
    let journal = Journal::open(&path, limits()).unwrap();
    let file_bytes = std::fs::metadata(&path).unwrap().len();
    assert!(file_bytes < 64 << 20, "{file_bytes}");
    assert_eq!(journal.request("job-23").unwrap(), noise(23, 8 << 20));
}

#[test]
fn a_small_file_is_not_compacted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("j");
    let journal = Journal::open(&path, limits()).unwrap();
    // The last stays, at the end of the file.
    for (id, len) in [("a", 12 << 20), ("b", 1 << 20)] {
        journal.accept(id, &options(1), &noise(1, len)).unwrap();
    }
    journal.end("a", End::Cancelled).unwrap();
    drop(journal);
    let file_bytes = || std::fs::metadata(&path).unwrap().len();
    let before = file_bytes();
    assert!(before > 12 << 20, "{before}");
    let journal = Journal::open(&path, limits()).unwrap();
    assert_eq!(file_bytes(), before);
    assert_eq!(journal.request("b").unwrap(), noise(1, 1 << 20));
}
