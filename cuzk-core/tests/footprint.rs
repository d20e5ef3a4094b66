//! What a partition is said to need, against what it is seen to use: the peak of a
//! process that proves it, over what the process had before.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what fails in a test fails the test"
)]

mod common;

use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use cuzk_core::Engine;
use cuzk_core::circuit::Circuit;
use cuzk_core::config::Devices;
use cuzk_core::job::JobOptions;
use cuzk_core::kinds::ProofKind;
use cuzk_core::memory::footprint::{circuit_bytes, partition_bytes};
use cuzk_core::scheduler::priority::Priority;

/// Tells the child what to prove.
const KIND: &str = "CUZK_TEST_FOOTPRINT_KIND";

/// How far the two may be apart.
const TOLERANCE: f64 = 0.10;

fn anonymous_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let mut lines = status.lines();
    let line = lines.find_map(|line| line.strip_prefix("RssAnon:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB"));
    kib.unwrap().trim().parse::<u64>().unwrap() * 1024
}

/// What a partition and its circuit hold that is not mapped from a file.
fn said_bytes(circuit: &Circuit) -> u64 {
    let mapped = circuit.program().resident_bytes() as u64;
    partition_bytes(circuit) + circuit_bytes(circuit) - mapped
}

#[test]
#[ignore = "it is the other test's child"]
fn child() {
    let Ok(kind) = std::env::var(KIND) else {
        return;
    };
    let request = common::bundled_request(kind.parse().unwrap());
    let mut config = common::config();
    config.gpus.devices = Devices::Cpu;
    let engine = Engine::start(config).unwrap();
    let before = anonymous_bytes();
    let (peak, over) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                peak.fetch_max(anonymous_bytes(), Ordering::Relaxed);
                thread::sleep(Duration::from_micros(500));
            }
        });
        // Twice, so that what is kept and used again is seen.
        for _ in 0..2 {
            let options = JobOptions {
                priority: Some(Priority::Normal),
                ..JobOptions::default()
            };
            let job = engine.submit_with(&request, options).unwrap();
            job.wait().unwrap();
        }
        over.store(true, Ordering::Relaxed);
    });
    println!("used {}", peak.into_inner() - before);
}

#[test]
#[cfg(target_os = "linux")]
fn a_partition_uses_what_it_is_said_to() {
    let mut wrong = Vec::new();
    for kind in ProofKind::ALL {
        let circuit = common::circuit_with_params(kind);
        let said = said_bytes(&circuit);
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["child", "--exact", "--ignored", "--nocapture"])
            .env(KIND, kind.to_string())
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let used = text.lines().find_map(|line| line.strip_prefix("used "));
        let used: u64 = used
            .unwrap_or_else(|| panic!("{kind}: {text}"))
            .parse()
            .unwrap();
        let ratio = said as f64 / used as f64;
        println!("{kind}: said {said}, used {used}, ratio {ratio:.3}");
        if (ratio - 1.0).abs() > TOLERANCE {
            wrong.push((kind, ratio));
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}
