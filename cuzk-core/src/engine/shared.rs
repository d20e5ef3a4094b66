//! What the threads of an engine share.
//!
//! Not a thread and not a queue of its own: stations, needs and the ends of jobs
//! are in files of their own. The invariant: nothing here is replaced while the
//! engine lives, but for the journal, which is let go of with the threads.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cuzk_scheduler::admission::{Admission, Lane, Limits};
use cuzk_scheduler::estimate::Estimates;
use cuzk_scheduler::pause::Pause;
use cuzk_scheduler::queue::Queue;
use cuzk_scheduler::turnstile::Turnstile;
use rayon::{ThreadPool, ThreadPoolBuilder};
use supraseal_sys::set_gpu_threads;

use super::Decoder;
use super::bell::Bell;
use super::book::Book;
use super::ends::Sort;
use super::needs::Needs;
use super::registry::Registry;
use super::replaced::InUse;
use super::stations::{Solo, Stations};
use super::task::{Finishing, PartitionCheckpoint, Ready, Task};
use super::upkeep::Upkeep;
use super::watch::Watch;
use crate::backend::Device;
use crate::circuit::Circuits;
use crate::config::{Config, available_memory_bytes};
use crate::kinds::CircuitId;
use crate::memory::buffer::BufferPool;
use crate::params::ParamCache;
use crate::pipeline::SynthesisResources;
use crate::timeline::Timeline;
use crate::{Error, Result, metrics};

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
    pub(super) estimates: Estimates<Sort>,
    pub(super) decoder: Decoder,
    pub(super) registry: Registry,
    pub(super) watch: Watch,
    pub(super) stations: Stations,
    pub(super) needs: Needs,
    pub(super) circuits: Circuits,
    pub(super) params: ParamCache,
    pub(super) in_use: InUse,
    pub(super) upkeep: Upkeep,
    book: Mutex<Option<Arc<Book>>>,
    /// Rung when a job has ended and when the engine closes.
    pub(super) bell: Bell,
    pub(super) pool: Arc<ThreadPool>,
    /// For what is done beside synthesis, and must not wait for it.
    beside: ThreadPool,
    /// The same for critical work.
    beside_critical: ThreadPool,
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
        let limits = Limits {
            capacity: config.jobs.queued_partitions,
            total_bytes,
            critical_reserve_bytes: config.memory.critical_reserve_bytes.min(total_bytes / 2),
            patience: config.jobs.patience,
        };
        Ok(Self {
            timeline: Timeline::default(),
            buffers: BufferPool::new(config.memory.dealloc, total_bytes),
            admission: Admission::new(limits),
            ready: Queue::new(config.pipeline.synthesis_lookahead),
            finishing: Queue::new(config.pipeline.finish_workers),
            pause: Arc::default(),
            decoding: Turnstile::new(config.synthesis.threads),
            estimates: Estimates::default(),
            registry: Registry::new(config.jobs.results_kept, config.jobs.results_kept_for),
            decoder,
            watch: Watch::new(&config.gpus),
            stations: Stations::new(&config, devices),
            needs: Needs::new(&config, &limits),
            circuits: Circuits::default(),
            params: ParamCache::new(&config.srs.param_cache).with_threads(config.synthesis.threads),
            in_use: InUse::default(),
            upkeep: Upkeep::default(),
            book: Mutex::new(Book::open(&config.jobs)?),
            bell: Bell::default(),
            beside: beside(&config, "beside")?,
            beside_critical: beside(&config, "urgent")?,
            pool,
            config,
        })
    }

    /// Accepts nothing more.
    pub(super) fn close(&self) {
        self.admission.close();
        self.bell.ring();
    }

    /// Where jobs are kept beyond the life of the process, if they are.
    pub(super) fn book(&self) -> Option<Arc<Book>> {
        self.lock_book().clone()
    }

    /// Lets go of the journal's file, even if a thread that was left behind keeps
    /// the rest of this.
    pub(super) fn close_book(&self) {
        if let Some(book) = self.lock_book().take() {
            book.write_owed();
        }
    }

    fn lock_book(&self) -> MutexGuard<'_, Option<Arc<Book>>> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Threads that a lane's worker need not share with work that stands still for it.
    pub(super) fn pool_of(&self, lane: Lane) -> &ThreadPool {
        let alone = (lane != Lane::Common).then(|| self.stations.of_lane(lane));
        let solo = alone.and_then(|station| self.stations.solo(station));
        solo.map_or(&self.pool, |solo| &solo.pool)
    }

    /// Threads for decoding and for verification, which critical work shares neither
    /// with other work nor with a critical partition that is proved.
    pub(super) fn pool_beside(&self, critical: bool) -> &ThreadPool {
        if critical {
            &self.beside_critical
        } else {
            &self.beside
        }
    }

    /// What synthesis of `task` runs on: the engine's pool, or a solo worker's; and
    /// whether A and B are evaluated there.
    pub(super) fn synthesis_resources<'a>(
        &'a self,
        task: &Task,
        solo: Option<&'a Solo>,
        evaluate: bool,
    ) -> SynthesisResources<'a> {
        let critical = task.is_critical();
        SynthesisResources {
            pool: solo.map_or(&self.pool, |solo| &solo.pool),
            isa: self.config.cpu.isa,
            buffers: &self.buffers,
            // Who raised it may be standing still for this very partition.
            throttle: self.stations.throttle().filter(|_| !critical),
            evaluate,
            checkpoint: Arc::new(self.checkpoint(task)),
        }
    }

    /// Where the work of `task` looks whether to go on.
    pub(super) fn checkpoint(&self, task: &Task) -> PartitionCheckpoint {
        PartitionCheckpoint {
            state: Arc::clone(&task.state),
            pause: (!task.is_critical()).then(|| Arc::clone(&self.pause)),
        }
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

fn beside(config: &Config, name: &'static str) -> Result<ThreadPool> {
    let builder = ThreadPoolBuilder::new().num_threads(config.synthesis.threads);
    let named = builder.thread_name(move |index| format!("cuzk-{name}-{index}"));
    named.build().map_err(cannot_start)
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

pub(super) fn cannot_start(error: impl std::fmt::Display) -> Error {
    Error::Start {
        problem: error.to_string(),
    }
}
