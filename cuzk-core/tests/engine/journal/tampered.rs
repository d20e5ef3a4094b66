//! A journal whose proofs somebody changed: what is wrong is told, and proved again.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use cuzk_bounded::BoundedJoin;
use cuzk_journal::{Journal, Limits};
use serde_json::Value;

use super::{config, start};
use crate::common::BoundedJob as _;
use crate::common::device::{Deed, Opened, Scripted};
use crate::common::{named, wait_until};
use crate::metrics::in_a_process_of_its_own;

/// Has an engine prove one partition of three, and end. Returns the proof.
fn prove_one(config: &cuzk_core::Config) -> (u32, Vec<u8>) {
    let one = |n| if n == 0 { Deed::Prove } else { Deed::Stall };
    let device = Opened(Scripted::new(config, one));
    let engine = start(config, &device);
    let job = engine.submit_bytes(b"3", named("a")).unwrap();
    wait_until("one is proved", || job.progress().partitions_done == 1);
    wait_until("the next is on the device", || device.started() > 1);
    let gate = Arc::clone(&device);
    let opener = thread::spawn(move || {
        thread::sleep(Duration::from_millis(100));
        gate.gate.open();
    });
    assert_eq!(engine.shutdown_within(Duration::ZERO).len(), 1);
    opener.join_bounded().unwrap();
    let path = config.jobs.journal.clone().unwrap();
    let journal = Journal::open(path, Limits::default()).unwrap();
    let mut jobs = journal.pending().unwrap().jobs;
    let mut finished = jobs.remove(0).finished;
    assert_eq!(finished.len(), 1);
    finished.remove(0)
}

/// Changes a bit of each copy of a proof in a file.
fn change(path: &Path, proof: &[u8]) {
    let mut bytes = fs::read(path).unwrap();
    let starts = 0..bytes.len();
    let starts: Vec<_> = starts
        .filter(|at| bytes[*at..].starts_with(proof))
        .collect();
    assert!(!starts.is_empty(), "the proof is not in the file");
    for at in starts {
        bytes[at + 7] ^= 1;
    }
    fs::write(path, bytes).unwrap();
}

/// Its lines are those of a process.
#[test]
#[ignore = "it is the other test's child"]
fn child_that_finds_a_changed_proof() {
    let lines = tracing_subscriber::fmt().json();
    lines.with_writer(std::io::stderr).init();
    let directory = tempfile::tempdir().unwrap();
    let mut config = config(directory.path());
    config.gpus.gpu_workers_per_device = 1;
    let (partition, proof) = prove_one(&config);
    change(config.jobs.journal.as_deref().unwrap(), &proof);
    let device = Scripted::good(&config);
    let engine = start(&config, &device);
    let proved = engine.job("a").unwrap().wait_bounded().unwrap();
    assert_eq!(proved.partitions(), 3);
    assert_eq!(device.started(), 3, "the changed one, too");
    engine.shutdown();
    println!("changed: [{partition}]");
}

#[test]
fn a_proof_that_was_changed_in_the_journal_is_told_and_proved_again() {
    let output = in_a_process_of_its_own("journal::tampered::child_that_finds_a_changed_proof");
    let printed = String::from_utf8(output.stdout).unwrap();
    let changed = printed
        .lines()
        .find_map(|line| line.split("changed: ").nth(1));
    let told = String::from_utf8(output.stderr).unwrap();
    let lines = told.lines().filter(|line| line.starts_with('{'));
    let lines = lines.map(|line| serde_json::from_str::<Value>(line).unwrap());
    let warned: Vec<_> = lines
        .filter(|line| {
            let message = line["fields"]["message"].as_str().unwrap_or_default();
            line["level"] == "WARN" && message.contains("were changed")
        })
        .collect();
    assert_eq!(warned.len(), 1, "{told}");
    assert_eq!(warned[0]["fields"]["id"], "a");
    assert_eq!(
        warned[0]["fields"]["partitions"].as_str(),
        changed,
        "{printed}"
    );
}
