//! What the engine does at one moment, for people and for monitoring.

use serde::Serialize;

use super::shared::Shared;

/// What an engine does at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Status {
    /// Partitions that wait for their turn.
    pub partitions_waiting: usize,
    /// Partitions between their turn and their proof.
    pub partitions_running: usize,
    /// The jobs that have not ended, the oldest first.
    pub jobs: Vec<JobStatus>,
    /// The devices, and then what stands in for them.
    pub devices: Vec<DeviceStatus>,
    /// Circuits for which multiples of the parameters' points are looked at or made in
    /// the background, the one in work in front.
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
    /// What it proves.
    pub circuit: String,
    /// How urgent it is.
    pub priority: &'static str,
    /// Partitions proved.
    pub partitions_done: usize,
    /// All its partitions.
    pub partitions: usize,
}

/// What is known of a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeviceStatus {
    /// Its index in the timeline.
    pub device: usize,
    /// What proves on it.
    pub backend: &'static str,
    /// What it is for.
    pub role: &'static str,
    /// Whether it gets no work, because it failed too often.
    pub quarantined: bool,
    /// Partitions it proved.
    pub proved: u64,
    /// Partitions it failed to prove.
    pub faults: u64,
    /// What went wrong last.
    pub last_fault: Option<String>,
}

/// The memory of an engine, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MemoryStatus {
    /// What it may use.
    pub total_bytes: u64,
    /// What it has reserved.
    pub used_bytes: u64,
    /// The part of that that goes when someone needs it: circuits nobody uses.
    pub idle_bytes: u64,
    /// Memory kept for the next partition, beside what is reserved.
    pub kept_bytes: u64,
    /// Such memory that is in use: a part of what is reserved.
    pub pool_bytes: u64,
    /// How often memory was mapped because none was kept that suited.
    pub mappings: u64,
}

impl Shared {
    pub(super) fn status(&self) -> Status {
        let usage = self.admission.usage();
        let pool = self.buffers.usage();
        let jobs = self.registry.all_live();
        Status {
            partitions_waiting: usage.waiting,
            partitions_running: usage.running,
            jobs: jobs
                .iter()
                .map(|state| {
                    let progress = state.progress();
                    JobStatus {
                        number: state.number(),
                        id: state.id().map(str::to_owned),
                        circuit: state.circuit().to_string(),
                        priority: state.priority().name(),
                        partitions_done: progress.partitions_done,
                        partitions: progress.partitions,
                    }
                })
                .collect(),
            devices: self.device_status(),
            making_multiples: self.upkeep.asked(),
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

    fn device_status(&self) -> Vec<DeviceStatus> {
        self.stations
            .all()
            .map(|(device, role, station)| {
                let report = station.health.report();
                DeviceStatus {
                    device,
                    backend: station.device.backend.name(),
                    role,
                    quarantined: report.quarantined,
                    proved: report.good,
                    faults: report.faults,
                    last_fault: report.last_fault,
                }
            })
            .collect()
    }
}
