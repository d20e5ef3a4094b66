//! The metrics of an engine: their names, units and meanings.
//!
//! This is not an exporter. Each metric goes to the recorder that the process has
//! installed for the `metrics` facade; without a recorder it goes nowhere. The code
//! that installs a recorder calls [`describe`], before it starts the engine. A label
//! has few values: kinds, stages, devices and the enums of this module, never the
//! number of a job.
//!
//! The invariants: a gauge that was raised is lowered again, also if a stage unwinds. A
//! panic of the recorder does not reach the code that reports a metric.

mod labels;

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use ::metrics::{
    Gauge, Label, Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge,
    histogram,
};

use crate::{Span, Stage};

pub use labels::{Evicted, Fault, Outcome, Refusal};

/// Jobs accepted. Label: `kind`.
pub const JOBS_ACCEPTED: &str = "cuzk_jobs_accepted_total";
/// Jobs refused at submission. Labels: `kind`, `reason`.
pub const JOBS_REFUSED: &str = "cuzk_jobs_refused_total";
/// Accepted jobs that have ended. Labels: `kind`, `outcome`.
pub const JOBS_ENDED: &str = "cuzk_jobs_ended_total";
/// Time from accepting a job to its end. Labels: `kind`, `outcome`.
pub const JOB_SECONDS: &str = "cuzk_job_seconds";
/// Partitions that wait or work in a stage now. Label: `stage`.
pub const PARTITIONS_IN_STAGE: &str = "cuzk_partitions_in_stage";
/// Duration of a stage. Label: `stage`.
pub const STAGE_SECONDS: &str = "cuzk_stage_seconds";
/// Proofs that the verifier rejected. Label: `device`.
pub const PROOFS_REJECTED: &str = "cuzk_proofs_rejected_total";
/// Partitions under the device's lock now, 0 or 1. Label: `device`.
pub const DEVICE_BUSY: &str = "cuzk_device_busy";
/// Time under the device's lock. Its rate is the device's utilisation. It only grows, but
/// it is a gauge: counters of the `metrics` facade count whole numbers, and seconds have
/// fractions. Label: `device`.
pub const DEVICE_BUSY_SECONDS: &str = "cuzk_device_busy_seconds_total";
/// Faults of a device. Labels: `device`, `fault`.
pub const DEVICE_FAULTS: &str = "cuzk_device_faults_total";
/// 1 for a device that gets no work after too many faults, otherwise 0. Label:
/// `device`.
pub const DEVICE_QUARANTINED: &str = "cuzk_device_quarantined";
/// Memory that may be reserved in all.
pub const MEMORY_BUDGET_BYTES: &str = "cuzk_memory_budget_bytes";
/// Memory that is reserved.
pub const MEMORY_RESERVED_BYTES: &str = "cuzk_memory_reserved_bytes";
/// Memory of the buffers that are kept for the next partition.
pub const BUFFERS_KEPT_BYTES: &str = "cuzk_buffers_kept_bytes";
/// Evictions to free memory. Label: `what`.
pub const EVICTIONS: &str = "cuzk_evictions_total";
/// 1 while the journal cannot be written, otherwise 0.
pub const JOURNAL_FAILING: &str = "cuzk_journal_failing";

/// Describes each metric and its unit to the installed recorder.
pub fn describe() {
    use Unit::{Bytes, Count, Seconds};
    describe_counter!(JOBS_ACCEPTED, Count, "Jobs accepted");
    describe_counter!(JOBS_REFUSED, Count, "Jobs refused at submission");
    describe_counter!(JOBS_ENDED, Count, "Accepted jobs that have ended");
    describe_histogram!(JOB_SECONDS, Seconds, "Time from accepting a job to its end");
    describe_gauge!(
        PARTITIONS_IN_STAGE,
        Count,
        "Partitions that wait or work in a stage now"
    );
    describe_histogram!(STAGE_SECONDS, Seconds, "Duration of a stage");
    describe_counter!(
        PROOFS_REJECTED,
        Count,
        "Proofs that the verifier rejected; none of them was returned"
    );
    describe_gauge!(DEVICE_BUSY, Count, "Partitions under the device's lock now");
    describe_gauge!(
        DEVICE_BUSY_SECONDS,
        Seconds,
        "Time under the device's lock; it only grows, and its rate is the device's utilisation"
    );
    describe_counter!(DEVICE_FAULTS, Count, "Faults of a device");
    describe_gauge!(
        DEVICE_QUARANTINED,
        Count,
        "1 for a device that gets no work after too many faults, otherwise 0"
    );
    describe_gauge!(MEMORY_BUDGET_BYTES, Bytes, "Memory that may be reserved");
    describe_gauge!(MEMORY_RESERVED_BYTES, Bytes, "Memory that is reserved");
    describe_gauge!(
        BUFFERS_KEPT_BYTES,
        Bytes,
        "Memory of the buffers that are kept for the next partition"
    );
    describe_counter!(EVICTIONS, Count, "Evictions to free memory");
    describe_gauge!(
        JOURNAL_FAILING,
        Count,
        "1 while the journal cannot be written, otherwise 0"
    );
}

