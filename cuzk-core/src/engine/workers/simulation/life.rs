//! One life of an engine, from its start until it is killed: its services, and the hands of
//! its workers.
//!
//! Not the order of their steps, which is the run's. The invariant: a worker has at most
//! one attempt in its hands.

use std::iter::repeat_with;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cuzk_groth16::backend::{Pending, Synthesized};
use cuzk_scheduler::admission::Lane;
use rand::Rng;

use super::bench::Bench;
use super::device::{Deed, SimulatedDevice};
use super::disk::SimulatedDisk;
use super::footprints::footprint;
use super::request::Request;
use crate::config::Config;
use crate::engine::attempt::{AdmittedAttempt, Attempt, FinishingAttempt, SynthesizedAttempt};
use crate::engine::core::Core;
use crate::engine::jobs::recorder::JobRecorder;
use crate::engine::jobs::waiting::WaitingJob;
use crate::engine::workers::device::StartCall;
use crate::engine::workers::finish::FinishCall;
use crate::engine::workers::resume::find_left;
use crate::engine::workers::watchdog::LostWorkers;

const MIB: u64 = 1 << 20;

/// The lanes of the dedicated workers.
pub(super) const DEDICATED: [Lane; 2] = [Lane::Critical, Lane::Retry];

/// A device region that runs.
pub(super) struct Region {
    pub(super) call: StartCall,
    pub(super) synthesized: Synthesized,
    pub(super) deed: Deed,
    pub(super) began: Instant,
    /// The time of the answer; none if there is none until the run's end.
    pub(super) answers: Option<Instant>,
}

/// A device worker.
pub(super) enum DeviceWorker {
    Idle,
    InRegion(Box<Region>),
    /// It waits for room before the finish workers.
    Holds(Box<FinishingAttempt>),
}

/// A finish that runs.
pub(super) struct Finish {
    pub(super) call: FinishCall,
    pub(super) pending: Box<dyn Pending>,
    pub(super) began: Instant,
    pub(super) answers: Option<Instant>,
}

/// An engine that lives, without threads.
pub(super) struct Life {
    pub(super) core: Arc<Core>,
    pub(super) recorder: Arc<JobRecorder>,
    pub(super) devices: Vec<Arc<SimulatedDevice>>,
    /// The devices of the dedicated workers.
    pub(super) own_devices: [Arc<SimulatedDevice>; 2],
    /// The attempt that each synthesis worker holds while it waits for room before the
    /// devices.
    pub(super) synthesis: Vec<Option<Box<SynthesizedAttempt>>>,
    pub(super) dedicated: [Option<Box<AdmittedAttempt>>; 2],
    /// The workers of the devices, each with the number of its device.
    pub(super) regions: Vec<(usize, DeviceWorker)>,
    /// The finish workers. One whose device was given up ends with the answer.
    pub(super) finishes: Vec<Option<Box<Finish>>>,
    pub(super) lost: LostWorkers,
    /// The job that is taken out of the journal, and whether its wait is logged.
    pub(super) resumed: Option<(WaitingJob, bool)>,
}

/// The sizes of an engine.
#[derive(Clone, Debug)]
pub(super) struct Sizes {
    pub(super) config: Config,
    devices: usize,
    are_this_cpu: bool,
    /// True if what is evicted has to be loaded anew, which takes longer than a whole run.
    pub(super) evicts: bool,
}

impl Sizes {
    /// Returns the sizes of a run; one that `evicts` loads circuits anew.
    pub(super) fn random(bench: &Bench, rng: &mut impl Rng, evicts: bool) -> Self {
        let mut config = bench.config.clone();
        let s = Duration::from_secs;
        config.synthesis.partition_workers = rng.gen_range(1..=2);
        config.pipeline.synthesis_lookahead = rng.gen_range(1..=2);
        config.pipeline.finish_workers = rng.gen_range(1..=2);
        config.gpus.gpu_workers_per_device = rng.gen_range(1..=2);
        config.gpus.faults_max = rng.gen_range(1..=3);
        (config.gpus.stall, config.gpus.rest) = (s(60), s(30));
        config.jobs.queued_partitions = rng.gen_range(3..=12);
        config.jobs.results_kept = rng.gen_range(1..=4);
        config.memory.total_budget_bytes = [400, 700, 4000][rng.gen_range(0..3)] * MIB;
        config.memory.safety_margin_bytes = MIB;
        config.memory.critical_reserve_bytes = [0, 200][rng.gen_range(0..2)] * MIB;
        Self {
            config,
            devices: rng.gen_range(1..=3),
            are_this_cpu: rng.gen_ratio(1, 4),
            evicts,
        }
    }

