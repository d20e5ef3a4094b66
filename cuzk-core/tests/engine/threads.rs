//! Threads: none outlives its engine.
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use cuzk_bounded::BoundedCommand;
use cuzk_core::scheduler::priority::Priority;
use cuzk_core::{Config, Engine};
use cuzk_filecoin::ProofKind;

use crate::common::BoundedJob as _;
use crate::common::{self, submit, tiny, urgent, wait_until};

/// What stays as long as the process: the thread that frees memory, and the C++ side's
/// pool.
const STAY: [&str; 2] = ["cuzk-dealloc", "cuzk-gpu-"];

/// How many threads of each name there are.
fn threads() -> BTreeMap<String, usize> {
    let mut threads = BTreeMap::new();
    for task in std::fs::read_dir("/proc/self/task").unwrap() {
        // One that ended meanwhile has none.
        if let Ok(name) = std::fs::read_to_string(task.unwrap().path().join("comm")) {
            *threads.entry(name.trim().to_owned()).or_default() += 1;
        }
    }
    threads
}

/// Has every thread of an engine work. Each job ends with a proof.
fn use_all(config: &Config) -> Engine {
    let engine = Engine::start(config.clone()).unwrap();
    let request = cuzk_testing::bundled_request(ProofKind::WinningPost);
    engine.submit(&request).unwrap().wait_bounded().unwrap();
    let request = cuzk_testing::bundled_request(ProofKind::WindowPost);
    for priority in Priority::ALL {
        let job = engine.submit_with(&request, urgent(priority));
        job.unwrap().wait_bounded().unwrap();
    }
    engine
}

/// In a process of its own, since other tests have threads too.
#[test]
#[ignore = "it is the other test's child"]
fn child() {
    // Nothing is done in rayon's global pool, which would stay.
    let before = threads();
    println!("before {before:?}");
    let mut config = common::config();
    let directory = tempfile::tempdir().unwrap();
    config.jobs.journal = Some(directory.path().join("jobs.journal"));
    let ends: [fn(Engine); 3] = [Engine::shutdown, drop, |engine| {
        submit(&engine, tiny::job(ProofKind::WindowPost, 4));
        drop(engine.shutdown_within(Duration::ZERO));
    }];
    for end in ends {
        let engine = use_all(&config);
        let during = threads();
        println!("during {during:?}");
        assert!(during.keys().any(|name| name.starts_with("cuzk-synth")));
        end(engine);
        println!("after {:?}", threads());
        // A pool does not wait for its threads.
        wait_until("the engine's threads have ended", || {
            let mut after = threads();
            after.retain(|name, _| !STAY.iter().any(|stay| name.starts_with(stay)));
            after == before
        });
    }
}

#[test]
fn no_thread_outlives_its_engine() {
    // Here, so that the child need not make them, which takes threads.
    for kind in [ProofKind::WinningPost, ProofKind::WindowPost] {
        common::circuit_with_params(kind);
    }
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--ignored", "--exact", "threads::child", "--nocapture"]);
    let output = child.output_bounded().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}"
    );
}
