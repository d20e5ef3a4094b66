//! The engine: its public face, and how long its threads live.
//!
//! Not the way of a partition, which is in [`crate::pipeline`], and not the order of
//! work, which is `cuzk-scheduler`'s. The invariants: a job that was accepted ends; a
//! panic in a stage ends its job and not its thread; no thread outlives the engine,
//! except one that waits for a device that never answers.
//!
//! # Five services
//!
//! | service | owns | answers |
//! |---|---|---|
//! | `jobs` | ids, states, results, what the journal still has to be told | accept, attach, end once, await |
//! | `dispatch` | admission, queues, pauses, estimates | what is next, for whom, with which memory |
//! | `fleet` | devices, their health, the watchdog, probation | where a partition may be proved, which call is late |
//! | `assets` | circuits, parameters, multiples, what each costs | load, replace, evict |
//! | `compute` | threads, memory, the throttle | what a stage runs with |
//!
//! Each owns its state and its locks, and calls no other. `core` has the steps that need
//! more than one of them. **Lock order:** a thread that needs locks of two services takes
//! them in the order of the table; within one service no lock is taken under another.
//!
//! # Reading order
//!
//! `submission` (how a request becomes a job) → `attempt` (a partition on its way) → the
//! services → `core` → `workers` (the threads, a file for each kind, in the order of a
//! partition's way) → `route` (what becomes of a partition that failed) → `elsewhere` and
//! `remote` (partitions on other machines) → `status`.
//!
//! # Threads
//!
//! ```text
//! submit ─▶ admission ─▶ synthesis workers ─▶ ready ─▶ device workers ─▶ finishing ─▶ finish workers
//!               │                                      (each device's)
//!               ├─▶ critical worker ── all stages, alone, while the others pause;
//!               │                      to ready where the devices are not the cores
//!               └─▶ retry worker ───── all stages, alone, on the CPU
//! ```

mod aggregation;
mod assets;
mod attempt;
mod compute;
mod core;
mod deadlines;
mod devices;
mod dispatch;
mod elsewhere;
mod entrance;
mod fleet;
mod jobs;
mod preload;
mod remote;
mod reverify;
mod route;
mod signal;
mod start;
mod status;
mod submission;
mod workers;

use std::sync::Arc;
use std::time::{Duration, Instant};

use cuzk_filecoin::{AggregateRequest, CircuitId, ProofRequest, Statement, decode};
use cuzk_groth16::aggregate::VerifiedAggregate;
use cuzk_groth16::backend::Device;
use cuzk_scheduler::priority::Priority;
use rayon::ThreadPool;

pub use self::aggregation::aggregate_while;
use self::core::Core;
pub use self::devices::{device_options, devices, host_b_g2, warn_of_few_queues};
pub use self::elsewhere::{Elsewhere, PartitionId, QueuedPartition};
pub use self::preload::{EvictedAssets, Preloaded};
pub use self::remote::{EngineState, GiveBack, Remote, RemoteProof};
use self::start::{cannot_start, decode_file, synthesis_pool};
pub use self::start::{check_address_space, serve_one_command};
pub use self::status::{
    AssetStatus, DeviceStatus, EndedJob, JobSeconds, JobStatus, KindTotals, MemoryStatus,
    PartitionStatus, Status,
};
use self::submission::{accepted, handle, submit_request, submit_statement};
use self::workers::{Workers, begin};
use crate::config::Config;
use crate::job::{JobHandle, JobOptions, RequestBytes, priority_of};
use crate::timeline::Timeline;
use crate::{Error, Result};

/// Reads a request: its bytes become a statement that was checked. It is called on a thread of
/// the engine, so it must neither submit to the engine nor wait for it.
pub type Decoder = Arc<dyn Fn(&[u8]) -> Result<Arc<dyn Statement>> + Send + Sync>;

/// The kind, in metrics, of a request that was refused before it was decoded.
const UNDECODED: &str = "undecoded";