    /// Returns the sizes of an engine that has room and memory for all that a test asks of it.
    pub(super) fn plenty(bench: &Bench, devices: usize, are_this_cpu: bool) -> Self {
        let mut config = bench.config.clone();
        let s = Duration::from_secs;
        config.synthesis.partition_workers = 1;
        config.pipeline.synthesis_lookahead = 2;
        config.pipeline.finish_workers = 2;
        config.gpus.gpu_workers_per_device = 1;
        config.gpus.faults_max = 1;
        (config.gpus.stall, config.gpus.rest) = (s(60), s(30));
        config.jobs.queued_partitions = 100;
        config.memory.total_budget_bytes = 4000 * MIB;
        config.memory.safety_margin_bytes = MIB;
        config.memory.critical_reserve_bytes = 0;
        Self {
            config,
            devices,
            are_this_cpu,
            evicts: false,
        }
    }
}

impl Life {
    /// Starts an engine on what is on the disk.
    pub(super) fn start(bench: &Bench, sizes: &Sizes, disk: &SimulatedDisk) -> Self {
        let config = sizes.config.clone();
        let devices = || SimulatedDevice::new(bench, sizes.are_this_cpu);
        let devices: Vec<_> = repeat_with(devices).take(sizes.devices).collect();
        let of_fleet = devices.iter().map(SimulatedDevice::device).collect();
        let own_devices = [(); 2].map(|()| SimulatedDevice::new(bench, true));
        let pool = Arc::clone(&bench.pool);
        let decoder = Arc::new(Request::decode);
        let mut core = Core::new(config.clone(), pool, of_fleet, decoder).unwrap();
        let stays = !sizes.evicts;
        core.assets.share(&bench.circuits, &bench.params, stays);
        core.assets.costs.footprint_of = footprint;
        core.compute.share_synthesis_pool();
        core.fleet.dedicate(
            own_devices.each_ref().map(SimulatedDevice::device),
            &bench.pool,
        );
        core.jobs.record_in(JobRecorder::of(Box::new(disk.clone())));
        // Only that there is one is asked.
        core.config.jobs.journal = Some("simulated".into());
        let recorder = core.jobs.recorder().unwrap();
        find_left(&core, &recorder).unwrap();
        let workers = config.gpus.gpu_workers_per_device;
        let of_device = |device| (0..workers).map(move |_| (device, DeviceWorker::Idle));
        let synthesis = repeat_with(|| None).take(config.synthesis.partition_workers);
        let finishes = repeat_with(|| None).take(config.pipeline.finish_workers);
        Self {
            core: Arc::new(core),
            recorder,
            regions: (0..devices.len()).flat_map(of_device).collect(),
            devices,
            own_devices,
            synthesis: synthesis.collect(),
            dedicated: [None, None],
            finishes: finishes.collect(),
            lost: LostWorkers::default(),
            resumed: None,
        }
    }

    /// Calls `visit` with each attempt that is in a worker's hands and goes on from there.
    /// That of a device that was given up does not.
    pub(super) fn visit_in_hands(&self, mut visit: impl FnMut(&Attempt)) {
        let synthesized = self.synthesis.iter().flatten();
        synthesized.for_each(|ready| visit(&ready.attempt));
        let admitted = self.dedicated.iter().flatten();
        admitted.for_each(|admitted| visit(&admitted.attempt));
        let watchdog = &self.core.fleet.watchdog;
        for (_, worker) in &self.regions {
            match worker {
                DeviceWorker::InRegion(region) if watchdog.is_awaited(region.call.key) => {
                    visit(&region.call.attempt);
                }
                DeviceWorker::Holds(finishing) => visit(&finishing.attempt),
                DeviceWorker::InRegion(_) | DeviceWorker::Idle => {}
            }
        }
        let finishes = self.finishes.iter().flatten();
        let finishes = finishes.filter(|finish| watchdog.is_awaited(finish.call.key));
        finishes.for_each(|finish| visit(&finish.call.attempt));
    }

    /// Returns true if no worker has anything in its hands.
    pub(super) fn is_at_rest(&self) -> bool {
        let are_idle = |(_, worker): &(usize, DeviceWorker)| matches!(worker, DeviceWorker::Idle);
        self.synthesis.iter().all(Option::is_none)
            && self.dedicated.iter().all(Option::is_none)
            && self.regions.iter().all(are_idle)
            && self.finishes.iter().all(Option::is_none)
            && self.resumed.is_none()
    }
}
