//! The most that one machine can do, and the configuration that does it.
//!
//! Not a load: requests are always there. The invariant: configurations are compared by
//! runs of the model alone.

use serde::Serialize;

use crate::PlanError;
use crate::contention::Interference;
use crate::kind::{Kind, SectorSize};
use crate::load::DAY_S;
use crate::machine::Machine;
use crate::outcome::Outcome;
use crate::pipeline::simulate;
use crate::run::{Request, Run};

/// The requests of a run: enough that its middle half is a full pipeline.
const REQUESTS: usize = 48;

/// The numbers of partition workers that are tried. Workers of a device are one or two:
/// the inputs of a third have no room in a card's memory.
const WORKERS: [u32; 14] = [1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 20, 24, 32];

/// A configuration with fewer workers is preferred to one that is this much faster.
const WORTH: f64 = 1.01;

/// The most that a machine can do of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Capacity {
    /// The kind.
    pub kind: Kind,
    /// The time of a proof in a full pipeline, in seconds.
    pub s_per_proof: f64,
    /// The proofs of a day.
    pub proofs_per_day: f64,
    /// The time of a proof alone on the machine, in seconds.
    pub alone_s: f64,
    /// How busy each resource is in a full pipeline.
    pub utilisation: Utilisation,
}

/// The share of time in which each resource is busy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Utilisation {
    /// The hardware threads.
    pub cores: f64,
    /// The bandwidth of the memory.
    pub memory_bandwidth: f64,
    /// The synthesis workers, with their waits for a device.
    pub synthesis_workers: f64,
    /// The part of them that waits for a device.
    pub waits_for_device: f64,
    /// The devices, with one partition or more.
    pub devices: f64,
    /// The devices' locks.
    pub device_locks: f64,
    /// The time in which a worker is idle, and work waits for memory.
    pub waits_for_memory: f64,
}

impl Utilisation {
    /// Returns the utilisation of `machines` machines during `seconds`.
    #[must_use]
    pub fn new(machine: &Machine, outcome: &Outcome, machines: f64, seconds: f64) -> Self {
        let busy = &outcome.busy;
        let share = |busy_s: f64, count: f64| busy_s / (count * machines * seconds).max(1e-9);
        let workers = f64::from(machine.engine.partition_workers);
        let devices = f64::from(machine.gpus.count.max(1));
        Self {
            cores: share(busy.used.thread_s, f64::from(machine.cpu.hardware_threads)),
            memory_bandwidth: share(busy.used.gb, machine.memory.bandwidth_gb_per_s),
            synthesis_workers: share(busy.synthesis_s + busy.blocked_s, workers),
            waits_for_device: share(busy.blocked_s, workers),
            devices: share(busy.devices_s, devices),
            device_locks: share(busy.locked_s, devices),
            waits_for_memory: share(busy.memory_wait_s, 1.0),
        }
    }
}

impl Capacity {
    /// Returns the capacity of `machine` as it is configured.
    ///
    /// # Errors
    /// As [`simulate`].
    pub fn new(machine: &Machine, kind: Kind, size: SectorSize) -> Result<Self, PlanError> {
        let full = closed(machine, kind, size, (REQUESTS, REQUESTS))?;
        let s_per_proof = full.steady_s_per_proof();
        Ok(Self {
            kind,
            s_per_proof,
            proofs_per_day: DAY_S / s_per_proof.max(1e-9),
            alone_s: closed(machine, kind, size, (1, 1))?.s_per_proof(),
            utilisation: Utilisation::new(machine, &full, 1.0, full.end_s),
        })
    }
}

/// Returns the outcome of `count` requests, of which `in_flight` are there at a time.
///
/// # Errors
/// As [`simulate`].
pub fn closed(
    machine: &Machine,
    kind: Kind,
    size: SectorSize,
    (count, in_flight): (usize, usize),
) -> Result<Outcome, PlanError> {
    let run = Run {
        size,
        in_flight,
        interference: Interference::Real,
        group: 1,
    };
    let request = Request { kind, asked_s: 0.0 };
    simulate(machine, &[kind], run, std::iter::repeat_n(request, count))
}

/// Returns `machine` with the configuration that does most of one kind.
///
/// # Errors
/// As [`simulate`], if the machine cannot do this kind at all.
pub fn recommend(machine: &Machine, kind: Kind, size: SectorSize) -> Result<Machine, PlanError> {
    let mut best = machine.clone();
    let mut best_s = pace(&best, kind, size)?;
    for partition_workers in WORKERS {
        for workers_per_device in [1, 2] {
            for gpu_threads in gpu_threads(machine) {
                let mut tried = machine.clone();
                tried.engine.partition_workers = partition_workers;
                tried.engine.workers_per_device = workers_per_device;
                tried.engine.gpu_threads = gpu_threads;
                let tried_s = pace(&tried, kind, size)?;
                let fewer = partition_workers < best.engine.partition_workers;
                let is_better = tried_s * WORTH < best_s || (fewer && tried_s <= best_s * WORTH);
                if is_better {
                    (best, best_s) = (tried, tried_s.min(best_s));
                }
            }
        }
    }
    Ok(best)
}

/// Returns the time of a proof in a full pipeline, in seconds.
///
/// # Errors
/// As [`simulate`].
pub fn pace(machine: &Machine, kind: Kind, size: SectorSize) -> Result<f64, PlanError> {
    let full = closed(machine, kind, size, (REQUESTS, REQUESTS))?;
    Ok(full.steady_s_per_proof())
}

/// Returns the numbers of threads that are tried for the MSM in G2.
fn gpu_threads(machine: &Machine) -> Vec<u32> {
    let all = machine.cpu.hardware_threads;
    if machine.gpus.count == 0 || all < 8 {
        return vec![machine.engine.gpu_threads];
    }
    vec![0, all / 6, all / 3]
}
