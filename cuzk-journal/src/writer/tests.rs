//! The writer on files that fail, are slow, or lose power.

mod cache;
mod full;
mod read;

use std::fs;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use redb::StorageBackend;

use super::*;
use crate::held::HeldFile;
use crate::opening::open_checked;
use crate::tables::find_in;
use crate::{End, JobOptions, Journal, State, request};

/// A file that counts its calls, and can be told to fail.
#[derive(Debug)]
struct Watched {
    file: HeldFile,
    watch: Arc<Watch>,
}

#[derive(Debug)]
struct Watch {
    /// The number of changes until all fail.
    left: AtomicU64,
    /// True if all reads fail.
    unreadable: AtomicBool,
    syncs: AtomicU64,
    sync_time: Duration,
    log: Mutex<Vec<Logged>>,
}

#[derive(Clone, Debug)]
enum Logged {
    Write(u64, Vec<u8>),
    SetLen(u64),
    Sync,
}

impl Watch {
    fn new(left: u64, sync_time: Duration) -> Arc<Self> {
        Arc::new(Self {
            left: AtomicU64::new(left),
            unreadable: AtomicBool::new(false),
            syncs: AtomicU64::new(0),
            sync_time,
            log: Mutex::default(),
        })
    }

    fn change(&self, change: Logged) -> io::Result<()> {
        let left = |left: u64| left.checked_sub(1);
        self.left
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, left)
            .map_err(|_| io::Error::from(io::ErrorKind::StorageFull))?;
        lock(&self.log).push(change);
        Ok(())
    }
}

impl StorageBackend for Watched {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        if self.watch.unreadable.load(Ordering::SeqCst) {
            return Err(io::Error::other("unreadable"));
        }
        self.file.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.watch.change(Logged::SetLen(len))?;
        StorageBackend::set_len(&self.file, len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.watch.change(Logged::Sync)?;
        self.watch.syncs.fetch_add(1, Ordering::SeqCst);
        std::thread::sleep(self.watch.sync_time);
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.watch.change(Logged::Write(offset, data.to_vec()))?;
        self.file.write(offset, data)
    }
}

/// Returns the writer of an empty journal at `path`, watched.
fn writer(path: &Path, watch: &Arc<Watch>) -> Writer {
    drop(Journal::open(path, Limits::default()).unwrap());
    watched(path, watch)
}

/// Returns the writer of the existing journal at `path`, watched.
fn watched(path: &Path, watch: &Arc<Watch>) -> Writer {
    watched_with_cache(path, watch, 32 << 20)
}

/// Returns such a writer. The store keeps so many bytes of the file in memory.
fn watched_with_cache(path: &Path, watch: &Arc<Watch>, cache_bytes: usize) -> Writer {
    let Opened { totals, usage, .. } = opened_at(path).unwrap();
    let file = OpenOptions::new().read(true).write(true).open(path);
    let backend = Watched {
        file: HeldFile::open(file.unwrap()),
        watch: Arc::clone(watch),
    };
    let mut builder = Database::builder();
    let database = builder
        .set_cache_size(cache_bytes)
        .create_with_backend(backend)
        .unwrap();
    let opened = Opened {
        database,
        totals,
        usage,
    };
    let path = path.to_owned();
    let reopen = move || opened_at(&path);
    Writer::new(opened, Limits::default(), Box::new(reopen))
}

/// Returns the store at `path`, checked and not watched.
fn opened_at(path: &Path) -> Result<Opened, JournalError> {
    // The claim belongs to the journal, if there is one.
    let file = File::options().read(true).write(true).open(path);
    let file = file.map_err(|error| JournalError::io(path, "open", error))?;
    Ok(open_checked(path, file)?.1.into())
}

const NOW: Now = Now {
    unix_ms: 0,
    aging_ms: 0,
};

fn accept(id: &str, request: &[u8]) -> Change {
    let options = JobOptions {
        partitions: 1,
        ..JobOptions::default()
    };
    Change::Accept {
        id: id.to_owned(),
        digest: request::digest(&options, request),
        options,
        request_bytes: request.len() as u64,
        compressed: request::compress(request).unwrap(),
    }
}

