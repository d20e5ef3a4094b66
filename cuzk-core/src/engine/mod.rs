//! The engine: what a caller sees of it, and how long its threads live.
//!
//! Not the flow of a partition, which is in [`crate::pipeline`], and not the
//! order of work, which is `cuzk-scheduler`'s. The invariants: a job that was
//! accepted ends; a panic in a stage ends its job and not its thread; no thread
//! outlives the engine, except one that waits for a device that never answers.
//!
//! # Reading order
//!
//! `shared` (what the threads share) → `stations` (the devices) → `needs` (memory,
//! circuits, parameters) → `ends` (how jobs begin and end) → `task` (a partition on
//! its way) → `lanes` (the loops of the threads, in the order of the way) →
//! `faults` (what becomes of a partition that failed) → `watch` (devices that do
//! not answer) → `registry` (jobs by number and by id) → `journal` (jobs that
//! outlive the process) → `status`.
//!
//! # Threads
//!
//! ```text
//! submit ─▶ admission ─▶ synthesis workers ─▶ ready ─▶ device workers ─▶ finishing ─▶ finish workers
//!               │                                      (each device's)
//!               ├─▶ critical worker ── all stages, alone, while the others pause
//!               └─▶ retry worker ───── all stages, alone, on the CPU
//! ```

mod ends;
mod faults;
mod journal;
mod lanes;
mod needs;
mod registry;
mod shared;
mod stations;
mod status;
mod task;
mod watch;

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use cuzk_scheduler::admission::Lane;
use cuzk_scheduler::priority::{Priority, Rank};
use rayon::ThreadPool;

use crate::backend::{self, Device};
use crate::config::Config;
use crate::job::{JobHandle, JobOptions, JobState, NewJob};
use crate::kinds::{Job, ProofKind, decode};
use crate::metrics::{self, Refusal};
use crate::request::ProofRequest;
use crate::timeline::{Stage, Timeline};
use crate::{Error, Result};

use journal::{Line, Submission};
use registry::{Begin, Digest};
use shared::Shared;
pub use status::{DeviceStatus, JobStatus, MemoryStatus, Status};

/// Reads a request: its bytes become a job whose statement was checked.
pub type Decoder = Arc<dyn Fn(&[u8]) -> Result<Arc<dyn Job>> + Send + Sync>;

fn decode_file(request: &[u8]) -> Result<Arc<dyn Job>> {
    Ok(Arc::from(decode(&ProofRequest::from_json(request)?)?))
}

/// The kind in metrics of a request that was refused before anyone knew it.
const UNDECODED: &str = "undecoded";

/// Ends jobs from the outside.
pub(crate) trait Ends: Send + Sync {
    /// Ends the job with `error`, unless it has ended; what it still holds in
    /// queues is dropped. Whether this was the end.
    fn end(&self, state: &Arc<JobState>, error: Error) -> bool;
}

/// A proving engine. It proves what is submitted to it, on threads of its own,
/// until it is shut down or dropped.
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
    shared: Arc<Shared>,
    threads: Threads,
}

/// By what must have ended before they can.
#[derive(Debug, Default)]
struct Threads {
    resuming: Mutex<Vec<JoinHandle<()>>>,
    admitted: Mutex<Vec<JoinHandle<()>>>,
    devices: Mutex<Vec<JoinHandle<()>>>,
    finishing: Mutex<Vec<JoinHandle<()>>>,
    watch: Mutex<Vec<JoinHandle<()>>>,
}

