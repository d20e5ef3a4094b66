//! The engine with a journal: killed, on a full disk, shut down, and asked for by two.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what fails in a test fails the test"
)]

#[path = "../common/mod.rs"]
mod common;
mod disk;
mod kill;

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use common::device::{Deed, Scripted, pool};
use common::{named, tiny};
use cuzk_core::kinds::ProofKind;
use cuzk_core::{Config, Engine, Error};

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
    let decoder = |request: &[u8]| {
        let text = std::str::from_utf8(request).ok();
        let line = text.and_then(|text| text.lines().next());
        let partitions = line.and_then(|line| line.parse().ok());
        let partitions = partitions
            .ok_or_else(|| Error::request("request", "expected a number", "send a number"))?;
        Ok(tiny::job(ProofKind::Porep, partitions))
    };
    let devices = vec![device.device()];
    Engine::start_with(config.clone(), pool(config), devices, Arc::new(decoder))
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
    opener.join().unwrap();
    assert!(matches!(*left.wait().unwrap_err(), Error::ShuttingDown));
    let device = Scripted::good(&config);
    let engine = start(&config, &device);
    assert!(engine.job("cancelled").is_none());
    let proof = engine.job("left").unwrap().wait().unwrap();
    assert_eq!(proof.partitions(), 2);
}
