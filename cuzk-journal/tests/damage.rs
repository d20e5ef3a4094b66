//! Damaged files: each is refused and left as it is, or its undamaged jobs are read.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failure in a test fails the test"
)]

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{limits, noise, options};
use cuzk_fuzz::Corpus;
use cuzk_journal::{Accepted, End, Journal, JournalError, State};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use redb::TableDefinition;

const JOBS: u64 = 12;
const ENDED: u64 = 3;

fn request(job: u64) -> Vec<u8> {
    noise(job, usize::try_from(job * 40_000).unwrap())
}

fn id(job: u64) -> String {
    format!("job-{job}")
}

fn end() -> End {
    End::Done(noise(99, 1920))
}

fn proof(job: u64, partition: u32) -> Vec<u8> {
    noise(job * 100 + u64::from(partition), 192)
}

/// Writes a journal with ended and pending jobs. Returns its bytes while it is open, as
/// a crash would leave them, and after it was closed.
fn images() -> [Vec<u8>; 2] {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("j");
    let journal = Journal::open(&path, limits()).unwrap();
    for job in 0..JOBS {
        journal
            .accept(&id(job), &options(4), &request(job))
            .unwrap();
        for partition in 0..3 {
            journal
                .finish_partition(&id(job), partition, &proof(job, partition))
                .unwrap();
        }
        if job < ENDED {
            journal.end(&id(job), end()).unwrap();
        }
    }
    let crashed = fs::read(&path).unwrap();
    drop(journal);
    [crashed, fs::read(&path).unwrap()]
}

/// The jobs that an opened journal still knew.
#[derive(Debug, Default, PartialEq, Eq)]
struct Known {
    whole: u64,
    damaged: u64,
}

/// Opens the bytes as a journal. Returns `None` if the file was refused and left as it
/// was. Each answer must be the written value, or an error of that job.
fn open(path: &Path, bytes: &[u8]) -> Option<Known> {
    fs::write(path, bytes).unwrap();
    let journal = match Journal::open(path, limits()) {
        Ok(journal) => journal,
        Err(JournalError::Damaged { .. } | JournalError::Foreign { .. }) => {
            assert!(
                fs::read(path).unwrap() == bytes,
                "a refused file was changed"
            );
            return None;
        }
        Err(other) => panic!("{other}"),
    };
    let mut known = Known::default();
    let Ok(pending) = journal.pending() else {
        known.damaged = JOBS;
        return Some(known);
    };
    known.damaged += pending.damaged.len() as u64;
    for job in pending.jobs {
        let number: u64 = job.id.strip_prefix("job-").unwrap().parse().unwrap();
        assert_eq!(job.options, options(4));
        for (partition, kept) in job.finished {
            assert_eq!(kept, proof(number, partition));
        }
        match journal.request(&job.id) {
            Ok(read) => {
                assert!(read == request(number));
                known.whole += 1;
            }
            Err(JournalError::DamagedJob { .. } | JournalError::Store { .. }) => known.damaged += 1,
            Err(other) => panic!("{other}"),
        }
    }
    for job in 0..ENDED {
        match journal.state(&id(job)) {
            Ok(Some(State::Ended(kept))) => {
                assert_eq!(kept, end());
                known.whole += 1;
            }
            Ok(Some(State::Pending) | None) => {}
            Err(JournalError::DamagedJob { .. } | JournalError::Store { .. }) => known.damaged += 1,
            Err(other) => panic!("{other}"),
        }
    }
    // It can be written to, or it reports that it cannot.
    match journal.accept("another", &options(1), b"request") {
        Ok(accepted) => assert_eq!(accepted, Accepted::New),
        Err(JournalError::Store { .. }) => {}
        Err(other) => panic!("{other}"),
    }
    Some(known)
}

fn scratch() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("j");
    (directory, path)
}

const WHOLE: Known = Known {
    whole: JOBS,
    damaged: 0,
};

#[test]
fn a_truncated_file_is_refused_or_whole() {
    let (_directory, path) = scratch();
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for image in images() {
        assert_eq!(open(&path, &image), Some(WHOLE));
        let mut lengths = vec![
            0,
            1,
            8,
            9,
            10,
            63,
            64,
            320,
            511,
            512,
            4095,
            4096,
            image.len() - 1,
        ];
        lengths.extend((0..50).map(|_| rng.gen_range(0..image.len())));
        for length in lengths {
            let opened = open(&path, &image[..length]);
            assert!(opened.is_none_or(|known| known == WHOLE), "{length} bytes");
        }
    }
}

