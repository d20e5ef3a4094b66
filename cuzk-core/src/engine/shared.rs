//! What the threads of an engine share, and where things are looked up.
//!
//! Not a thread and not a queue of its own. The invariant: whatever grows with
//! the work (circuits, vectors) is charged to admission before it is made.

use std::collections::HashMap;
use std::sync::atomic::AtomicI32;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use bellperson::groth16::PreparedVerifyingKey;
use blstrs::Bls12;
use cuzk_journal::Journal;
use cuzk_scheduler::admission::{Admission, Lane, Limits, Need, Refused};
use cuzk_scheduler::estimate::Estimates;
use cuzk_scheduler::health::Health;
use cuzk_scheduler::pause::Pause;
use cuzk_scheduler::priority::{Priority, Rank};
use cuzk_scheduler::queue::Queue;
use cuzk_scheduler::turnstile::Turnstile;
use rayon::ThreadPool;
use supraseal_sys::{GpuResources, set_gpu_threads};

use super::journal;
use super::registry::Registry;
use super::task::{Finishing, PartitionCheckpoint, Ready, Task};
use super::watch::Watch;
use super::{Decoder, Ends, proves_on_cpu};
use crate::backend::{CpuBackend, Device};
use crate::circuit::{Circuit, Circuits};
use crate::config::Config;
use crate::config::available_memory_bytes;
use crate::job::JobState;
use crate::kinds::CircuitId;
use crate::memory::buffer::BufferPool;
use crate::memory::footprint::{READING_BYTES, buffer_bytes, circuit_bytes, partition_bytes};
use crate::metrics::{self, Evicted, Outcome};
use crate::params::{LoadedParams, ParamCache, ParamsError};
use crate::pipeline::SynthesisResources;
use crate::timeline::Timeline;
use crate::verify::VerifiedProof;
use crate::{Error, Result};

/// What the threads of an engine share.
pub(super) struct Shared {
    pub(super) config: Config,
    pub(super) timeline: Timeline,
    pub(super) buffers: Arc<BufferPool>,
    pub(super) admission: Admission<Task, CircuitId>,
    pub(super) ready: Queue<Ready>,
    pub(super) finishing: Queue<Finishing>,
    pub(super) pause: Arc<Pause>,
    pub(super) decoding: Turnstile,
    pub(super) estimates: Estimates<CircuitId>,
    pub(super) decoder: Decoder,
    pub(super) registry: Registry,
    pub(super) journal: Option<Arc<Journal>>,
    pub(super) watch: Watch,
    /// The devices. After them are counted the critical and the retry worker's
    /// stations.
    pub(super) stations: Vec<Station>,
    solos: [OnceLock<Option<Solo>>; 2],
    pool: Arc<ThreadPool>,
    circuits: Circuits,
    params: ParamCache,
    /// What a partition of each circuit needs, once the circuit was read.
    needs: Mutex<HashMap<CircuitId, Need<CircuitId>>>,
}

/// A device, and what is known of it.
pub(super) struct Station {
    pub(super) device: Device,
    pub(super) health: Health,
}

/// The CPU as one worker's own: work on it neither waits for others' work nor
/// stands still with it.
pub(super) struct Solo {
    pub(super) station: Station,
    pub(super) pool: Arc<ThreadPool>,
}

impl Solo {
    fn new(config: &Config) -> Result<Self> {
        let pool = Arc::new(config.synthesis.pool()?);
        let resources = Arc::new(GpuResources::new().map_err(cannot_start)?);
        let backend = CpuBackend::new(Arc::clone(&resources), Arc::clone(&pool));
        let device = Device {
            resources,
            backend: Arc::new(backend.with_isa(config.cpu.isa)),
        };
        let health = Health::new(config.gpus.faults_max);
        let station = Station { device, health };
        Ok(Self { station, pool })
    }
}

