//! The jobs that ended, as a status shows them.
//!
//! Not their proofs. The invariant: a status shows a bounded number of them.

use cuzk_filecoin::ProofKind;
use serde::Serialize;

use crate::engine::jobs::ended::{EndedJobs, EndedRecord};
use crate::job::JobTimes;

/// A job that has ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EndedJob {
    /// Its number in the timeline.
    pub number: u64,
    /// The caller's name for it.
    pub id: Option<String>,
    /// The circuit of its partitions.
    pub circuit: String,
    /// The name of its kind.
    pub kind: &'static str,
    /// `proved`, `failed`, `cancelled` or `shut_down`.
    pub outcome: &'static str,
    /// The error, if it was not proved.
    pub error: Option<String>,
    /// The time since its end, in seconds.
    pub ended_s_ago: f64,
    /// Where its time went.
    #[serde(flatten)]
    pub times: JobSeconds,
}

/// The times of a job in seconds. See [`JobTimes`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct JobSeconds {
    /// From acceptance to the first work.
    pub queue_wait_s: f64,
    /// Loading the circuit and the parameters.
    pub srs_load_s: f64,
    /// Witnesses and their evaluation.
    pub synthesis_s: f64,
    /// Transforms and MSMs.
    pub device_s: f64,
    /// From acceptance to the end.
    pub total_s: f64,
}

/// How many jobs of a kind ended since the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct KindTotals {
    /// The name of the kind.
    pub kind: &'static str,
    /// Jobs that were proved.
    pub proved: u64,
    /// Jobs that failed.
    pub failed: u64,
    /// Jobs that were cancelled.
    pub cancelled: u64,
}

impl From<JobTimes> for JobSeconds {
    fn from(times: JobTimes) -> Self {
        Self {
            queue_wait_s: times.queue_wait.as_secs_f64(),
            srs_load_s: times.srs_load.as_secs_f64(),
            synthesis_s: times.synthesis.as_secs_f64(),
            device_s: times.device.as_secs_f64(),
            total_s: times.total.as_secs_f64(),
        }
    }
}

pub(super) fn last(ended: &EndedJobs) -> Vec<EndedJob> {
    ended.last().iter().map(|record| shown(record)).collect()
}

fn shown(record: &EndedRecord) -> EndedJob {
    EndedJob {
        number: record.number,
        id: record.id.clone(),
        circuit: record.circuit.to_string(),
        kind: record.circuit.kind.name(),
        outcome: record.outcome.name(),
        error: record.error.clone(),
        ended_s_ago: record.at.elapsed().as_secs_f64(),
        times: record.times.into(),
    }
}

pub(super) fn totals(ended: &EndedJobs) -> Vec<KindTotals> {
    let totals = ProofKind::ALL.into_iter().zip(ended.totals());
    let totals = totals.map(|(kind, totals)| KindTotals {
        kind: kind.name(),
        proved: totals.proved,
        failed: totals.failed,
        cancelled: totals.cancelled,
    });
    totals.collect()
}