#[test]
fn flipped_bits_are_refused_or_one_jobs_matter() {
    let (_directory, path) = scratch();
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let [crashed, closed] = images();
    let mut refused = 0;
    let mut found = 0;
    for round in 0..200 {
        let crash = round % 2 == 0;
        let mut image = if crash {
            crashed.clone()
        } else {
            closed.clone()
        };
        // The store's own fields are at the start, where damage has the most effect.
        let at = match round % 4 {
            0 | 1 => rng.gen_range(0..512),
            _ => rng.gen_range(0..image.len()),
        };
        image[at] ^= 1 << rng.gen_range(0..8);
        match open(&path, &image) {
            None => refused += 1,
            Some(Known { whole, damaged }) => {
                // A header that was not marked as closed goes back by a commit.
                assert!(
                    whole + damaged >= JOBS || at < 512,
                    "byte {at}: {whole}, {damaged}"
                );
                found += damaged;
            }
        }
    }
    assert!(refused > 10, "{refused}");
    assert!(found > 0);
}

#[test]
fn overwritten_pages_never_panic() {
    let (_directory, path) = scratch();
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    for image in images() {
        for _ in 0..60 {
            let mut image = image.clone();
            for _ in 0..rng.gen_range(1..20) {
                let pages = image.len() / 4096;
                let [from, to] =
                    [rng.gen_range(1..pages), rng.gen_range(1..pages)].map(|p| p * 4096);
                let page = match rng.gen_range(0..3) {
                    0 => vec![0; 4096],
                    1 => noise(rng.gen_range(0..1000), 4096),
                    _ => image[from..from + 4096].to_vec(),
                };
                image[to..to + 4096].copy_from_slice(&page);
            }
            open(&path, &image);
        }
    }
}

/// As above, with bits, pieces and lengths that change at once.
#[test]
fn mutated_files_are_refused_or_their_jobs_read() {
    let (_directory, path) = scratch();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/files");
    let [crashed, closed] = images();
    let corpus = Corpus::read(folder).with(crashed).with(closed);
    let decode = |image: &[u8]| open(&path, image).map(drop).ok_or("refused");
    corpus.fuzz_decoder("files", 60, decode, |_| true);
}

#[test]
fn other_files_are_refused() {
    let (_directory, path) = scratch();
    for bytes in [
        &b"{\"not\": \"a journal\"}"[..],
        &noise(1, 100_000),
        b"redx",
    ] {
        assert_eq!(open(&path, bytes), None);
        let error = Journal::open(&path, limits()).unwrap_err();
        assert!(matches!(error, JournalError::Foreign { .. }), "{error}");
    }
    fs::remove_file(&path).unwrap();
    let database = redb::Database::create(&path).unwrap();
    let transaction = database.begin_write().unwrap();
    let table = TableDefinition::<&str, u64>::new("somebody's");
    transaction
        .open_table(table)
        .unwrap()
        .insert("x", 1)
        .unwrap();
    transaction.commit().unwrap();
    drop(database);
    assert_eq!(open(&path, &fs::read(&path).unwrap()), None);
    let error = Journal::open(&path, limits()).unwrap_err();
    assert!(matches!(error, JournalError::Foreign { .. }), "{error}");
}

#[test]
fn a_path_that_cannot_be_opened_is_an_error_of_the_system() {
    let directory = tempfile::tempdir().unwrap();
    let error = Journal::open(directory.path().join("none/j"), limits()).unwrap_err();
    assert!(matches!(error, JournalError::Io { .. }), "{error}");
}

#[test]
fn a_folder_is_no_journal() {
    let directory = tempfile::tempdir().unwrap();
    let error = Journal::open(directory.path(), limits()).unwrap_err();
    assert!(matches!(error, JournalError::Foreign { .. }), "{error}");
    assert!(error.to_string().contains("it is a folder"), "{error}");
}

#[test]
fn a_journal_has_one_owner_who_is_named() {
    let (_directory, path) = scratch();
    let journal = Journal::open(&path, limits()).unwrap();
    let error = Journal::open(&path, limits()).unwrap_err();
    let us = std::process::id();
    assert!(matches!(error, JournalError::InUse { holder_pid: Some(pid), .. } if pid == us));
    assert!(error.to_string().contains(&us.to_string()), "{error}");
    drop(journal);
    Journal::open(&path, limits()).unwrap();
}