impl Shared {
    pub(super) fn new(
        config: Config,
        pool: Arc<ThreadPool>,
        devices: Vec<Device>,
        decoder: Decoder,
    ) -> Result<Self> {
        let gpu_threads = u32::try_from(config.gpus.gpu_threads).map_err(cannot_start)?;
        set_gpu_threads(gpu_threads).map_err(cannot_start)?;
        let total_bytes = usable_bytes(&config)?;
        metrics::memory_budget(total_bytes);
        let station = |device| Station {
            device,
            health: Health::new(config.gpus.faults_max),
        };
        let admission = Admission::new(Limits {
            capacity: config.jobs.queued_partitions,
            total_bytes,
            critical_reserve_bytes: config.memory.critical_reserve_bytes.min(total_bytes / 2),
            patience: config.jobs.patience,
        });
        Ok(Self {
            timeline: Timeline::default(),
            buffers: BufferPool::new(config.memory.dealloc, total_bytes),
            admission,
            ready: Queue::new(config.pipeline.synthesis_lookahead),
            finishing: Queue::new(config.pipeline.finish_workers),
            pause: Arc::default(),
            decoding: Turnstile::new(config.synthesis.threads),
            estimates: Estimates::default(),
            registry: Registry::new(config.jobs.results_kept, config.jobs.results_kept_for),
            decoder,
            journal: journal::open(&config.jobs)?,
            watch: Watch::new(config.gpus.stall),
            stations: devices.into_iter().map(station).collect(),
            solos: [const { OnceLock::new() }; 2],
            pool,
            circuits: Circuits::default(),
            params: ParamCache::new(&config.srs.param_cache),
            needs: Mutex::default(),
            config,
        })
    }

    // Stations.

    pub(super) fn critical_station(&self) -> usize {
        self.stations.len()
    }

    pub(super) fn retry_station(&self) -> usize {
        self.stations.len() + 1
    }

    /// A solo worker's station and threads, made when first needed.
    pub(super) fn solo(&self, station: usize) -> Option<&Solo> {
        let solo = self.solos.get(station.checked_sub(self.stations.len())?)?;
        let make = || match Solo::new(&self.config) {
            Ok(solo) => Some(solo),
            Err(error) => {
                tracing::error!(%error, "no threads for partitions out of turn");
                None
            }
        };
        solo.get_or_init(make).as_ref()
    }

    pub(super) fn station(&self, station: usize) -> Option<&Station> {
        match self.stations.get(station) {
            Some(station) => Some(station),
            None => self.solo(station).map(|solo| &solo.station),
        }
    }

    /// The stations there are, with what they are for.
    pub(super) fn every_station(&self) -> impl Iterator<Item = (usize, &'static str, &Station)> {
        let devices = self.stations.iter().map(|station| ("device", station));
        let roles = ["critical", "retry"].into_iter();
        let solos = roles.zip(&self.solos).filter_map(|(role, solo)| {
            let solo = solo.get()?.as_ref()?;
            Some((role, &solo.station))
        });
        let stations = devices.chain(solos).enumerate();
        stations.map(|(index, (role, station))| (index, role, station))
    }

    pub(super) fn has_device(&self) -> bool {
        let mut stations = self.stations.iter();
        stations.any(|station| !station.health.is_quarantined())
    }

    /// Whether a device is left that has not failed to prove it.
    pub(super) fn has_device_for(&self, task: &Task) -> bool {
        let mut stations = self.stations.iter().enumerate();
        stations.any(|(index, station)| {
            !task.tried.contains(&index) && !station.health.is_quarantined()
        })
    }

    /// Whether a device is to prove it: not one that failed to, while there are
    /// others.
    pub(super) fn takes(&self, station: usize, task: &Task) -> bool {
        !task.tried.contains(&station) || !self.has_device_for(task)
    }

    /// Critical work has a worker of its own where its devices are the cores
    /// themselves: there other work can stand still for it. On a GPU it goes
    /// first, which is at most one partition later.
    pub(super) fn lane_of(&self, priority: Priority) -> Lane {
        if priority == Priority::Critical && proves_on_cpu(&self.config) {
            Lane::Critical
        } else {
            Lane::Common
        }
    }

    // What partitions need.

    /// What a partition of this circuit needs, or what reading the circuit does.
    pub(super) fn need(&self, id: CircuitId) -> Need<CircuitId> {
        let known = self.lock_needs().get(&id).cloned();
        known.unwrap_or(Need::own(READING_BYTES))
    }

