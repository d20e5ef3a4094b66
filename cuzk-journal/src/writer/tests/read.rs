//! Reads of a store that has failed.

use super::*;

const JOBS: usize = 3;

/// Returns a request of more bytes than the store reads at once.
fn request(job: usize) -> Vec<u8> {
    let mut bytes = vec![0; 3_000_000];
    ChaCha8Rng::seed_from_u64(job as u64).fill(&mut bytes[..]);
    bytes
}

fn id(job: usize) -> String {
    format!("job-{job}")
}

/// Returns a journal with jobs that the store has to read from the disk. A store with debug
/// assertions reads the whole file on opening, so nothing of it is kept in memory.
fn unread(path: &Path, watch: &Arc<Watch>, reopen_after: Duration) -> Journal {
    let options = JobOptions {
        partitions: 1,
        ..JobOptions::default()
    };
    let journal = Journal::open(path, Limits::default()).unwrap();
    for job in 0..JOBS {
        journal.accept(&id(job), &options, &request(job)).unwrap();
    }
    drop(journal);
    let journal = Journal::open(path, Limits::default()).unwrap();
    journal.with_writer(|path| {
        let mut writer = watched_with_cache(path, watch, 0);
        writer.reopen_after = reopen_after;
        writer
    })
}

/// Returns true for an error of the store, which names the file.
fn is_stores(answer: &Result<Vec<u8>, JournalError>, file: &Path) -> bool {
    matches!(answer, Err(JournalError::Store { path, .. }) if path == file)
}

#[test]
fn a_request_that_cannot_be_read_for_now_is_not_said_to_be_damaged() {
    let directory = tempfile::tempdir().unwrap();
    let watch = Watch::new(u64::MAX, Duration::ZERO);
    let path = directory.path().join("j");
    let journal = unread(&path, &watch, Duration::MAX);
    assert!(journal.request(&id(0)).unwrap() == request(0));
    watch.left.store(0, Ordering::SeqCst);
    assert!(journal.finish_partition(&id(0), 0, b"proof").is_err());
    for job in 1..JOBS {
        let answer = journal.request(&id(job));
        let is_stores = is_stores(&answer, &path);
        assert!(is_stores, "{:?}", answer.map(|read| read.len()));
    }
}

#[test]
fn a_read_mends_a_store_whose_write_failed() {
    let directory = tempfile::tempdir().unwrap();
    let watch = Watch::new(u64::MAX, Duration::ZERO);
    let journal = unread(&directory.path().join("j"), &watch, Duration::ZERO);
    watch.left.store(0, Ordering::SeqCst);
    assert!(journal.finish_partition(&id(0), 0, b"proof").is_err());
    for job in 0..JOBS {
        assert!(journal.request(&id(job)).unwrap() == request(job));
    }
}

/// Nobody has written, so only the reader knows that the store has failed.
#[test]
fn a_read_mends_a_store_whose_read_failed() {
    let directory = tempfile::tempdir().unwrap();
    for (name, reopen_after) in [("j", Duration::ZERO), ("k", Duration::MAX)] {
        let watch = Watch::new(u64::MAX, Duration::ZERO);
        let path = directory.path().join(name);
        let journal = unread(&path, &watch, reopen_after);
        watch.unreadable.store(true, Ordering::SeqCst);
        let answers = [0, 1].map(|job| journal.request(&id(job)));
        if reopen_after == Duration::ZERO {
            // The store was opened again, and can be read.
            let [first, second] = answers.map(Result::unwrap);
            assert!(first == request(0) && second == request(1));
        } else {
            let mut answers = answers.iter();
            assert!(
                answers.all(|answer| is_stores(answer, &path)),
                "before it is due"
            );
        }
    }
}
