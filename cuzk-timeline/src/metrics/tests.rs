use std::collections::HashMap;

use ::metrics::with_local_recorder;
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};

use super::*;
use crate::{Timeline, Wait};

/// Returns the change of each metric since the last call, by `name{label=value,…}`.
/// Asserts that each metric is described.
fn look(snapshotter: &Snapshotter) -> HashMap<String, f64> {
    let snapshot = snapshotter.snapshot().into_vec();
    let value = |(key, unit, description, value): (_, Option<Unit>, Option<_>, _)| {
        let key: metrics_util::CompositeKey = key;
        assert!(unit.is_some() && description.is_some(), "{key:?}");
        let key = key.key();
        let labels: Vec<_> = key
            .labels()
            .map(|label| format!("{}={}", label.key(), label.value()))
            .collect();
        let value = match value {
            DebugValue::Counter(count) => count as f64,
            DebugValue::Gauge(value) => value.into_inner(),
            DebugValue::Histogram(samples) => samples.iter().map(|s| s.into_inner()).sum(),
        };
        (format!("{}{{{}}}", key.name(), labels.join(",")), value)
    };
    snapshot.into_iter().map(value).collect()
}

fn recorded(work: impl FnOnce(&Snapshotter)) {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    with_local_recorder(&recorder, || {
        describe();
        work(&snapshotter);
    });
}

#[test]
fn every_function_moves_its_metric() {
    recorded(|snapshotter| {
        job_accepted("porep");
        job_accepted("porep");
        job_refused("porep", Refusal::Busy);
        job_ended("porep", Outcome::Proved, Duration::from_millis(1500));
        device_fault(1, Fault::Stall);
        device_fault(1, Fault::Rejected);
        device_quarantined(1, true);
        memory_budget(1 << 34);
        memory_reserved(1 << 33);
        buffers_kept(1 << 20);
        evicted(Evicted::Params);
        device_added(2);
        journal_failing(true);
        let seen = look(snapshotter);
        let expected = [
            ("cuzk_jobs_accepted_total{kind=porep}", 2.0),
            ("cuzk_jobs_refused_total{kind=porep,reason=busy}", 1.0),
            ("cuzk_jobs_ended_total{kind=porep,outcome=proved}", 1.0),
            ("cuzk_job_seconds{kind=porep,outcome=proved}", 1.5),
            ("cuzk_device_faults_total{device=1,fault=stall}", 1.0),
            ("cuzk_device_faults_total{device=2,fault=error}", 0.0),
            ("cuzk_device_faults_total{device=2,fault=panic}", 0.0),
            ("cuzk_device_faults_total{device=2,fault=rejected}", 0.0),
            ("cuzk_device_faults_total{device=2,fault=stall}", 0.0),
            ("cuzk_proofs_rejected_total{device=2}", 0.0),
            ("cuzk_device_quarantined{device=2}", 0.0),
            ("cuzk_journal_failing{}", 1.0),
            ("cuzk_device_faults_total{device=1,fault=rejected}", 1.0),
            ("cuzk_proofs_rejected_total{device=1}", 1.0),
            ("cuzk_device_quarantined{device=1}", 1.0),
            ("cuzk_memory_budget_bytes{}", 17_179_869_184.0),
            ("cuzk_memory_reserved_bytes{}", 8_589_934_592.0),
            ("cuzk_buffers_kept_bytes{}", 1_048_576.0),
            ("cuzk_evictions_total{what=params}", 1.0),
        ];
        assert_eq!(seen.len(), expected.len(), "{seen:?}");
        for (key, value) in expected {
            assert_eq!(seen.get(key), Some(&value), "{key} in {seen:?}");
        }
        device_quarantined(1, false);
        assert_eq!(look(snapshotter)["cuzk_device_quarantined{device=1}"], 0.0);
    });
}

#[test]
fn the_timeline_emits_the_stages() {
    recorded(|snapshotter| {
        let timeline = Timeline::default();
        let trace = timeline.trace(1, Some(0)).on_device(2);
        trace.time(Stage::Device, || {
            trace.time(Stage::Msm, || {
                let seen = look(snapshotter);
                assert_eq!(seen["cuzk_partitions_in_stage{stage=device}"], 1.0);
                assert_eq!(seen["cuzk_partitions_in_stage{stage=msm}"], 1.0);
                assert_eq!(seen["cuzk_device_busy{device=2}"], 1.0);
                std::thread::sleep(Duration::from_millis(2));
            });
        });
        let seen = look(snapshotter);
        assert_eq!(seen["cuzk_partitions_in_stage{stage=device}"], -1.0);
        assert_eq!(seen["cuzk_partitions_in_stage{stage=msm}"], -1.0);
        assert_eq!(seen["cuzk_device_busy{device=2}"], -1.0);
        let spans = timeline.spans();
        let seconds = spans[1].length().as_secs_f64();
        assert_eq!(seen["cuzk_stage_seconds{stage=device}"], seconds);
        assert!(seen["cuzk_stage_seconds{stage=msm}"] >= 0.002);
        assert_eq!(seen["cuzk_device_busy_seconds_total{device=2}"], seconds);
    });
}

#[test]
fn what_waits_is_counted_until_it_is_taken_or_dropped() {
    recorded(|snapshotter| {
        let timeline = Timeline::default();
        let key = "cuzk_partitions_in_stage{stage=ready_wait}";
        let waits = [Wait::begin(Stage::ReadyWait), Wait::begin(Stage::ReadyWait)];
        assert_eq!(look(snapshotter)[key], 2.0);
        let [taken, dropped] = waits;
        timeline.trace(0, Some(1)).ended(taken);
        assert_eq!(look(snapshotter)[key], -1.0);
        drop(dropped);
        assert_eq!(look(snapshotter)[key], -1.0);
        assert_eq!(timeline.spans().len(), 1);
    });
}

#[test]
fn a_stage_that_unwinds_lowers_what_it_raised() {
    recorded(|snapshotter| {
        let timeline = Timeline::default();
        let trace = timeline.trace(1, Some(0)).on_device(0);
        let unwound = catch_unwind(AssertUnwindSafe(|| {
            trace.time(Stage::Device, || panic!("as a device would"));
        }));
        assert!(unwound.is_err());
        let seen = look(snapshotter);
        assert_eq!(seen["cuzk_partitions_in_stage{stage=device}"], 0.0);
        assert_eq!(seen["cuzk_device_busy{device=0}"], 0.0);
    });
}

#[test]
fn a_recorder_installed_late_sees_no_gauge_below_zero() {
    let wait = Wait::begin(Stage::QueueWait);
    recorded(|snapshotter| {
        drop(wait);
        assert!(look(snapshotter).is_empty());
    });
}
