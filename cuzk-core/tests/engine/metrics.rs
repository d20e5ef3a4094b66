//! What an engine tells the recorder of its process.

use std::collections::HashMap;
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::Duration;

use cuzk_bounded::BoundedCommand;

use crate::common::BoundedJob as _;
use crate::common::device::{Deed, Doorway, Scripted, engine_on};
use crate::common::tiny::{self, TinyJob};
use crate::common::{MOMENTS, submit, urgent, wait_until};
use ::metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use cuzk_core::Engine;
use cuzk_core::job::JobOptions;
use cuzk_core::metrics;
use cuzk_core::scheduler::priority::Priority;
use cuzk_filecoin::ProofKind;
use metrics_util::CompositeKey;
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};

/// Every metric, as `name{label=value,…}`: histograms by their number of samples.
fn look(snapshotter: &Snapshotter) -> HashMap<String, f64> {
    let name = |key: &CompositeKey| {
        let labels = key.key().labels();
        let labels = labels.map(|label| format!("{}={}", label.key(), label.value()));
        let labels: Vec<_> = labels.collect();
        format!("{}{{{}}}", key.key().name(), labels.join(","))
    };
    let value = |value| match value {
        DebugValue::Counter(count) => count as f64,
        DebugValue::Gauge(value) => value.into_inner(),
        DebugValue::Histogram(samples) => samples.len() as f64,
    };
    let metrics = snapshotter.snapshot().into_vec().into_iter();
    metrics
        .map(|(key, _, _, of_key)| (name(&key), value(of_key)))
        .collect()
}

/// Runs an ignored test of this module in a process of its own, because a recorder is the
/// whole process's: it would hear the other tests, too. Returns the output.
pub(crate) fn in_a_process_of_its_own(test: &str) -> Output {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--ignored", "--exact", test, "--nocapture"]);
    let output = child.output_bounded().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let failed = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}{failed}"
    );
    output
}

#[test]
fn an_engine_tells_how_it_is_doing() {
    in_a_process_of_its_own("metrics::child_that_counts");
}

/// One job of each end: proved after a fault, false, cancelled, and refused.
#[test]
#[ignore = "it is the other test's child"]
fn child_that_counts() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    recorder.install().unwrap();
    metrics::describe();
    let directory = tempfile::tempdir().unwrap();
    let mut config = tiny::config(directory.path());
    config.gpus.faults_max = 1;
    config.gpus.rest = Duration::from_secs(3600);
    let device = Scripted::new(&config, |_| Deed::WrongPoint);
    let engine = engine_on(&config, &[&device]);

    let proved = submit(&engine, tiny::job(ProofKind::Porep, 1));
    proved.wait_bounded().unwrap();
    let false_job = TinyJob {
        kind: ProofKind::SnapDeals,
        partitions: 1,
        false_partition: Some(0),
    };
    submit(&engine, Arc::new(false_job))
        .wait_bounded()
        .unwrap_err();
    let witness = Arc::new(Doorway::default());
    let job = submit(&engine, tiny::held(ProofKind::WindowPost, &witness));
    witness.wait_bounded();
    job.cancel();
    witness.open();
    wait_until("it is gone", || engine.status().partitions_running == 0);
    engine.close();
    let late = tiny::job(ProofKind::Porep, 1);
    engine.submit_job(late, JobOptions::default()).unwrap_err();
    let memory = engine.status().memory;
    engine.shutdown();

    let seen = look(&snapshotter);
    let expected = [
        ("cuzk_jobs_accepted_total{kind=porep}", 1.0),
        ("cuzk_jobs_accepted_total{kind=window-post}", 1.0),
        (
            "cuzk_jobs_refused_total{kind=porep,reason=shutting_down}",
            1.0,
        ),
        ("cuzk_jobs_ended_total{kind=porep,outcome=proved}", 1.0),
        ("cuzk_jobs_ended_total{kind=snap-deals,outcome=failed}", 1.0),
        (
            "cuzk_jobs_ended_total{kind=window-post,outcome=cancelled}",
            1.0,
        ),
        ("cuzk_job_seconds{kind=porep,outcome=proved}", 1.0),
        ("cuzk_proofs_rejected_total{device=0}", 1.0),
        ("cuzk_device_faults_total{device=0,fault=rejected}", 1.0),
        ("cuzk_device_quarantined{device=0}", 1.0),
        ("cuzk_partitions_in_stage{stage=verify}", 0.0),
        // What is reserved when nothing runs: no more than what is idle.
        ("cuzk_memory_reserved_bytes{}", memory.idle_bytes as f64),
        ("cuzk_memory_budget_bytes{}", memory.total_bytes as f64),
    ];
    for (key, value) in expected {
        assert_eq!(seen.get(key), Some(&value), "{key} in {seen:#?}");
    }
    // On the device, and again elsewhere; and the false one elsewhere only.
    assert_eq!(seen["cuzk_stage_seconds{stage=verify}"], 3.0);
}

/// A recorder that does not like to be told anything.
struct Panics;

fn defect<T>() -> T {
    panic!("a recorder's defect")
}

impl Recorder for Panics {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> Counter {
        defect()
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        defect()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        defect()
    }
}

/// In a process of its own, which has this recorder.
#[test]
#[ignore = "it is the other test's child"]
fn child_with_a_defect() {
    ::metrics::set_global_recorder(Panics).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let config = tiny::config(directory.path());
    let priorities = [Priority::Normal, Priority::Critical, Priority::Low];
    let submit_all = |engine: &Engine| {
        let submit = |priority| engine.submit_job(tiny::job(ProofKind::Porep, 2), urgent(priority));
        priorities.map(|priority| submit(priority).unwrap())
    };
    for deed in [Deed::Prove, Deed::WrongPoint, Deed::PanicInFinish] {
        let engine = engine_on(&config, &[&Scripted::new(&config, move |_| deed)]);
        for job in submit_all(&engine) {
            job.wait_for(MOMENTS).unwrap().unwrap();
        }
        let [cancelled, ..] = submit_all(&engine);
        cancelled.cancel();
        engine.shutdown();
    }
}

/// Between turns, and where a stage panics, too, or a device is given up.
#[test]
fn a_recorder_that_panics_costs_no_job_and_no_thread() {
    let output = in_a_process_of_its_own("metrics::child_with_a_defect");
    let panics = String::from_utf8_lossy(&output.stderr);
    assert!(panics.contains("a recorder's defect"), "{panics}");
}
