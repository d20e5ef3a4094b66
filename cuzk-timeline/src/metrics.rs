//! The metrics of an engine: their names, units and meanings.
//!
//! Not an exporter: they go to whichever recorder the process has installed for
//! the `metrics` facade, and nowhere without one. Whoever installs one calls
//! [`describe`] and does so before the engine starts. Labels take few values:
//! kinds, stages, devices and the enums here, never a job's number. The invariants:
//! a gauge that was raised is lowered again, also when a stage unwinds; a recorder that
//! panics takes nothing with it.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use ::metrics::{
    Gauge, Label, Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge,
    histogram,
};

use crate::{Span, Stage};

/// Jobs accepted. Label: `kind`.
pub const JOBS_ACCEPTED: &str = "cuzk_jobs_accepted_total";
/// Jobs refused at the door. Labels: `kind`, `reason`.
pub const JOBS_REFUSED: &str = "cuzk_jobs_refused_total";
/// Accepted jobs that have ended. Labels: `kind`, `outcome`.
pub const JOBS_ENDED: &str = "cuzk_jobs_ended_total";
/// From accepting a job to its end. Labels: `kind`, `outcome`.
pub const JOB_SECONDS: &str = "cuzk_job_seconds";
/// Partitions that are in a stage now, waiting or working. Label: `stage`.
pub const PARTITIONS_IN_STAGE: &str = "cuzk_partitions_in_stage";
/// How long a stage took. Label: `stage`.
pub const STAGE_SECONDS: &str = "cuzk_stage_seconds";
/// Proofs that the verifier rejected. Label: `device`.
pub const PROOFS_REJECTED: &str = "cuzk_proofs_rejected_total";
/// Partitions under the device's lock now, 0 or 1. Label: `device`.
pub const DEVICE_BUSY: &str = "cuzk_device_busy";
/// Time under the device's lock; its rate is the device's utilisation. Label:
/// `device`.
pub const DEVICE_BUSY_MICROSECONDS: &str = "cuzk_device_busy_microseconds_total";
/// What went wrong on a device. Labels: `device`, `fault`.
pub const DEVICE_FAULTS: &str = "cuzk_device_faults_total";
/// Whether a device gets no work after too many faults, 0 or 1. Label: `device`.
pub const DEVICE_QUARANTINED: &str = "cuzk_device_quarantined";
/// Memory that may be reserved in all.
pub const MEMORY_BUDGET_BYTES: &str = "cuzk_memory_budget_bytes";
/// Memory that is reserved.
pub const MEMORY_RESERVED_BYTES: &str = "cuzk_memory_reserved_bytes";
/// Memory of the buffers kept for the next partition.
pub const BUFFERS_KEPT_BYTES: &str = "cuzk_buffers_kept_bytes";
/// What was evicted to make room. Label: `what`.
pub const EVICTIONS: &str = "cuzk_evictions_total";

/// Tells the installed recorder what every metric means.
pub fn describe() {
    use Unit::{Bytes, Count, Microseconds, Seconds};
    describe_counter!(JOBS_ACCEPTED, Count, "Jobs accepted");
    describe_counter!(JOBS_REFUSED, Count, "Jobs refused at the door");
    describe_counter!(JOBS_ENDED, Count, "Accepted jobs that have ended");
    describe_histogram!(JOB_SECONDS, Seconds, "From accepting a job to its end");
    describe_gauge!(
        PARTITIONS_IN_STAGE,
        Count,
        "Partitions that are in a stage now, waiting or working"
    );
    describe_histogram!(STAGE_SECONDS, Seconds, "How long a stage took");
    describe_counter!(
        PROOFS_REJECTED,
        Count,
        "Proofs that the verifier rejected, and that were not given out"
    );
    describe_gauge!(DEVICE_BUSY, Count, "Partitions under the device's lock now");
    describe_counter!(
        DEVICE_BUSY_MICROSECONDS,
        Microseconds,
        "Time under the device's lock; its rate is the device's utilisation"
    );
    describe_counter!(DEVICE_FAULTS, Count, "What went wrong on a device");
    describe_gauge!(
        DEVICE_QUARANTINED,
        Count,
        "1 for a device that gets no work after too many faults"
    );
    describe_gauge!(MEMORY_BUDGET_BYTES, Bytes, "Memory that may be reserved");
    describe_gauge!(MEMORY_RESERVED_BYTES, Bytes, "Memory that is reserved");
    describe_gauge!(
        BUFFERS_KEPT_BYTES,
        Bytes,
        "Memory of the buffers kept for the next partition"
    );
    describe_counter!(EVICTIONS, Count, "What was evicted to make room");
}

