//! The metrics that the existing daemon exports, under its names, and the build.
//!
//! Dashboards that were made for it go on. Two of its names have no unit or suffix that
//! Prometheus' rules ask for; they are as they are. The invariant: every family is made of
//! the status and of what was recorded, and counts nothing itself.

use std::collections::BTreeMap;

use cuzk_core::engine::{KindTotals, Status};
use cuzk_core::metrics::JOB_SECONDS;

use super::family::Family;
use crate::circuit_name::translated_kind;
use crate::http::report::queue_depth;

/// Returns the families of the status. `recorded` is the recorder's text, which has the
/// times of all jobs.
pub(super) fn families(status: &Status, recorded: &str) -> Vec<Family> {
    let total = |count: fn(&KindTotals) -> u64| {
        let total: u64 = status.totals.iter().map(count).sum();
        total as f64
    };
    let running = status.jobs.len() - queue_depth(status);
    let version = format!("{{version=\"{}\"}}", env!("CARGO_PKG_VERSION"));
    vec![
        Family::new("cuzk_build_info", "gauge", "The build; the value is 1").with(version, 1.0),
        Family::gauge(
            "cuzk_uptime_seconds",
            "Time since the engine started",
            status.started_s,
        ),
        Family::gauge(
            "cuzk_draining",
            "1 while the engine begins no new work of low or normal priority",
            f64::from(u8::from(status.draining)),
        ),
        Family::new("cuzk_proofs_completed_total", "counter", "Jobs proved")
            .with(String::new(), total(|of_kind| of_kind.proved)),
        Family::new("cuzk_proofs_failed_total", "counter", "Jobs failed")
            .with(String::new(), total(|of_kind| of_kind.failed)),
        Family::gauge(
            "cuzk_queue_depth",
            "Jobs of which no partition has begun",
            queue_depth(status) as f64,
        ),
        by_kind(
            "cuzk_proofs_completed",
            "Jobs proved, by kind",
            status,
            |of_kind| of_kind.proved,
        ),
        by_kind(
            "cuzk_proofs_failed",
            "Jobs failed, by kind",
            status,
            |of_kind| of_kind.failed,
        ),
        durations(recorded),
        Family::gauge(
            "cuzk_running_jobs",
            "Jobs of which a partition has begun",
            running as f64,
        ),
        Family::gauge(
            "cuzk_gpu_workers",
            "Devices, with the workers that stand in for them",
            status.devices.len() as f64,
        ),
    ]
}

fn by_kind(
    name: &'static str,
    help: &'static str,
    status: &Status,
    count: fn(&KindTotals) -> u64,
) -> Family {
    let family = Family::new(name, "counter", help);
    let totals = status.totals.iter();
    totals.fold(family, |family, of_kind| {
        let labels = format!("{{proof_kind=\"{}\"}}", translated_kind(of_kind.kind));
        family.with(labels, count(of_kind) as f64)
    })
}

/// Returns the sums and counts of the times of proved jobs, which the recorder has.
fn durations(recorded: &str) -> Family {
    let mut samples = BTreeMap::new();
    for line in recorded.lines() {
        let Some(sample) = line.strip_prefix(JOB_SECONDS) else {
            continue;
        };
        let Some((suffix, rest)) = sample.split_once('{') else {
            continue;
        };
        let Some((labels, value)) = rest.rsplit_once("} ") else {
            continue;
        };
        if !matches!(suffix, "_sum" | "_count") || !labels.contains("outcome=\"proved\"") {
            continue;
        }
        let label = labels
            .split(',')
            .find_map(|label| label.strip_prefix("kind=\""));
        let kind = label.and_then(|label| label.strip_suffix('"'));
        if let (Some(kind), Ok(value)) = (kind, value.parse::<f64>()) {
            let labels = format!("{suffix}{{proof_kind=\"{}\"}}", translated_kind(kind));
            samples.insert(labels, value);
        }
    }
    let name = "cuzk_proof_duration_seconds";
    let family = Family::new(name, "summary", "Time from accepting a job to its proof");
    let add = |family: Family, (labels, value)| family.with(labels, value);
    samples.into_iter().fold(family, add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_those_of_proved_jobs() {
        let recorded = "# TYPE cuzk_job_seconds histogram\n\
            cuzk_job_seconds_bucket{kind=\"porep\",outcome=\"proved\",le=\"+Inf\"} 2\n\
            cuzk_job_seconds_sum{kind=\"porep\",outcome=\"proved\"} 4.5\n\
            cuzk_job_seconds_count{kind=\"porep\",outcome=\"proved\"} 2\n\
            cuzk_job_seconds_count{kind=\"porep\",outcome=\"failed\"} 7\n";
        let mut text = String::new();
        durations(recorded).write(&mut text);
        let samples: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let expected = [
            "cuzk_proof_duration_seconds_count{proof_kind=\"porep-c2\"} 2",
            "cuzk_proof_duration_seconds_sum{proof_kind=\"porep-c2\"} 4.5",
            "",
        ];
        assert_eq!(samples, expected);
    }
}