/// Returns the changes of jobs, two for each job, in order.
fn change(step: usize) -> Change {
    let id = format!("job-{}", step / 2);
    if step.is_multiple_of(2) {
        accept(&id, id.repeat(step * 100).as_bytes())
    } else {
        let end = End::Done(id.clone().into_bytes());
        Change::End { id, end }
    }
}

/// Returns the number of steps in the journal at `path`. Asserts that each step is
/// whole.
fn steps_seen(path: &Path, most: usize) -> usize {
    let journal = Journal::open_with_clock(path, Limits::default(), || 0).unwrap();
    let mut seen = 0;
    let mut over = false;
    for job in 0..=most / 2 {
        let id = format!("job-{job}");
        let steps = match journal.state(&id).unwrap() {
            None => 0,
            Some(State::Pending) => {
                let request = journal.request(&id).unwrap();
                assert!(request == id.repeat(job * 200).as_bytes());
                1
            }
            Some(State::Ended(end)) => {
                assert_eq!(end, End::Done(id.into_bytes()));
                2
            }
        };
        assert!(
            steps == 0 || !over,
            "job {job} is there, and one before is not"
        );
        over |= steps < 2;
        seen += steps;
    }
    seen
}

#[test]
fn after_a_write_that_failed_nothing_more_is_accepted_and_nothing_is_lost() {
    const STEPS: usize = 30;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("j");
    let mut failures = 0;
    for left in (5..200).step_by(7) {
        let _ = fs::remove_file(&path);
        let watch = Watch::new(left, Duration::ZERO);
        let mut writer = writer(&path, &watch);
        writer.reopen_after = Duration::MAX;
        let answers: Vec<_> = (0..STEPS)
            .map(|step| writer.change(change(step), NOW))
            .collect();
        let acknowledged = answers.iter().take_while(|answer| answer.is_ok()).count();
        for answer in answers.iter().skip(acknowledged) {
            assert!(
                matches!(answer, Err(JournalError::Store { .. })),
                "{answer:?}"
            );
        }
        failures += u32::from(acknowledged < STEPS);
        drop(writer);
        let seen = steps_seen(&path, STEPS);
        // An end that was refused may be there. A job that was refused is not.
        let may_be_there = acknowledged < STEPS && !acknowledged.is_multiple_of(2);
        let allowed = acknowledged..=acknowledged + usize::from(may_be_there);
        assert!(allowed.contains(&seen), "{left}: {seen} of {acknowledged}");
    }
    assert!(failures > 10, "{failures}");
}

/// Its last sync may have failed after all bytes were written.
#[test]
fn a_job_that_was_refused_is_taken_out_when_the_store_is_opened_again() {
    let directory = tempfile::tempdir().unwrap();
    let [path, copy] = ["j", "copy"].map(|name| directory.path().join(name));
    let mut was_there = 0;
    for left in 0..40 {
        let _ = fs::remove_file(&path);
        let watch = Watch::new(u64::MAX, Duration::ZERO);
        let mut writer = writer(&path, &watch);
        writer.reopen_after = Duration::ZERO;
        writer.change(accept("accepted", b"in"), NOW).unwrap();
        watch.left.store(left, Ordering::SeqCst);
        if writer.change(accept("refused", b"in"), NOW).is_ok() {
            break;
        }
        fs::copy(&path, &copy).unwrap();
        was_there += u64::from(opened_at(&copy).is_ok_and(|opened| opened.usage.jobs == 2));
        // The first call opens the store again.
        let is_there = |id| writer.read(|transaction| Ok(find_in(transaction, id)?.is_some()));
        if left.is_multiple_of(2) {
            assert!(is_there("accepted").unwrap());
        } else {
            writer.change(change(0), NOW).unwrap();
        }
        assert!(!is_there("refused").unwrap());
        assert!(is_there("accepted").unwrap());
        let jobs = 1 + left % 2;
        assert_eq!(writer.usage().jobs, jobs);
        writer.change(accept("refused", b"other"), NOW).unwrap();
        assert_eq!(writer.usage().jobs, jobs + 1);
    }
    assert!(was_there > 0);
}