/// A proving engine. It proves what is submitted to it, on threads of its own,
/// until it is shut down or dropped.
///
/// A call that waits for proofs or for memory must not be made on one of the engine's own threads.
/// These are the pool of [`Engine::start_on`], and the threads that call decoders and statements.
/// [`JobHandle::wait`], [`Engine::aggregate`] and [`Engine::preload`] end with
/// [`Error::OwnThread`] there. The methods that shut the engine down can wait without an end.
///
/// ```no_run
/// use cuzk_core::{Config, Engine, ProofRequest};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let engine = Engine::start(Config::default())?;
/// let request = ProofRequest::from_json(&std::fs::read("porep.json")?)?;
/// let proof = engine.submit(&request)?.wait()?;
/// std::fs::write("proof.bin", proof.as_bytes())?;
/// engine.shutdown();
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Engine {
    core: Arc<Core>,
    workers: Arc<Workers>,
}

impl Engine {
    /// Starts the engine's threads.
    ///
    /// # Errors
    /// A configuration that asks for what this machine or build does not have.
    pub fn start(config: Config) -> Result<Self> {
        let pool = synthesis_pool(&config)?;
        let devices = devices(&config, &pool)?;
        Self::start_on(config, pool, devices)
    }

    /// Starts the engine's threads on devices of the caller's making, such as a
    /// test's. Synthesis runs on `pool`.
    ///
    /// # Errors
    /// As [`Engine::start`].
    pub fn start_on(config: Config, pool: Arc<ThreadPool>, devices: Vec<Device>) -> Result<Self> {
        Self::start_with(config, pool, devices, Arc::new(decode_file))
    }

    /// Starts an engine for requests in a form of the caller's. `decoder` reads the requests
    /// of [`Engine::submit_bytes`] and those in the journal.
    ///
    /// # Errors
    /// As [`Engine::start`].
    pub fn start_with(
        config: Config,
        pool: Arc<ThreadPool>,
        devices: Vec<Device>,
        decoder: Decoder,
    ) -> Result<Self> {
        begin(Arc::new(Core::new(config, pool, devices, decoder)?))
    }

    /// Decodes and validates `request` and queues its partitions. It blocks meanwhile, and
    /// while the engine decodes requests that came before and are no less urgent: async
    /// code calls it where it may block.
    ///
    /// # Errors
    /// As [`Engine::submit_with`].
    pub fn submit(&self, request: &ProofRequest) -> Result<JobHandle> {
        self.submit_with(request, JobOptions::default())
    }

    /// Submits a request with options. A job with an id that is known already is attached
    /// to if it has the same request and has not failed.
    ///
    /// # Errors
    /// Everything that is wrong with the request; missing parameters;
    /// [`Error::Conflict`] for an id that stands for another request;
    /// [`Error::TooLate`] for a deadline that cannot be met; [`Error::Busy`] when
    /// the queue is full; [`Error::TooManyPartitions`] for a job that it could never
    /// hold; [`Error::OverBudget`] where that is known already; [`Error::ShuttingDown`];
    /// [`Error::Journal`] for a job with an id that could not be kept. If the journal's
    /// disk failed and the process ends before it can be written again, the next start may
    /// find the job and prove it; a submission of the id attaches to it then.
    pub fn submit_with(&self, request: &ProofRequest, options: JobOptions) -> Result<JobHandle> {
        // Only a request with an id is compared and kept.
        let json = options.id.as_ref().map(|_| request.to_json());
        let json = json.unwrap_or_default();
        let priority = options
            .priority
            .unwrap_or_else(|| priority_of(request.kind()));
        let decode = || Ok(Arc::from(decode(request)?));
        let id = options.id.clone();
        let job = submit_request(&self.core, (&json).into(), options, priority, decode);
        accepted(&self.core, (request.kind().name(), id), job)
    }

