//! The engine with a journal: killed, on a full disk, shut down, and asked for by two.

mod disk;
mod kill;
mod read;
mod tampered;

use std::path::Path;
use std::process::Command;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use cuzk_bounded::BoundedJoin;

use crate::common::BoundedJob as _;
use crate::common::device::{Deed, Doorway, Opened, Scripted, pool};
use crate::common::{MOMENTS, named, tiny};
use cuzk_core::{Config, Engine, Error};
use cuzk_filecoin::ProofKind;
use cuzk_journal::{JobOptions, Journal, Limits};

/// Tells a child where the files are.
const FOLDER: &str = "CUZK_TEST_JOURNAL_FOLDER";

/// Has `command` run another test of this program as a child, on these files.
fn run_child<'a>(command: &'a mut Command, test: &str, folder: &Path) -> &'a mut Command {
    let options = ["--ignored", "--exact", test, "--nocapture"];
    command.args(options).env(FOLDER, folder)
}

fn config(folder: &Path) -> Config {
    let mut config = tiny::config(&folder.join("parameters"));
    config.jobs.journal = Some(folder.join("jobs.journal"));
    config
}

/// Requests are the number of their partitions, in words, and whatever else after a
/// line's end.
fn start(config: &Config, device: &Arc<Scripted>) -> Engine {
    try_start(config, device).unwrap()
}

fn try_start(config: &Config, device: &Arc<Scripted>) -> Result<Engine, Error> {
    start_reading(config, device, 0)
}

/// The same, for a decoder that sees so many partitions more.
fn start_reading(config: &Config, device: &Arc<Scripted>, more: usize) -> Result<Engine, Error> {
    let decoder = move |request: &[u8]| {
        let text = std::str::from_utf8(request).ok();
        let line = text.and_then(|text| text.lines().next());
        let partitions: Option<usize> = line.and_then(|line| line.parse().ok());
        let partitions = partitions
            .ok_or_else(|| Error::request("request", "expected a number", "send a number"))?;
        Ok(tiny::job(ProofKind::Porep, partitions + more))
    };
    let devices = vec![device.device()];
    Engine::start_with(config.clone(), pool(config), devices, Arc::new(decoder))
}

/// Has an engine accept jobs of so many partitions, prove none, and end.
fn leave(config: &Config, jobs: &[(&str, usize)]) {
    let device = Opened(Scripted::new(config, |_| Deed::Stall));
    let engine = start(config, &device);
    for (id, partitions) in jobs {
        let request = partitions.to_string();
        engine.submit_bytes(request.as_bytes(), named(id)).unwrap();
    }
    let opener = thread::spawn({
        let device = Arc::clone(&device);
        move || {
            thread::sleep(Duration::from_millis(100));
            device.gate.open();
        }
    });
    assert_eq!(engine.shutdown_within(Duration::ZERO).len(), jobs.len());
    opener.join_bounded().unwrap();
}

#[test]
fn a_journal_of_another_engine_is_not_taken_from_it() {
    let directory = tempfile::tempdir().unwrap();
    let config = config(directory.path());
    let device = Scripted::good(&config);
    let engine = start(&config, &device);
    let second = try_start(&config, &device).unwrap_err();
    assert!(second.to_string().contains("in use"), "{second}");
    assert!(second.is_input());
    engine.shutdown();
    start(&config, &device).shutdown();
}

#[test]
fn a_cancelled_job_is_not_resumed_and_a_shut_down_one_is() {
    let directory = tempfile::tempdir().unwrap();
    let config = config(directory.path());
    let device = Scripted::new(&config, |_| Deed::Stall);
    let engine = start(&config, &device);
    let cancelled = engine.submit_bytes(b"2", named("cancelled")).unwrap();
    let left = engine.submit_bytes(b"2", named("left")).unwrap();
    assert!(cancelled.cancel());
    let opener = thread::spawn({
        let device = Arc::clone(&device);
        move || {
            thread::sleep(Duration::from_millis(100));
            device.gate.open();
        }
    });
    assert_eq!(engine.shutdown_within(Duration::ZERO).len(), 1);
    opener.join_bounded().unwrap();
    assert!(matches!(
        *left.wait_bounded().unwrap_err(),
        Error::ShuttingDown
    ));
    let device = Scripted::good(&config);
    let engine = start(&config, &device);
    assert!(engine.job("cancelled").is_none());
    let proof = engine.job("left").unwrap().wait_bounded().unwrap();
    assert_eq!(proof.partitions(), 2);
}