impl Engine {
    /// Starts the engine's threads.
    ///
    /// # Errors
    /// A configuration that asks for what this machine or build does not have.
    pub fn start(config: Config) -> Result<Self> {
        let pool = Arc::new(config.synthesis.pool()?);
        let devices = backend::devices(&config, &pool)?;
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

    /// The same, for requests in a form of the caller's: `decoder` reads those of
    /// [`Engine::submit_bytes`], and those in the journal.
    ///
    /// # Errors
    /// As [`Engine::start`].
    pub fn start_with(
        config: Config,
        pool: Arc<ThreadPool>,
        devices: Vec<Device>,
        decoder: Decoder,
    ) -> Result<Self> {
        let shared = Arc::new(Shared::new(config, pool, devices, decoder)?);
        let engine = Self {
            shared,
            threads: Threads::default(),
        };
        engine.spawn_all()?;
        Ok(engine)
    }

    fn spawn_all(&self) -> Result<()> {
        let config = &self.shared.config;
        let Threads {
            resuming,
            admitted,
            devices,
            finishing,
            watch,
        } = &self.threads;
        for worker in 0..config.synthesis.partition_workers {
            let name = format!("cuzk-synth-{worker}");
            self.spawn(admitted, name, |shared| shared.synthesize_until_over())?;
        }
        self.spawn(admitted, "cuzk-critical".into(), |shared| {
            shared.prove_alone_until_over(Lane::Critical);
        })?;
        self.spawn(admitted, "cuzk-retry".into(), |shared| {
            shared.prove_alone_until_over(Lane::Retry);
        })?;
        for device in 0..self.shared.stations.devices().len() {
            for worker in 0..config.gpus.gpu_workers_per_device {
                let work = move |shared: &Shared| shared.start_until_closed(device);
                self.spawn(devices, format!("cuzk-dev{device}-{worker}"), work)?;
            }
        }
        for worker in 0..config.pipeline.finish_workers {
            let name = format!("cuzk-finish-{worker}");
            self.spawn(finishing, name, |shared| shared.finish_until_closed())?;
        }
        self.spawn(watch, "cuzk-watch".into(), |shared| {
            shared.watch_until_closed();
        })?;
        let Some(journal) = self.shared.journal() else {
            return Ok(());
        };
        let left = self.shared.find_left(&journal)?;
        self.spawn(resuming, "cuzk-resume".into(), move |shared| {
            shared.resume(&journal, left);
        })
    }

    fn spawn(
        &self,
        workers: &Mutex<Vec<JoinHandle<()>>>,
        name: String,
        work: impl FnOnce(&Shared) + Send + 'static,
    ) -> Result<()> {
        let shared = Arc::clone(&self.shared);
        let worker = std::thread::Builder::new()
            .name(name)
            .spawn(move || work(&shared))
            .map_err(shared::cannot_start)?;
        workers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(worker);
        Ok(())
    }

    /// Decodes and validates `request` and queues its partitions.
    ///
    /// # Errors
    /// As [`Engine::submit_with`].
    pub fn submit(&self, request: &ProofRequest) -> Result<JobHandle> {
        self.submit_with(request, JobOptions::default())
    }

    /// The same, as `options` say. A job with an id that is known already is
    /// attached to if it has the same request and has not failed.
    ///
    /// # Errors
    /// Whatever is wrong with the request; missing parameters;
    /// [`Error::Conflict`] for an id that stands for another request;
    /// [`Error::TooLate`] for a deadline that cannot be met; [`Error::Busy`] when
    /// the queue is full; [`Error::ShuttingDown`].
    pub fn submit_with(&self, request: &ProofRequest, options: JobOptions) -> Result<JobHandle> {
        // Only what has an id is compared and kept.
        let json = options.id.as_ref().map(|_| request.to_json());
        let json = json.unwrap_or_default();
        let priority = options
            .priority
            .unwrap_or_else(|| priority_of(request.kind()));
        let decode = || decode(request).map(Arc::from);
        let submitted = self.submit_decoding(&json, options, priority, decode);
        submitted.inspect_err(|error| metrics::job_refused(request.kind().name(), refusal(error)))
    }

    /// The same for the bytes of a request file, as
    /// [`ProofRequest::from_json`] takes them, or of whatever form the engine's
    /// decoder reads. Where the options name no priority, the order in which
    /// requests are decoded goes by what a look at them tells: a WinningPoSt in
    /// JSON comes first, everything else is [`Priority::Normal`] until then.
    ///
    /// # Errors
    /// As [`Engine::submit_with`].
    pub fn submit_bytes(&self, request: &[u8], options: JobOptions) -> Result<JobHandle> {
        let priority = options.priority.unwrap_or_else(|| {
            let kind = ProofRequest::peek_kind(request);
            kind.map_or(Priority::Normal, priority_of)
        });
        let decode = || (self.shared.decoder)(request);
        let submitted = self.submit_decoding(request, options, priority, decode);
        submitted.inspect_err(|error| metrics::job_refused(UNDECODED, refusal(error)))
    }

    fn submit_decoding(
        &self,
        request: &[u8],
        mut options: JobOptions,
        priority: Priority,
        decode: impl FnOnce() -> Result<Arc<dyn Job>>,
    ) -> Result<JobHandle> {
        let shared = &self.shared;
        let digest = blake3::hash(request).into();
        let begun = match &options.id {
            Some(id) => shared.registry.begin(id, digest)?,
            None => Begin::Nameless,
        };
        if let Begin::Attached(state) = begun {
            return Ok(self.handle(state));
        }
        let number = shared.registry.next_number();
        let trace = shared.timeline.trace(number, None);
        let asked = Instant::now();
        let patience = shared.config.jobs.patience;
        let turn = shared
            .decoding
            .enter(Rank::new(priority, asked, number, patience));
        trace.waited(Stage::DecodeWait, asked);
        let job = trace.time(Stage::Decode, decode)?;
        drop(turn);
        let priority = options
            .priority
            .unwrap_or_else(|| priority_of(job.circuit().kind));
        options.priority = Some(priority);
        let rank = Rank::new(priority, asked, number, patience);
        let state = self.accept(job, options, number, rank, Some((digest, request)))?;
        if let Begin::New(place) = begun {
            place.take(Arc::clone(&state));
        }
        Ok(self.handle(state))
    }

    /// Queues the partitions of a job that was decoded elsewhere. Its id, if it
    /// has one, names it in messages; it is neither compared nor kept.
    ///
    /// # Errors
    /// As [`Engine::submit_with`], of a request that is right.
    pub fn submit_job(&self, job: Arc<dyn Job>, mut options: JobOptions) -> Result<JobHandle> {
        let kind = job.circuit().kind;
        let priority = options.priority.unwrap_or_else(|| priority_of(kind));
        let number = self.shared.registry.next_number();
        let patience = self.shared.config.jobs.patience;
        let rank = Rank::new(priority, Instant::now(), number, patience);
        options.priority = Some(priority);
        let state = self.accept(job, options, number, rank, None);
        let state = state.inspect_err(|error| metrics::job_refused(kind.name(), refusal(error)))?;
        Ok(self.handle(state))
    }

    /// Accepts a decoded job whose priority is decided; `kept` is its request, with
    /// its digest, where the journal may keep it.
    fn accept(
        &self,
        job: Arc<dyn Job>,
        options: JobOptions,
        number: u64,
        rank: Rank,
        kept: Option<(Digest, &[u8])>,
    ) -> Result<Arc<JobState>> {
        let shared = &self.shared;
        let circuit = job.circuit();
        shared.check_parameters(circuit)?;
        if let Some(deadline) = options.deadline {
            shared.check_deadline(circuit, job.partitions(), rank, deadline)?;
        }
        shared.check_room(job.partitions())?;
        let accepted = Instant::now();
        let priority = options.priority.unwrap_or(Priority::Normal);
        let deadline = options.deadline.and_then(|left| accepted.checked_add(left));
        let mut new = NewJob {
            number,
            id: options.id,
            circuit,
            partitions: job.partitions(),
            priority,
            rank,
            accepted,
            deadline,
            record: None,
        };
        let mut done = Vec::new();
        let journal = shared.journal();
        if let (Some(journal), Some(id), Some((digest, json))) = (&journal, &new.id, kept) {
            let submission = Submission {
                id,
                digest,
                json,
                job: &*job,
                priority,
                deadline: options.deadline,
            };
            done = shared.keep(journal, &submission)?;
            new.record = Some(Arc::new(Line::new(Arc::clone(journal), id.clone())));
        }
        let state = Arc::new(JobState::new(new));
        state.set_input(job);
        shared.registry.live(&state);
        for (partition, proof) in done {
            shared.restore(&state, partition, proof);
        }
        if let Err(error) = shared.queue(&state) {
            shared.registry.ended(&state);
            if let (Some(journal), Some(id)) = (&journal, state.id()) {
                journal.forget(id)?;
            }
            return Err(error);
        }
        metrics::job_accepted(circuit.kind.name());
        Ok(state)
    }

    fn handle(&self, state: Arc<JobState>) -> JobHandle {
        let engine: Weak<Shared> = Arc::downgrade(&self.shared);
        JobHandle::new(state, engine)
    }

    /// The job of this id, while it runs and for as long as its result is kept.
    #[must_use]
    pub fn job(&self, id: &str) -> Option<JobHandle> {
        let state = self.shared.registry.find(id)?;
        Some(self.handle(state))
    }

    /// What the engine does at this moment.
    #[must_use]
    pub fn status(&self) -> Status {
        self.shared.status()
    }

    /// The times of every stage of the last jobs.
    #[must_use]
    pub fn timeline(&self) -> &Timeline {
        &self.shared.timeline
    }

    /// The configuration in effect.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.shared.config
    }

