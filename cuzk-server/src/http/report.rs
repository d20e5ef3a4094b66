//! The status of the engine as the document of `GET /status`.
//!
//! The keys beside `engine` are those of the existing daemon, so that its readers go on.
//! Their times are whole numbers, which every reader takes. `engine` is the engine's own
//! status, and `cluster` is the state of the other machines. The invariant: this is a pure
//! function of both.

use std::collections::BTreeMap;

use cuzk_core::engine::{
    AssetStatus, DeviceStatus, JobStatus, KindTotals, PartitionStatus, Status,
};
use serde::Serialize;

use super::Sources;
use crate::circuit_name::{translated, translated_kind};
use crate::cluster::ClusterStatus;

/// The document of `GET /status`.
#[derive(Serialize)]
pub(super) struct Report<'a> {
    uptime_secs: u64,
    memory: Memory,
    synthesis: Synthesis,
    pipelines: Vec<Pipeline<'a>>,
    gpu_workers: Vec<Worker<'a>>,
    allocations: Allocations,
    counters: Counters,
    buffers: Buffers,
    /// Left out by a daemon that is in no cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<ClusterStatus>,
    engine: &'a Status,
}

#[derive(Serialize)]
struct Memory {
    total_bytes: u64,
    used_bytes: u64,
    available_bytes: u64,
}

#[derive(Serialize)]
struct Synthesis {
    max_concurrent: usize,
    active: usize,
}

#[derive(Serialize)]
struct Pipeline<'a> {
    job_id: String,
    proof_kind: &'a str,
    started_secs_ago: u64,
    total_partitions: usize,
    partitions_done: usize,
    partitions: Vec<Partition>,
}

#[derive(Serialize)]
struct Partition {
    index: usize,
    state: State,
    synth_ms: u64,
    gpu_ms: u64,
}

/// The state of a partition, as the existing daemon names it. A failed partition is tried
/// again or ends its job, so `failed` does not occur.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Pending,
    Synthesizing,
    SynthDone,
    Gpu,
    Done,
}

#[derive(Serialize)]
struct Worker<'a> {
    worker_id: usize,
    gpu_ordinal: usize,
    state: &'static str,
    current_job: Option<&'a str>,
    current_partition: Option<usize>,
    busy_secs: u64,
}

#[derive(Serialize)]
struct Allocations {
    srs: Vec<Allocation>,
    pce: Vec<Allocation>,
}

#[derive(Serialize)]
struct Allocation {
    circuit_id: String,
    bytes: u64,
    last_used_secs_ago: u64,
    evictable: bool,
}

#[derive(Serialize)]
struct Counters {
    total_completed: u64,
    total_failed: u64,
    completed_by_kind: BTreeMap<&'static str, u64>,
    failed_by_kind: BTreeMap<&'static str, u64>,
    queue_depth: usize,
}

/// Buffers of the existing daemon. The last three stand for memory that this engine does
/// not have, so they are always 0.
#[derive(Serialize)]
struct Buffers {
    synth_in_flight: usize,
    provers_in_flight: usize,
    aux_in_flight: usize,
    shells_in_flight: usize,
    pending_handles: usize,
}

/// Returns the document of `GET /status` as text.
#[must_use]
pub fn json(sources: &dyn Sources) -> String {
    let status = sources.status();
    let report = report(&status, sources);
    serde_json::to_string(&report).unwrap_or_default()
}

/// Returns the document of a status.
pub(super) fn report<'a>(status: &'a Status, sources: &dyn Sources) -> Report<'a> {
    let memory = &status.memory;
    let pipelines: Vec<_> = status.jobs.iter().map(Pipeline::of).collect();
    let in_state = |state: State| {
        let partitions = pipelines.iter().flat_map(|pipeline| &pipeline.partitions);
        partitions
            .filter(|partition| partition.state == state)
            .count()
    };
    Report {
        uptime_secs: whole(status.started_s),
        memory: Memory {
            total_bytes: memory.total_bytes,
            used_bytes: memory.used_bytes,
            available_bytes: memory.total_bytes.saturating_sub(memory.used_bytes),
        },
        synthesis: Synthesis {
            max_concurrent: sources.synthesis_workers(),
            active: in_state(State::Synthesizing),
        },
        gpu_workers: status.devices.iter().map(Worker::of).collect(),
        allocations: Allocations::of(&status.assets),
        counters: Counters::of(status),
        buffers: Buffers {
            synth_in_flight: in_state(State::Synthesizing) + in_state(State::SynthDone),
            provers_in_flight: in_state(State::Gpu),
            aux_in_flight: 0,
            shells_in_flight: 0,
            pending_handles: 0,
        },
        pipelines,
        cluster: sources.cluster(),
        engine: status,
    }
}

