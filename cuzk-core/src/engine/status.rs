//! The state of an engine at one moment, for people and for monitoring.

use serde::Serialize;

use super::core::Core;
use super::fleet::{DeviceSlot, Fleet};
use crate::job::JobState;

/// The state of an engine at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Status {
    /// Partitions that wait for their turn.
    pub partitions_waiting: usize,
    /// Partitions between their turn and their proof.
    pub partitions_running: usize,
    /// The jobs that have not ended, the oldest first.
    pub jobs: Vec<JobStatus>,
    /// The devices, and then the dedicated workers that stand in for them.
    pub devices: Vec<DeviceStatus>,
    /// Circuits whose multiples of the parameters' points are checked or made in the
    /// background. The circuit in work is in front.
    pub making_multiples: Vec<String>,
    /// The memory.
    pub memory: MemoryStatus,
}

/// A job that has not ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JobStatus {
    /// Its number in the timeline.
    pub number: u64,
    /// The caller's name for it.
    pub id: Option<String>,
    /// The circuit of its partitions.
    pub circuit: String,
    /// Its priority.
    pub priority: &'static str,
    /// Partitions proved.
    pub partitions_done: usize,
    /// All its partitions.
    pub partitions: usize,
}

/// The state of a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeviceStatus {
    /// Its index in the timeline.
    pub device: usize,
    /// The backend that proves on it.
    pub backend: &'static str,
    /// Its role: `device`, `critical` or `retry`.
    pub role: &'static str,
    /// True if it gets no work, because it failed too often.
    pub quarantined: bool,
    /// Partitions it proved.
    pub proved: u64,
    /// Partitions it failed to prove.
    pub faults: u64,
    /// Its last fault.
    pub last_fault: Option<String>,
}

/// The memory of an engine, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MemoryStatus {
    /// The memory that it may use.
    pub total_bytes: u64,
    /// The memory that it has reserved.
    pub used_bytes: u64,
    /// The part of `used_bytes` that is given up when memory is needed: circuits that
    /// nobody uses.
    pub idle_bytes: u64,
    /// Memory that is kept for the next partition, beside `used_bytes`.
    pub kept_bytes: u64,
    /// Memory of the same pool that is in use: a part of `used_bytes`.
    pub pool_bytes: u64,
    /// How often memory was mapped because no kept memory suited.
    pub mappings: u64,
}

impl Status {
    /// Returns the state of `core` now.
    pub(super) fn of(core: &Core) -> Self {
        let usage = core.dispatch.usage();
        let pool = core.compute.buffers.usage();
        let jobs = core.jobs.registry.all_live();
        Self {
            partitions_waiting: usage.waiting,
            partitions_running: usage.running,
            jobs: jobs.iter().map(|job| JobStatus::of(job)).collect(),
            devices: DeviceStatus::all(&core.fleet),
            making_multiples: core.assets.multiples.asked(),
            memory: MemoryStatus {
                total_bytes: usage.total_bytes,
                used_bytes: usage.used_bytes,
                idle_bytes: usage.idle_bytes,
                kept_bytes: pool.kept_bytes,
                pool_bytes: pool.in_use_bytes,
                mappings: pool.mappings,
            },
        }
    }
}

impl JobStatus {
    fn of(job: &JobState) -> Self {
        let progress = job.progress();
        Self {
            number: job.number(),
            id: job.id().map(str::to_owned),
            circuit: job.circuit().to_string(),
            priority: job.priority().name(),
            partitions_done: progress.partitions_done,
            partitions: progress.partitions,
        }
    }
}

impl DeviceStatus {
    fn all(fleet: &Fleet) -> Vec<Self> {
        let of = |(device, role, slot): (usize, &'static str, &DeviceSlot)| {
            let report = slot.health.report();
            Self {
                device,
                backend: slot.device.backend.name(),
                role,
                quarantined: report.quarantined,
                proved: report.good,
                faults: report.faults,
                last_fault: report.last_fault,
            }
        };
        fleet.slots().map(of).collect()
    }
}