/// Why a job was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// The request is wrong.
    Invalid,
    /// Its parameters are not there.
    MissingParameters,
    /// The same request id came with another input.
    Conflict,
    /// The queue is full.
    Busy,
    /// It needs more memory than there is in all.
    Memory,
    /// It could not be done before its deadline.
    Deadline,
    /// The engine is shutting down.
    ShuttingDown,
    /// The engine could not take it for a reason of its own.
    Internal,
}

impl Refusal {
    /// The value of the label `reason`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::MissingParameters => "missing_parameters",
            Self::Conflict => "conflict",
            Self::Busy => "busy",
            Self::Memory => "memory",
            Self::Deadline => "deadline",
            Self::ShuttingDown => "shutting_down",
            Self::Internal => "internal",
        }
    }
}

/// How an accepted job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// With a verified proof.
    Proved,
    /// With an error.
    Failed,
    /// It was cancelled.
    Cancelled,
    /// The engine was shut down first.
    ShutDown,
}

impl Outcome {
    /// The value of the label `outcome`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Proved => "proved",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::ShutDown => "shut_down",
        }
    }
}

/// What went wrong on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// It returned an error.
    Error,
    /// Its code panicked.
    Panic,
    /// It took longer than it may.
    Stall,
    /// It returned a proof that does not verify.
    Rejected,
}

impl Fault {
    /// The value of the label `fault`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Panic => "panic",
            Self::Stall => "stall",
            Self::Rejected => "rejected",
        }
    }
}

/// What can be evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Evicted {
    /// Groth16 parameters.
    Params,
    /// A compiled circuit.
    Circuit,
    /// Buffers kept for the next partition.
    Buffers,
}

impl Evicted {
    /// The value of the label `what`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Params => "params",
            Self::Circuit => "circuit",
            Self::Buffers => "buffers",
        }
    }
}

/// A job of `kind` was accepted.
pub fn job_accepted(kind: &'static str) {
    tell(|| counter!(JOBS_ACCEPTED, "kind" => kind).increment(1));
}

/// A job of `kind` was refused.
pub fn job_refused(kind: &'static str, reason: Refusal) {
    tell(|| counter!(JOBS_REFUSED, "kind" => kind, "reason" => reason.name()).increment(1));
}

/// A job of `kind` ended, this long after it was accepted.
pub fn job_ended(kind: &'static str, outcome: Outcome, after: Duration) {
    tell(|| {
        counter!(JOBS_ENDED, "kind" => kind, "outcome" => outcome.name()).increment(1);
        histogram!(JOB_SECONDS, "kind" => kind, "outcome" => outcome.name()).record(after);
    });
}

/// Something went wrong on a device. A rejected proof counts as one, too.
pub fn device_fault(device: usize, fault: Fault) {
    tell(|| {
        if fault == Fault::Rejected {
            counter!(PROOFS_REJECTED, of_device(device)).increment(1);
        }
        let device = device.to_string();
        counter!(DEVICE_FAULTS, "device" => device, "fault" => fault.name()).increment(1);
    });
}

/// A device was put into quarantine, or let out of it.
pub fn device_quarantined(device: usize, quarantined: bool) {
    let quarantined = f64::from(u8::from(quarantined));
    tell(|| gauge!(DEVICE_QUARANTINED, of_device(device)).set(quarantined));
}