    /// Submits the bytes of a request file, as [`ProofRequest::from_json`] takes them, or in
    /// the form that the engine's decoder reads. Where the options name no priority, the
    /// order of decoding follows from a look at the bytes: a WinningPoSt in JSON comes
    /// first, and everything else is [`Priority::Normal`] until it is decoded.
    ///
    /// # Errors
    /// As [`Engine::submit_with`].
    pub fn submit_bytes<'a>(
        &self,
        request: impl Into<RequestBytes<'a>>,
        options: JobOptions,
    ) -> Result<JobHandle> {
        let request = request.into();
        let priority = options.priority.unwrap_or_else(|| {
            let kind = ProofRequest::peek_kind(request.as_bytes());
            kind.map_or(Priority::Normal, priority_of)
        });
        let decode = || (self.core.decoder)(request.as_bytes());
        let id = options.id.clone();
        let job = submit_request(&self.core, request, options, priority, decode);
        accepted(&self.core, (UNDECODED, id), job)
    }

    /// Queues the partitions of a statement that was decoded elsewhere. The id, if there is
    /// one, names the job in messages; it is neither compared nor kept.
    ///
    /// # Errors
    /// As [`Engine::submit_with`], of a request that is right.
    pub fn submit_job(&self, job: Arc<dyn Statement>, options: JobOptions) -> Result<JobHandle> {
        let kind = job.circuit().kind.name();
        let id = options.id.clone();
        let job = submit_statement(&self.core, job, options);
        accepted(&self.core, (kind, id), job)
    }

    /// Aggregates proofs of replication, and returns the aggregate after verification. It
    /// blocks, first until there is memory, and is no job.
    ///
    /// # Errors
    /// As [`aggregate_request`](crate::aggregate::aggregate_request); [`Error::OverBudget`];
    /// [`Error::ShuttingDown`]; [`Error::OwnThread`].
    pub fn aggregate(&self, request: &AggregateRequest) -> Result<VerifiedAggregate> {
        aggregation::aggregate(&self.core, request)
    }

    /// Returns the job of this id, while it runs and for as long as its result is kept.
    #[must_use]
    pub fn job(&self, id: &str) -> Option<JobHandle> {
        let job = self.core.jobs.registry.find(id)?;
        Some(handle(&self.core, job))
    }

    /// Returns the state of the engine at this moment.
    #[must_use]
    pub fn status(&self) -> Status {
        Status::of(&self.core)
    }

    /// Returns the times of every stage of the last jobs.
    #[must_use]
    pub fn timeline(&self) -> &Timeline {
        &self.core.timeline
    }

    /// Returns the configuration in effect.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.core.config
    }

    /// Gives a quarantined device work again, as if it had never failed, because an
    /// operator mended it. After a rest it is put on probation without this, too; but
    /// circuits that did not fit on it are tried again only after this.
    ///
    /// # Errors
    /// No such device, or one that still owes the answer for which it was given up.
    pub fn reinstate(&self, device: usize) -> Result<()> {
        self.core.reinstate(device)
    }

    /// Loads a circuit and its parameters before a job needs them, and leaves them idle.
    /// They are charged, and are evicted when partitions need the memory. Blocks until they
    /// are loaded. A circuit of 32 GiB that was never compiled takes minutes.
    ///
    /// # Errors
    /// Missing or wrong parameters, [`Error::OverBudget`], [`Error::ShuttingDown`],
    /// [`Error::OwnThread`].
    pub fn preload(&self, circuit: CircuitId) -> Result<Preloaded> {
        self.core.compute.check_caller()?;
        preload::preload(&self.core, circuit)
    }

    /// Lets go of a circuit and its parameters.
    ///
    /// # Errors
    /// [`Error::InUse`] while partitions use them, or multiples of the parameters' points are made.
    pub fn evict(&self, circuit: CircuitId) -> Result<EvictedAssets> {
        preload::evict(&self.core, circuit)
    }

    /// Begins no partition of a job of priority normal or low from now on; running ones
    /// finish. New jobs of these priorities wait in the journal if they can
    /// ([`JobOptions::waits`]), and are refused with [`Error::ShuttingDown`] otherwise. Jobs
    /// of higher priority are accepted and proved. A shutdown ends the jobs that wait with
    /// [`Error::ShuttingDown`]; those in the journal go on at the next start.
    pub fn drain(&self) {
        self.core.dispatch.drain(true);
    }

    /// Begins partitions of all jobs again.
    pub fn resume(&self) {
        self.core.dispatch.drain(false);
        self.core.jobs.notify();
    }

    /// Returns true between [`Engine::drain`] and [`Engine::resume`].
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.core.dispatch.is_draining()
    }

    /// Returns a number that grows while work goes on. It grows with each checkpoint of a
    /// kernel or a writer, and with each stage that begins or ends. It also grows while a
    /// device computes that is within its stall time. An engine hangs if it is not idle and
    /// its number stays. Some steps have no checkpoint; reading parameters and
    /// decoding a request take seconds.
    #[must_use]
    pub fn checkpoints(&self) -> u64 {
        let changes = self.core.timeline.changes();
        changes.wrapping_add(self.core.dispatch.heartbeat.count())
    }

    /// Returns true while a critical partition is computed here, and other work stands still.
    #[must_use]
    pub fn is_urgent(&self) -> bool {
        self.core.dispatch.pause.quiet().is_none()
    }

    /// Returns true if nothing is to be done now. Work that a drain holds is not counted.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        entrance::is_idle(&self.core)
    }

    /// Accepts no more jobs from now on: submissions end with [`Error::ShuttingDown`]. The
    /// jobs that it has go on, except those of the journal that were not read again yet:
    /// these go on at the next start. For callers that share the engine, before it is shut
    /// down.
    pub fn close(&self) {
        self.core.close();
    }

    /// Accepts no more jobs, finishes those it has, and ends the threads. A device
    /// that does not answer is waited for until it counts as stalled.
    /// Jobs that a drain holds end with [`Error::ShuttingDown`].
    pub fn shutdown(self) {
        if self.is_draining() {
            drop(self.shutdown_within(Duration::MAX));
        } else {
            self.workers.end(&self.core);
        }
    }

    /// Accepts no more jobs and finishes those it has, for as long as `patience`. The jobs
    /// that are left then end with [`Error::ShuttingDown`]; a job in the journal goes on at
    /// the next start. Running work stops at its next checkpoint. A device has ten seconds to
    /// answer. Then the thread that waits for it is left behind, which the log says, and ends
    /// when the device answers.
    ///
    /// Returns all jobs that ended with [`Error::ShuttingDown`], each once, the oldest first.
    /// Those that ended so since [`Engine::close`] are among them.
    #[must_use]
    pub fn shutdown_within(&self, patience: Duration) -> Vec<JobHandle> {
        self.core.close();
        let until = Instant::now().checked_add(patience); // None for one without an end.
        for job in entrance::held_last(&self.core) {
            let is_held = entrance::is_held(&self.core, &job);
            if is_held {
                entrance::await_running(&self.core, until);
            }
            let handle = handle(&self.core, Arc::clone(&job));
            let left_of = |until: Instant| until.saturating_duration_since(Instant::now());
            let remaining = until.map_or(Duration::MAX, left_of);
            let patience = if is_held { Duration::ZERO } else { remaining };
            if handle.wait_for(patience).is_none() {
                self.core.end(&job, Error::ShuttingDown);
            }
        }
        self.core.fleet.watchdog.hurry();
        self.workers.end(&self.core);
        // Its threads end jobs, too: those of the journal that were not read again, for example.
        let interrupted = self.core.jobs.registry.take_interrupted().into_iter();
        interrupted.map(|job| handle(&self.core, job)).collect()
    }
}

/// Dropping the engine ends what it has not proved: those jobs end with
/// [`Error::ShuttingDown`]. After [`Engine::shutdown`] nothing is left to end.
/// Devices are waited for as in [`Engine::shutdown_within`].
impl Drop for Engine {
    fn drop(&mut self) {
        self.core.close();
        for job in self.core.jobs.registry.all_live() {
            self.core.end(&job, Error::ShuttingDown);
        }
        self.core.fleet.watchdog.hurry();
        self.workers.end(&self.core);
    }
}