/// The first job is being read again, and the second is not yet.
#[test]
fn a_shutdown_waits_for_no_job_that_was_not_read_again() {
    let directory = tempfile::tempdir().unwrap();
    let config = config(directory.path());
    leave(&config, &[("first", 1), ("second", 1)]);
    let reading = Arc::new(Doorway::default());
    let decoder = {
        let reading = Arc::clone(&reading);
        move |_: &[u8]| -> Result<_, Error> {
            reading.pass();
            Ok(tiny::job(ProofKind::Porep, 1))
        }
    };
    let devices = vec![Scripted::good(&config).device()];
    let engine =
        Engine::start_with(config.clone(), pool(&config), devices, Arc::new(decoder)).unwrap();
    reading.wait_bounded();
    let jobs = ["first", "second"].map(|id| engine.job(id).unwrap());
    engine.close();
    let (tell, told) = mpsc::channel();
    thread::spawn(move || tell.send(engine.shutdown_within(Duration::MAX).len()));
    reading.open();
    for job in jobs {
        let ended = job.wait_for(MOMENTS).unwrap();
        assert!(matches!(*ended.unwrap_err(), Error::ShuttingDown));
    }
    // The thread that reads the journal ended both.
    assert_eq!(told.recv_timeout(MOMENTS).unwrap(), 2);
    // Both go on.
    let engine = start(&config, &Scripted::good(&config));
    for id in ["first", "second"] {
        engine.job(id).unwrap().wait_for(MOMENTS).unwrap().unwrap();
    }
    engine.shutdown();
}

/// The queue is smaller than it was.
#[test]
fn a_job_that_was_accepted_is_resumed_whatever_the_queue_holds() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = config(directory.path());
    leave(&config, &[("large", 10), ("small", 2)]);
    config.jobs.queued_partitions = 4;
    let engine = start(&config, &Scripted::good(&config));
    for (id, partitions) in [("large", 10), ("small", 2)] {
        let job = engine.job(id).unwrap();
        let proof = job.wait_for(MOMENTS).unwrap().unwrap();
        assert_eq!(proof.partitions(), partitions);
    }
    engine.shutdown();
}

#[test]
fn a_job_of_another_version_keeps_neither_a_place_nor_its_id() {
    let directory = tempfile::tempdir().unwrap();
    let config = config(directory.path());
    let path = config.jobs.journal.clone().unwrap();
    let other = JobOptions {
        kind: b"what no version knows".to_vec(),
        partitions: 2,
        ..JobOptions::default()
    };
    let journal = Journal::open(&path, Limits::default()).unwrap();
    journal.accept("old", &other, b"2").unwrap();
    drop(journal);
    let engine = start(&config, &Scripted::good(&config));
    assert!(engine.job("old").is_none());
    let job = engine.submit_bytes(b"2", named("old")).unwrap();
    assert_eq!(job.wait_bounded().unwrap().partitions(), 2);
    engine.shutdown();
}

#[test]
fn a_request_that_reads_as_another_job_is_no_proof_of_the_first() {
    let directory = tempfile::tempdir().unwrap();
    let config = config(directory.path());
    leave(&config, &[("a", 2)]);
    let engine = start_reading(&config, &Scripted::good(&config), 1).unwrap();
    let job = engine.job("a").unwrap();
    let error = job.wait_for(MOMENTS).unwrap().unwrap_err();
    assert!(error.to_string().contains("2 partitions"), "{error}");
    engine.shutdown();
}