/// A refused end may be on disk as well, and does no harm there.
#[test]
fn only_a_job_that_was_refused_has_the_store_opened_again_at_the_end() {
    let end = Change::End {
        id: "accepted".to_owned(),
        end: End::Cancelled,
    };
    for (refused, expected) in [(accept("refused", b"in"), 1), (end, 0)] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("j");
        let watch = Watch::new(u64::MAX, Duration::ZERO);
        let mut writer = writer(&path, &watch);
        writer.reopen_after = Duration::MAX;
        let opened = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&opened);
        writer.reopen = Box::new(move || {
            count.fetch_add(1, Ordering::SeqCst);
            opened_at(&path)
        });
        writer.change(accept("accepted", b"in"), NOW).unwrap();
        watch.left.store(0, Ordering::SeqCst);
        writer.change(refused, NOW).unwrap_err();
        watch.left.store(u64::MAX, Ordering::SeqCst);
        drop(writer);
        assert_eq!(opened.load(Ordering::SeqCst), expected);
    }
}

/// The disk is full for a moment, and has room when the journal tries again.
#[test]
fn a_store_that_failed_is_opened_again_and_goes_on() {
    const STEPS: usize = 30;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("j");
    let mut failures = 0;
    for left in (5..200).step_by(7) {
        let _ = fs::remove_file(&path);
        let watch = Watch::new(left, Duration::ZERO);
        let mut writer = writer(&path, &watch);
        writer.reopen_after = Duration::ZERO;
        for step in 0..STEPS {
            if let Err(error) = writer.change(change(step), NOW) {
                assert!(matches!(error, JournalError::Store { .. }), "{error}");
                failures += 1;
                writer.change(change(step), NOW).unwrap();
            }
        }
        drop(writer);
        assert_eq!(steps_seen(&path, STEPS), STEPS, "{left}");
    }
    assert!(failures > 10, "{failures}");
}

/// The file is opened again and again, as long as that fails.
#[test]
fn a_store_that_cannot_be_opened_again_says_so_until_it_can() {
    let directory = tempfile::tempdir().unwrap();
    let (path, away) = (directory.path().join("j"), directory.path().join("away"));
    let watch = Watch::new(u64::MAX, Duration::ZERO);
    let mut writer = writer(&path, &watch);
    writer.reopen_after = Duration::ZERO;
    writer.change(change(0), NOW).unwrap();
    watch.left.store(0, Ordering::SeqCst);
    assert!(writer.change(change(1), NOW).is_err());
    fs::rename(&path, &away).unwrap();
    for _ in 0..3 {
        let error = writer.change(change(1), NOW).unwrap_err();
        assert!(error.to_string().contains("opened again"), "{error}");
        assert!(writer.read(|_| Ok(())).is_err());
    }
    fs::rename(&away, &path).unwrap();
    writer.change(change(1), NOW).unwrap();
    writer.read(|_| Ok(())).unwrap();
    drop(writer);
    assert_eq!(steps_seen(&path, 2), 2);
}

/// A call that accepts a job first reads whether the job is there.
#[test]
fn what_is_accepted_mends_a_store_that_could_not_be_opened() {
    let directory = tempfile::tempdir().unwrap();
    let (path, away) = (directory.path().join("j"), directory.path().join("away"));
    let watch = Watch::new(u64::MAX, Duration::ZERO);
    let journal = Journal::open(&path, Limits::default()).unwrap();
    let journal = journal.with_writer(|path| {
        let mut writer = watched(path, &watch);
        writer.reopen_after = Duration::ZERO;
        writer
    });
    let options = JobOptions {
        partitions: 1,
        ..JobOptions::default()
    };
    let accept = |id| journal.accept(id, &options, b"request");
    accept("first").unwrap();
    watch.left.store(0, Ordering::SeqCst);
    // An error of the journal names the file.
    let named = format!("journal {}: ", path.display());
    let error = accept("second").unwrap_err().to_string();
    assert!(error.starts_with(&named), "{error}");
    fs::rename(&path, &away).unwrap();
    let error = accept("second").unwrap_err().to_string();
    let is_named = error.starts_with(&named);
    assert!(is_named && error.contains("opened again"), "{error}");
    assert!(journal.state("first").is_err());
    fs::rename(&away, &path).unwrap();
    accept("second").unwrap();
    assert_eq!(journal.state("first").unwrap(), Some(State::Pending));
}