/// Counts a job of `kind` that was accepted.
pub fn job_accepted(kind: &'static str) {
    guarded(|| counter!(JOBS_ACCEPTED, "kind" => kind).increment(1));
}

/// Counts a job of `kind` that was refused.
pub fn job_refused(kind: &'static str, reason: Refusal) {
    guarded(|| counter!(JOBS_REFUSED, "kind" => kind, "reason" => reason.name()).increment(1));
}

/// Counts a job of `kind` that ended, with the time since it was accepted.
pub fn job_ended(kind: &'static str, outcome: Outcome, after: Duration) {
    guarded(|| {
        counter!(JOBS_ENDED, "kind" => kind, "outcome" => outcome.name()).increment(1);
        histogram!(JOB_SECONDS, "kind" => kind, "outcome" => outcome.name()).record(after);
    });
}

/// Counts a fault of a device. Counts a rejected proof as such, too.
pub fn device_fault(device: usize, fault: Fault) {
    guarded(|| {
        if fault == Fault::Rejected {
            counter!(PROOFS_REJECTED, of_device(device)).increment(1);
        }
        let device = device.to_string();
        counter!(DEVICE_FAULTS, "device" => device, "fault" => fault.name()).increment(1);
    });
}

/// Sets the gauge that tells if a device is in quarantine.
pub fn device_quarantined(device: usize, quarantined: bool) {
    let quarantined = f64::from(u8::from(quarantined));
    guarded(|| gauge!(DEVICE_QUARANTINED, of_device(device)).set(quarantined));
}

/// Makes a device known, with no fault so far: an alert on a counter needs its first value.
pub fn device_added(device: usize) {
    device_quarantined(device, false);
    guarded(|| counter!(PROOFS_REJECTED, of_device(device)).increment(0));
    for fault in Fault::ALL {
        let device = device.to_string();
        guarded(|| {
            counter!(DEVICE_FAULTS, "device" => device, "fault" => fault.name()).increment(0)
        });
    }
}

/// Sets the gauge that tells if the journal cannot be written.
pub fn journal_failing(failing: bool) {
    let failing = f64::from(u8::from(failing));
    guarded(|| gauge!(JOURNAL_FAILING).set(failing));
}

/// Sets the gauge of the memory that may be reserved in all.
pub fn memory_budget(bytes: u64) {
    guarded(|| gauge!(MEMORY_BUDGET_BYTES).set(bytes as f64));
}

/// Sets the gauge of the memory that is reserved.
pub fn memory_reserved(bytes: u64) {
    guarded(|| gauge!(MEMORY_RESERVED_BYTES).set(bytes as f64));
}

/// Sets the gauge of the memory that buffers keep for the next partition.
pub fn buffers_kept(bytes: u64) {
    guarded(|| gauge!(BUFFERS_KEPT_BYTES).set(bytes as f64));
}

/// Counts an eviction.
pub fn evicted(what: Evicted) {
    guarded(|| counter!(EVICTIONS, "what" => what.name()).increment(1));
}

/// Records the metrics of a stage that ended.
pub(crate) fn stage_ended(span: &Span) {
    guarded(|| {
        histogram!(STAGE_SECONDS, "stage" => span.stage.name()).record(span.length());
        if let Some(device) = span.device.filter(|_| span.stage.is_busy()) {
            let busy_s = span.length().as_secs_f64();
            gauge!(DEVICE_BUSY_SECONDS, of_device(device)).increment(busy_s);
        }
    });
}

/// Calls `report`, and returns nothing if it panicked. The recorder is the caller's
/// code: a panic in it loses the metric and nothing else. The thread that reports has
/// work in hand, and may already be unwinding.
fn guarded<R>(report: impl FnOnce() -> R) -> Option<R> {
    let reported = catch_unwind(AssertUnwindSafe(report));
    let reported = reported.map_err(|panic| {
        // Its drop could panic again.
        mem::forget(panic);
        tracing::error!("the recorder of metrics panicked; one metric is lost");
    });
    reported.ok()
}

fn of_device(device: usize) -> Vec<Label> {
    vec![Label::new("device", device.to_string())]
}

/// The presence of a partition in a stage, as the gauges count it. Its drop lowers the
/// gauges that it raised, even if another recorder was installed since.
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
        let device = device.filter(|_| stage.is_busy());
        let busy = |device| guarded(|| raised(gauge!(DEVICE_BUSY, of_device(device))));
        Self {
            stage,
            partitions: guarded(partitions),
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
            guarded(|| raised.decrement(1));
        }
    }
}

impl std::fmt::Debug for InStage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Debug::fmt(&self.stage, f)
    }
}

#[cfg(test)]
mod tests;