/// Returns the number of jobs of which no partition has begun.
pub(super) fn queue_depth(status: &Status) -> usize {
    let waits = |job: &&JobStatus| job.state != "running";
    status.jobs.iter().filter(waits).count()
}

impl<'a> Pipeline<'a> {
    fn of(job: &'a JobStatus) -> Self {
        let number = || format!("job-{}", job.number);
        Self {
            job_id: job.id.clone().unwrap_or_else(number),
            proof_kind: translated_kind(job.kind),
            started_secs_ago: whole(job.accepted_s_ago),
            total_partitions: job.partitions,
            partitions_done: job.partitions_done,
            partitions: job.parts.iter().map(Partition::of).collect(),
        }
    }
}

impl Partition {
    fn of(partition: &PartitionStatus) -> Self {
        let milliseconds = |seconds: f64| whole(seconds * 1e3);
        Self {
            index: partition.index,
            state: State::of(partition),
            synth_ms: milliseconds(partition.synthesis_s),
            gpu_ms: milliseconds(partition.device_s),
        }
    }
}

impl State {
    fn of(partition: &PartitionStatus) -> Self {
        if partition.done {
            return Self::Done;
        }
        match partition.stage {
            Some("circuit" | "params" | "witness" | "circuit_witness" | "evaluate") => {
                Self::Synthesizing
            }
            Some("ready_wait") => Self::SynthDone,
            Some(
                "columns" | "prepare" | "staging" | "lock_wait" | "device" | "quotient" | "msm"
                | "finish_wait" | "finish" | "b_g2_wait" | "b_g2" | "assemble" | "verify"
                | "elsewhere" | "dealloc",
            ) => Self::Gpu,
            _ => Self::Pending,
        }
    }
}

impl<'a> Worker<'a> {
    fn of(device: &'a DeviceStatus) -> Self {
        Self {
            worker_id: device.device,
            gpu_ordinal: device.device,
            state: if device.busy_s.is_some() {
                "proving"
            } else {
                "idle"
            },
            current_job: device.job.as_deref(),
            current_partition: device.partition,
            busy_secs: whole(device.busy_s.unwrap_or_default()),
        }
    }
}

impl Allocations {
    fn of(assets: &[AssetStatus]) -> Self {
        let with = |bytes: fn(&AssetStatus) -> u64| {
            let held = assets.iter().filter(|asset| bytes(asset) > 0);
            let allocation = |asset: &AssetStatus| Allocation {
                circuit_id: translated(&asset.circuit),
                bytes: bytes(asset),
                last_used_secs_ago: whole(asset.idle_s.unwrap_or_default()),
                evictable: asset.uses == 0,
            };
            held.map(allocation).collect()
        };
        Self {
            srs: with(|asset| asset.parameter_bytes),
            pce: with(|asset| asset.circuit_bytes),
        }
    }
}

impl Counters {
    fn of(status: &Status) -> Self {
        let totals = &status.totals;
        let by_kind = |count: fn(&KindTotals) -> u64| -> BTreeMap<_, _> {
            let counted = totals
                .iter()
                .map(|of_kind| (translated_kind(of_kind.kind), count(of_kind)));
            counted.filter(|&(_, count)| count > 0).collect()
        };
        Self {
            total_completed: totals.iter().map(|of_kind| of_kind.proved).sum(),
            total_failed: totals.iter().map(|of_kind| of_kind.failed).sum(),
            completed_by_kind: by_kind(|of_kind| of_kind.proved),
            failed_by_kind: by_kind(|of_kind| of_kind.failed),
            queue_depth: queue_depth(status),
        }
    }
}

/// Returns a number rounded down; 0 for one that is negative or no number.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the conversion saturates, and that is what is wanted"
)]
fn whole(number: f64) -> u64 {
    number as u64
}
