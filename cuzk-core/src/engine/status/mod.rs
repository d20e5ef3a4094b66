//! The state of an engine at one moment, for people and for monitoring.
//!
//! Not the state itself: these are copies, and no lock is held while they are read. The
//! invariant: a status of many jobs takes each lock of the engine a few times, and the lock
//! of a job once or twice.

mod assets;
mod devices;
mod ended;
mod job;

use serde::Serialize;

use self::job::Survey;
use super::core::Core;

pub use self::assets::AssetStatus;
pub use self::devices::DeviceStatus;
pub use self::ended::{EndedJob, JobSeconds, KindTotals};
pub use self::job::{JobStatus, PartitionStatus};

/// The state of an engine at one moment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Status {
    /// The time since the engine was started, in seconds.
    pub started_s: f64,
    /// True if no partition of a job of priority normal or low is begun.
    pub draining: bool,
    /// Partitions that wait for their turn.
    pub partitions_waiting: usize,
    /// Partitions between their turn and their proof.
    pub partitions_running: usize,
    /// The jobs that have not ended, the oldest first.
    pub jobs: Vec<JobStatus>,
    /// The last jobs that ended, the newest first, and behind them failed ones that ended
    /// before.
    pub ended: Vec<EndedJob>,
    /// How many jobs of each kind ended since the start.
    pub totals: Vec<KindTotals>,
    /// The devices, and then the dedicated workers that stand in for them.
    pub devices: Vec<DeviceStatus>,
    /// The circuits that are loaded, by name.
    pub assets: Vec<AssetStatus>,
    /// Circuits whose multiples of the parameters' points are checked or made in the
    /// background. The circuit in work is in front.
    pub making_multiples: Vec<String>,
    /// The memory.
    pub memory: MemoryStatus,
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
        let usage = core.dispatch.admission.usage();
        let pool = core.compute.buffers.usage();
        let live = core.jobs.registry.all_live();
        let survey = Survey::of(core, usage);
        Self {
            started_s: core.timeline.epoch().elapsed().as_secs_f64(),
            draining: core.dispatch.is_draining(),
            partitions_waiting: usage.waiting,
            partitions_running: usage.running,
            jobs: live.iter().map(|job| survey.job(job)).collect(),
            ended: ended::last(&core.jobs.ended),
            totals: ended::totals(&core.jobs.ended),
            devices: devices::all(&core.fleet, &live),
            assets: assets::all(core),
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