    /// Gives a device work again that is in quarantine, as if it had never failed:
    /// because somebody mended it. It is tried again by itself, too, after a rest.
    ///
    /// # Errors
    /// No such device, or one that still owes the answer for which it was given up.
    pub fn reinstate(&self, device: usize) -> Result<()> {
        self.shared.reinstate(device)
    }

    /// Accepts no more jobs, finishes those it has, and ends the threads. A device
    /// that does not answer is waited for until it counts as stalled.
    pub fn shutdown(self) {
        self.end_threads();
    }

    /// Accepts no more jobs and finishes those it has, for as long as `patience`.
    /// What is left then ends with [`Error::ShuttingDown`] and is returned; a job
    /// in the journal goes on at the next start. What runs stops at its next chunk;
    /// a device has ten seconds to answer, after which the thread that waits for it
    /// is left behind and said so in the log. It ends when the device answers.
    #[must_use]
    pub fn shutdown_within(self, patience: Duration) -> Vec<JobHandle> {
        self.shared.admission.close();
        let until = Instant::now() + patience;
        let mut left = Vec::new();
        for state in self.shared.registry.all_live() {
            let handle = self.handle(Arc::clone(&state));
            let remaining = until.saturating_duration_since(Instant::now());
            if handle.wait_for(remaining).is_none() && self.shared.end(&state, Error::ShuttingDown)
            {
                left.push(handle);
            }
        }
        self.shared.watch.hurry();
        self.end_threads();
        left
    }