    pub(super) fn need_of(&self, circuit: &Circuit) -> Need<CircuitId> {
        let need = Need {
            own_bytes: partition_bytes(circuit),
            shared: Some((circuit.id(), circuit_bytes(circuit))),
        };
        self.lock_needs().insert(circuit.id(), need.clone());
        need
    }

    fn lock_needs(&self) -> std::sync::MutexGuard<'_, HashMap<CircuitId, Need<CircuitId>>> {
        self.needs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn circuit(&self, id: CircuitId) -> Result<Arc<Circuit>> {
        let cache = &self.config.srs.param_cache;
        self.circuits.get_or_make(id, || Circuit::cached(id, cache))
    }

    pub(super) fn params(&self, id: CircuitId, circuit: &Circuit) -> Result<Arc<LoadedParams>> {
        let files = id.parameter_files()?;
        Ok(self.params.load(&files, &circuit.query_lengths())?)
    }

    /// Lets go of a circuit that nobody uses, with its parameters.
    pub(super) fn evict(&self, id: CircuitId) {
        let circuit = self.circuits.remove(&id);
        metrics::evicted(Evicted::Circuit);
        if let Ok(files) = id.parameter_files() {
            self.params.evict(&files);
            metrics::evicted(Evicted::Params);
        }
        if let Some(circuit) = circuit {
            for (_, _, station) in self.every_station() {
                station.device.backend.evict(&circuit);
            }
        }
    }

    /// Of the vectors kept from other partitions those give way that this one
    /// will not use and that there is no room for.
    pub(super) fn make_room(&self, circuit: &Circuit) {
        let usage = self.admission.usage();
        let free_bytes = usage.total_bytes.saturating_sub(usage.used_bytes);
        self.buffers.shrink_to(free_bytes + buffer_bytes(circuit));
        metrics::memory_reserved(usage.used_bytes);
        metrics::buffers_kept(self.buffers.kept_bytes());
    }

    /// Parameters that are not there are the caller's to mend, and known before
    /// anything else is done.
    pub(super) fn check_parameters(&self, id: CircuitId) -> Result<()> {
        let files = id.parameter_files()?;
        let paths = [self.params.params_path(&files), self.params.vk_path(&files)];
        match paths.into_iter().find(|path| !path.is_file()) {
            Some(path) => Err(ParamsError::Missing { path }.into()),
            None => Ok(()),
        }
    }

    /// A deadline that cannot be met, as far as is known, is told at once.
    pub(super) fn check_deadline(
        &self,
        id: CircuitId,
        partitions: usize,
        rank: Rank,
        deadline: Duration,
    ) -> Result<()> {
        let live = self.registry.all_live();
        let ahead = live.iter().filter(|state| state.rank() <= rank);
        let ahead = ahead.flat_map(|state| {
            let progress = state.progress();
            let missing = progress.partitions - progress.partitions_done;
            std::iter::repeat_n(state.circuit(), missing)
        });
        let devices = self.stations.len();
        match self.estimates.until_end(&id, partitions, ahead, devices) {
            Some(estimate) if estimate > deadline => Err(Error::TooLate {
                deadline_ms: whole_ms(deadline),
                estimate_ms: whole_ms(estimate),
            }),
            _ => Ok(()),
        }
    }

    // What partitions run on.

    /// The count that b_g2_msm raises. It is the C++ side's own atomic, lent
    /// for as long as the device's resources live. Memory bandwidth is the
    /// machine's, so the first device's throttle stands for all.
    fn throttle(&self) -> Option<&AtomicI32> {
        let first = self.stations.first()?;
        self.config
            .pipeline
            .throttle
            .then(|| first.device.resources.throttle())
    }

