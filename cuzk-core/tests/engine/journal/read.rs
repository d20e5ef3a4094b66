//! Requests that are read again at the start: one that cannot be read for now, and one
//! that is not what was written.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cuzk_bounded::BoundedJoin;
use cuzk_core::{Config, Engine, Error};
use cuzk_filecoin::ProofKind;
use cuzk_journal::JournalError;
use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::config;
use crate::common::device::{Deed, Doorway, Opened, Scripted, pool};
use crate::common::{MOMENTS, named, tiny};

const JOBS: [&str; 2] = ["first", "second"];

/// Bytes that are in the file as they are here, since nothing makes them shorter; and more
/// than are read at once.
fn request(job: usize) -> Vec<u8> {
    let mut noise = vec![0; 1 << 20];
    ChaCha8Rng::seed_from_u64(job as u64).fill_bytes(&mut noise);
    noise
}

/// Starts an engine that calls `reading` before it reads a request.
fn start(
    config: &Config,
    device: &Arc<Scripted>,
    reading: impl Fn() + Send + Sync + 'static,
) -> Engine {
    let decoder = move |_: &[u8]| -> Result<_, Error> {
        reading();
        Ok(tiny::job(ProofKind::Porep, 1))
    };
    let devices = vec![device.device()];
    Engine::start_with(config.clone(), pool(config), devices, Arc::new(decoder)).unwrap()
}

/// Has an engine accept both jobs and prove none.
fn leave(config: &Config) {
    let device = Opened(Scripted::new(config, |_| Deed::Stall));
    let engine = start(config, &device, || {});
    for (job, id) in JOBS.iter().enumerate() {
        engine.submit_bytes(&request(job), named(id)).unwrap();
    }
    let gate = Arc::clone(&device);
    let opener = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        gate.gate.open();
    });
    assert_eq!(engine.shutdown_within(Duration::ZERO).len(), JOBS.len());
    opener.join_bounded().unwrap();
}

/// Where in the file the middle of a job's request is.
fn place_of(job: usize, path: &Path) -> usize {
    let file = fs::read(path).unwrap();
    let request = request(job);
    let middle = &request[request.len() / 2..][..32];
    let mut windows = file.windows(middle.len());
    windows.position(|window| window == middle).unwrap()
}

/// redb with debug assertions looks at every page when it opens a file, and keeps the pages in its
/// cache. So it reads the request that is not in the file any more.
#[test]
#[cfg_attr(debug_assertions, ignore = "redb has the whole file in its cache")]
fn a_request_that_cannot_be_read_for_now_is_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let config = config(directory.path());
    let path = config.jobs.journal.clone().unwrap();
    leave(&config);
    let device = Opened(Scripted::new(&config, |_| Deed::Stall));
    let (reading, read) = (Arc::new(Doorway::default()), Arc::new(AtomicUsize::new(0)));
    let engine = start(&config, &device, {
        let (reading, read) = (Arc::clone(&reading), Arc::clone(&read));
        move || {
            read.fetch_add(1, Ordering::SeqCst);
            reading.pass();
        }
    });
    reading.wait_bounded();
    // The file ends in the middle of the second's, until it is mended. Nothing is written
    // to it meanwhile, since nothing is proved.
    let whole = fs::read(&path).unwrap();
    let cut = place_of(1, &path);
    let file = File::options().write(true).open(&path).unwrap();
    file.set_len(cut as u64).unwrap();
    reading.open();
    let [first, second] = JOBS.map(|id| engine.job(id).unwrap());
    let waits = second.wait_for(Duration::from_millis(2500));
    assert!(waits.is_none(), "{waits:?}");
    assert_eq!(read.load(Ordering::SeqCst), 1, "the second was not read");
    file.write_all_at(&whole[cut..], cut as u64).unwrap();
    device.gate.open();
    for job in [first, second] {
        job.wait_for(MOMENTS).unwrap().unwrap();
    }
    assert_eq!(read.load(Ordering::SeqCst), 2);
    engine.shutdown();
}

#[test]
fn a_request_that_is_damaged_fails_its_job_and_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let config = config(directory.path());
    let path = config.jobs.journal.clone().unwrap();
    leave(&config);
    let place = place_of(0, &path);
    let file = File::options().write(true).open(&path).unwrap();
    file.write_all_at(b"something else", place as u64).unwrap();
    let engine = start(&config, &Scripted::good(&config), || {});
    let [first, second] = JOBS.map(|id| engine.job(id).unwrap());
    let error = first.wait_for(MOMENTS).unwrap().unwrap_err();
    let is_damaged = matches!(&*error, Error::Journal(JournalError::DamagedJob { .. }));
    assert!(is_damaged, "{error}");
    second.wait_for(MOMENTS).unwrap().unwrap();
    engine.shutdown();
}