/// Changes a byte within each copy of `known` in the file.
fn spoil(path: &Path, known: &[u8]) {
    let mut bytes = fs::read(path).unwrap();
    let at: Vec<_> = (0..bytes.len())
        .filter(|at| bytes[*at..].starts_with(known))
        .collect();
    assert!(!at.is_empty(), "nothing to spoil");
    for at in at {
        bytes[at + known.len() / 2] ^= 16;
    }
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_damaged_request_is_its_jobs_matter() {
    let (_directory, path) = scratch();
    let [_, closed] = images();
    fs::write(&path, closed).unwrap();
    spoil(&path, &request(7)[250_000..250_032]);
    let journal = Journal::open(&path, limits()).unwrap();
    let pending = journal.pending().unwrap();
    assert_eq!(pending.jobs.len() as u64, JOBS - ENDED);
    for job in ENDED..JOBS {
        let read = journal.request(&id(job));
        if job == 7 {
            let error = read.unwrap_err();
            let named =
                matches!(&error, JournalError::DamagedJob { id, what: "request" } if id == "job-7");
            assert!(named, "{error}");
        } else {
            assert!(read.unwrap() == request(job));
        }
    }
    // Its caller gets the end, as for any other job.
    journal
        .end("job-7", End::Failed("its request is damaged".to_owned()))
        .unwrap();
    assert_eq!(
        journal.pending().unwrap().jobs.len() as u64,
        JOBS - ENDED - 1
    );
}

#[test]
fn a_damaged_proof_of_a_partition_is_made_again() {
    let (_directory, path) = scratch();
    let [_, closed] = images();
    fs::write(&path, closed).unwrap();
    spoil(&path, &proof(7, 1)[..32]);
    let journal = Journal::open(&path, limits()).unwrap();
    let finished = |journal: &Journal| {
        let jobs = journal.pending().unwrap().jobs;
        let job = jobs.into_iter().find(|job| job.id == "job-7").unwrap();
        job.finished
            .into_iter()
            .map(|(partition, _)| partition)
            .collect::<Vec<_>>()
    };
    let damaged = |journal: &Journal| {
        let jobs = journal.pending().unwrap().jobs.into_iter();
        let damaged = jobs.map(|job| (job.id, job.damaged));
        damaged.filter(|(_, damaged)| !damaged.is_empty()).collect()
    };
    assert_eq!(finished(&journal), [0, 2]);
    let told: Vec<_> = damaged(&journal);
    assert_eq!(told, [("job-7".to_owned(), vec![1])]);
    journal.finish_partition("job-7", 1, b"another").unwrap();
    assert_eq!(finished(&journal), [0, 1, 2]);
    assert!(damaged(&journal).is_empty());
}

#[test]
fn a_damaged_job_can_be_forgotten_and_submitted_again() {
    let (_directory, path) = scratch();
    let kind = |job: u64| cuzk_journal::JobOptions {
        kind: noise(1_000 + job, 32),
        ..options(2)
    };
    {
        let journal = Journal::open(&path, limits()).unwrap();
        for job in 0..4 {
            journal.accept(&id(job), &kind(job), &request(job)).unwrap();
            journal
                .finish_partition(&id(job), 1, &proof(job, 1))
                .unwrap();
        }
        journal.end(&id(3), End::Cancelled).unwrap();
    }
    for (job, pending) in [(1, true), (3, false)] {
        spoil(&path, &kind(job).kind);
        let journal = Journal::open(&path, limits()).unwrap();
        let name = id(job);
        let damaged: Vec<_> = journal
            .pending()
            .unwrap()
            .damaged
            .into_iter()
            .map(|job| job.id)
            .collect();
        assert_eq!(damaged, if pending { vec![name.clone()] } else { vec![] });
        let is_damaged =
            |error: &JournalError| matches!(error, JournalError::DamagedJob { what: "state", .. });
        assert!(is_damaged(&journal.state(&name).unwrap_err()));
        assert!(is_damaged(&journal.request(&name).unwrap_err()));
        assert!(is_damaged(
            &journal
                .accept(&name, &kind(job), &request(job))
                .unwrap_err()
        ));
        assert!(is_damaged(&journal.end(&name, End::Cancelled).unwrap_err()));
        assert!(is_damaged(
            &journal.finish_partition(&name, 0, b"").unwrap_err()
        ));
        assert!(journal.forget(&name).unwrap());
        assert_eq!(
            journal.accept(&name, &kind(job), &request(job)).unwrap(),
            Accepted::New
        );
        assert!(journal.request(&name).unwrap() == request(job));
        assert_eq!(journal.request(&id(2)).unwrap(), request(2));
        let pending = journal.pending().unwrap().jobs;
        assert!(
            pending
                .iter()
                .all(|job| job.finished.is_empty() == (job.id == name))
        );
        let bytes: u64 = pending.iter().map(|job| job.request_bytes).sum();
        assert_eq!(journal.usage().unwrap().request_bytes, bytes);
        journal.end(&name, End::Cancelled).unwrap();
    }
    // Nothing of a forgotten job is left that contradicts another table.
    Journal::open(&path, limits()).unwrap();
}