    fn end_threads(&self) {
        let shared = &self.shared;
        shared.admission.close();
        join_all(&self.threads.resuming);
        join_all(&self.threads.admitted);
        shared.ready.close();
        self.join_devices();
        shared.finishing.close();
        join_all(&self.threads.finishing);
        shared.watch.close();
        join_all(&self.threads.watch);
        shared.close_journal();
    }

    /// Waits for the device workers, but not for those whose devices were given up.
    fn join_devices(&self) {
        for worker in take_all(&self.threads.devices) {
            if self.shared.watch.has_ended(worker.thread().id()) {
                join(worker);
            } else {
                let thread = worker.thread().name().unwrap_or_default();
                tracing::error!(
                    thread,
                    "its device does not answer; the thread is left behind with the memory of \
                     one partition"
                );
            }
        }
    }
}

/// Dropping the engine ends what it has not proved: those jobs end with
/// [`Error::ShuttingDown`]. After [`Engine::shutdown`] nothing is left to end.
/// Devices are waited for as in [`Engine::shutdown_within`].
impl Drop for Engine {
    fn drop(&mut self) {
        self.shared.admission.close();
        for state in self.shared.registry.all_live() {
            self.shared.end(&state, Error::ShuttingDown);
        }
        self.shared.watch.hurry();
        self.end_threads();
    }
}

fn take_all(workers: &Mutex<Vec<JoinHandle<()>>>) -> Vec<JoinHandle<()>> {
    std::mem::take(&mut *workers.lock().unwrap_or_else(PoisonError::into_inner))
}

fn join(worker: JoinHandle<()>) {
    if worker.join().is_err() {
        tracing::error!("a thread of the engine panicked outside a stage; please report it");
    }
}

fn join_all(workers: &Mutex<Vec<JoinHandle<()>>>) {
    take_all(workers).into_iter().for_each(join);
}

/// What a refused job counts as.
fn refusal(error: &Error) -> Refusal {
    match error {
        Error::Params(_) => Refusal::MissingParameters,
        Error::Conflict { .. } => Refusal::Conflict,
        Error::Busy { .. } => Refusal::Busy,
        Error::OverBudget(_) => Refusal::Memory,
        Error::TooLate { .. } => Refusal::Deadline,
        Error::ShuttingDown => Refusal::ShuttingDown,
        error if error.is_input() => Refusal::Invalid,
        _ => Refusal::Internal,
    }
}

/// What is late costs: WinningPoSt a block, WindowPoSt a penalty.
fn priority_of(kind: ProofKind) -> Priority {
    match kind {
        ProofKind::WinningPost => Priority::Critical,
        ProofKind::WindowPost => Priority::High,
        ProofKind::Porep | ProofKind::SnapDeals => Priority::Normal,
    }
}