    /// What synthesis of `task` runs on: the engine's pool, or a solo worker's.
    pub(super) fn synthesis_resources<'a>(
        &'a self,
        task: &Task,
        solo: Option<&'a Solo>,
    ) -> SynthesisResources<'a> {
        let critical = task.state.priority() == Priority::Critical;
        let checkpoint = PartitionCheckpoint {
            state: Arc::clone(&task.state),
            pause: (!critical).then(|| Arc::clone(&self.pause)),
        };
        SynthesisResources {
            pool: solo.map_or(&self.pool, |solo| &solo.pool),
            buffers: &self.buffers,
            // Who raised it may be standing still for this very partition.
            throttle: self.throttle().filter(|_| !critical),
            checkpoint: Arc::new(checkpoint),
        }
    }

    /// The verifying key of a circuit.
    pub(super) fn verifying_key(&self, id: CircuitId) -> Result<Arc<PreparedVerifyingKey<Bls12>>> {
        Ok(self.params.verifying_key(&id.parameter_files()?)?)
    }

    // How jobs begin and end.

    /// Queues the partitions of a job that are missing.
    pub(super) fn queue(&self, state: &Arc<JobState>) -> Result<()> {
        let tasks = state.missing().into_iter().map(|partition| {
            let task = Task::new(Arc::clone(state), partition);
            (task, self.need(state.circuit()))
        });
        let (priority, since) = (state.priority(), state.accepted());
        let lane = self.lane_of(priority);
        let queued = self
            .admission
            .submit(lane, priority, since, tasks.collect());
        queued.map_err(|refused| match refused {
            Refused::Full => self.busy(),
            Refused::Closed => Error::ShuttingDown,
        })
    }

    /// What cannot be queued now need not be written to the journal first.
    pub(super) fn check_room(&self, partitions: usize) -> Result<()> {
        let waiting = self.admission.usage().waiting;
        if self.admission.is_closed() {
            Err(Error::ShuttingDown)
        } else if waiting + partitions > self.admission.limits().capacity {
            Err(self.busy())
        } else {
            Ok(())
        }
    }

    fn busy(&self) -> Error {
        Error::Busy {
            capacity: self.admission.limits().capacity,
        }
    }

    /// Takes a partition's proof from an earlier life of the engine.
    pub(super) fn restore(&self, state: &Arc<JobState>, partition: usize, proof: VerifiedProof) {
        if state.restore(partition, proof) {
            self.has_ended(state);
        }
    }

    pub(super) fn end_with(&self, state: &Arc<JobState>, error: Error) {
        Ends::end(self, state, error);
    }

    /// Takes the result of a partition.
    pub(super) fn settle(&self, task: &Task, result: Result<VerifiedProof>) {
        if task.state.settle(task.partition, result) {
            self.has_ended(&task.state);
        }
    }

    fn has_ended(&self, state: &Arc<JobState>) {
        self.registry.ended(state);
        let outcome = match state.outcome() {
            Some(Ok(_)) | None => Outcome::Proved,
            Some(Err(error)) => match &*error {
                Error::Cancelled => Outcome::Cancelled,
                Error::ShuttingDown => Outcome::ShutDown,
                _ => Outcome::Failed,
            },
        };
        let kind = state.circuit().kind.name();
        metrics::job_ended(kind, outcome, state.accepted().elapsed());
        self.pause.wake();
        self.drop_ended();
    }

    /// What jobs that have ended still have in queues is of no use any more.
    fn drop_ended(&self) {
        let goes_on = |task: &Task| !task.state.has_ended();
        drop(self.admission.retain(goes_on));
        drop(self.ready.retain(|ready| goes_on(&ready.task)));
    }

    /// To be called after something of a job was queued: the job may have ended,
    /// and the queues been looked through, just before.
    pub(super) fn was_queued(&self, state: &JobState) {
        if state.has_ended() {
            self.drop_ended();
        }
    }
}

impl Ends for Shared {
    fn end(&self, state: &Arc<JobState>, error: Error) -> bool {
        let ended = state.end(Err(Arc::new(error)));
        if ended {
            self.has_ended(state);
        }
        ended
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

/// What is configured, and no more than the machine has at this moment.
fn usable_bytes(config: &Config) -> Result<u64> {
    let memory = &config.memory;
    let available = available_memory_bytes().unwrap_or(u64::MAX);
    let total = memory.total_budget_bytes.min(available);
    total
        .checked_sub(memory.safety_margin_bytes)
        .filter(|&bytes| bytes > 0)
        .ok_or_else(|| {
            cannot_start(format!(
                "{available} bytes of memory are available and memory.safety_margin is {}; \
                 free memory or lower it",
                memory.safety_margin_bytes
            ))
        })
}

fn whole_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

pub(super) fn cannot_start(error: impl std::fmt::Display) -> Error {
    Error::Start {
        problem: error.to_string(),
    }
}