#[test]
fn without_power_nothing_acknowledged_is_lost() {
    const STEPS: usize = 24;
    const CUTS: usize = 80;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("j");
    let watch = Watch::new(u64::MAX, Duration::ZERO);
    let writer = writer(&path, &watch);
    let empty = fs::read(&path).unwrap();
    lock(&watch.log).clear();
    let mut acknowledged_at = Vec::new();
    for step in 0..STEPS {
        writer.change(change(step), NOW).unwrap();
        acknowledged_at.push(lock(&watch.log).len());
    }
    let log = lock(&watch.log).clone();
    drop(writer);
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    for _ in 0..CUTS {
        let cut = rng.gen_range(0..=log.len());
        fs::write(&path, &empty).unwrap();
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        lose_power(&file, &log[..cut], &mut rng);
        let acknowledged = acknowledged_at.iter().filter(|at| **at <= cut).count();
        let seen = steps_seen(&path, STEPS);
        let allowed = acknowledged..=acknowledged + 1;
        assert!(
            allowed.contains(&seen),
            "cut {cut}: {seen} of {acknowledged}"
        );
    }
}

/// Cuts the power. Synced bytes stay. Of the later ones any part stays, in whole
/// sectors.
fn lose_power(file: &File, log: &[Logged], rng: &mut ChaCha8Rng) {
    use std::os::unix::fs::FileExt as _;
    let synced = log
        .iter()
        .rposition(|change| matches!(change, Logged::Sync));
    for (number, change) in log.iter().enumerate() {
        let certain = synced.is_some_and(|synced| number < synced);
        match change {
            Logged::Write(offset, bytes) => {
                for (sector, bytes) in bytes.chunks(512).enumerate() {
                    if certain || rng.gen_ratio(1, 2) {
                        let at = offset + 512 * sector as u64;
                        file.write_all_at(bytes, at).unwrap();
                    }
                }
            }
            Logged::SetLen(len) => {
                if certain || rng.gen_ratio(1, 2) {
                    file.set_len(*len).unwrap();
                }
            }
            Logged::Sync => {}
        }
    }
}

#[test]
fn threads_share_commits_and_one_alone_is_not_held_up() {
    const THREADS: u64 = 8;
    const EACH: u64 = 10;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("j");
    let sync_time = Duration::from_millis(8);
    let watch = Watch::new(u64::MAX, sync_time);
    let writer = writer(&path, &watch);
    let syncs = |run: &dyn Fn()| {
        let before = watch.syncs.load(Ordering::SeqCst);
        run();
        watch.syncs.load(Ordering::SeqCst) - before
    };
    let alone = syncs(&|| {
        for job in 0..EACH {
            writer
                .change(accept(&format!("alone-{job}"), b"in"), NOW)
                .unwrap();
        }
    });
    assert_eq!(alone, EACH);
    let together = syncs(&|| {
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let writer = &writer;
                scope.spawn(move || {
                    for job in 0..EACH {
                        let id = format!("{thread}-{job}");
                        writer.change(accept(&id, b"in"), NOW).unwrap();
                    }
                });
            }
        });
    });
    assert!(together <= THREADS * EACH / 2, "{together}");
    assert_eq!(writer.usage().jobs, EACH + THREADS * EACH);
}

#[test]
fn what_changes_nothing_is_not_committed() {
    let directory = tempfile::tempdir().unwrap();
    let watch = Watch::new(u64::MAX, Duration::ZERO);
    let writer = writer(&directory.path().join("j"), &watch);
    writer.change(change(0), NOW).unwrap();
    let before = watch.syncs.load(Ordering::SeqCst);
    let id = "another".to_owned();
    for change in [change(0), Change::Forget { id }, Change::Expire] {
        writer.change(change, NOW).unwrap();
    }
    assert_eq!(watch.syncs.load(Ordering::SeqCst), before);
}