/// How much memory may be reserved in all.
pub fn memory_budget(bytes: u64) {
    tell(|| gauge!(MEMORY_BUDGET_BYTES).set(bytes as f64));
}

/// How much memory is reserved.
pub fn memory_reserved(bytes: u64) {
    tell(|| gauge!(MEMORY_RESERVED_BYTES).set(bytes as f64));
}

/// How much memory is kept in buffers for the next partition.
pub fn buffers_kept(bytes: u64) {
    tell(|| gauge!(BUFFERS_KEPT_BYTES).set(bytes as f64));
}

/// Something was evicted to make room.
pub fn evicted(what: Evicted) {
    tell(|| counter!(EVICTIONS, "what" => what.name()).increment(1));
}

/// A stage ended.
pub(crate) fn stage_ended(span: &Span) {
    tell(|| {
        histogram!(STAGE_SECONDS, "stage" => span.stage.name()).record(span.length());
        if let (Stage::Device, Some(device)) = (span.stage, span.device) {
            let busy_us = u64::try_from(span.length().as_micros()).unwrap_or(u64::MAX);
            counter!(DEVICE_BUSY_MICROSECONDS, of_device(device)).increment(busy_us);
        }
    });
}

/// The recorder is the caller's code. If it panics, what it was told is lost, and nothing of
/// whoever told it: who tells has work in hand, and may be unwinding.
fn tell<R>(what: impl FnOnce() -> R) -> Option<R> {
    let told = catch_unwind(AssertUnwindSafe(what));
    let told = told.map_err(|panic| {
        // Dropping it could panic again.
        mem::forget(panic);
        tracing::error!("the recorder of metrics panicked; what it was told is lost");
    });
    told.ok()
}

fn of_device(device: usize) -> Vec<Label> {
    vec![Label::new("device", device.to_string())]
}

/// Being in a stage, as the gauges see it: until this is dropped. It lowers what
/// it raised, even if another recorder is installed meanwhile.
pub(crate) struct InStage {
    stage: Stage,
    partitions: Option<Gauge>,
    device_busy: Option<Gauge>,
}

impl InStage {
    pub(crate) fn enter(stage: Stage, device: Option<usize>) -> Self {
        let raised = |gauge: Gauge| {
            gauge.increment(1);
            gauge
        };
        let partitions = || raised(gauge!(PARTITIONS_IN_STAGE, "stage" => stage.name()));
        let device = device.filter(|_| stage == Stage::Device);
        let busy = |device| tell(|| raised(gauge!(DEVICE_BUSY, of_device(device))));
        Self {
            stage,
            partitions: tell(partitions),
            device_busy: device.and_then(busy),
        }
    }

    pub(crate) fn stage(&self) -> Stage {
        self.stage
    }
}

impl Drop for InStage {
    fn drop(&mut self) {
        for raised in [&self.partitions, &self.device_busy].into_iter().flatten() {
            tell(|| raised.decrement(1));
        }
    }
}

impl std::fmt::Debug for InStage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Debug::fmt(&self.stage, f)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use ::metrics::with_local_recorder;
    use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};

    use super::*;
    use crate::{Timeline, Wait};

    /// How far every metric moved since the last look, as
    /// `name{label=value,…}`; every one of them must have been described.
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
            let seen = look(snapshotter);
            let expected = [
                ("cuzk_jobs_accepted_total{kind=porep}", 2.0),
                ("cuzk_jobs_refused_total{kind=porep,reason=busy}", 1.0),
                ("cuzk_jobs_ended_total{kind=porep,outcome=proved}", 1.0),
                ("cuzk_job_seconds{kind=porep,outcome=proved}", 1.5),
                ("cuzk_device_faults_total{device=1,fault=stall}", 1.0),
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
            let busy_us = seen["cuzk_device_busy_microseconds_total{device=2}"];
            assert_eq!(busy_us, spans[1].length().as_micros() as f64);
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
}
