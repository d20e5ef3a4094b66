//! The engine: its threads, what they share, and how long they live.
//!
//! Not the flow of a partition, which is in [`crate::pipeline`]; here is only
//! on which thread each stage runs. Synthesis workers take partitions from a
//! bounded queue and leave them, synthesized, in another; device workers take
//! them from there to the end. The invariants: a job that was accepted ends; a
//! panic in a stage ends its job and not its thread; no thread outlives the
//! engine.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use rayon::ThreadPool;
use supraseal_sys::set_gpu_threads;

use crate::backend::{self, Backend, Device, Randomness, Synthesized};
use crate::circuit::{Circuit, Circuits};
use crate::config::Config;
use crate::job::{JobHandle, JobState};
use crate::kinds::{CircuitId, Job, ProofKind, decode};
use crate::memory::budget::{Budget, Reservation};
use crate::memory::buffer::BufferPool;
use crate::memory::footprint::{buffer_bytes, circuit_bytes, partition_bytes};
use crate::params::{LoadedParams, ParamCache, ParamsError};
use crate::pipeline::{SynthesisResources, prove_finish, prove_start, synthesize_partition};
use crate::request::ProofRequest;
use crate::scheduler::queue::{Priority, PushError, Queue};
use crate::timeline::{Stage, Timeline, Trace};
use crate::verify::VerifiedProof;
use crate::{Error, Result};

/// How many partitions may wait for synthesis. A partition that waits holds a
/// share of its decoded request, 5 MB at 32 GiB; this is a hundred sectors.
const QUEUED_PARTITIONS_MAX: usize = 1024;

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
    synthesis_workers: Mutex<Vec<JoinHandle<()>>>,
    device_workers: Mutex<Vec<JoinHandle<()>>>,
}

/// What the threads of an engine share.
struct Shared {
    config: Config,
    timeline: Timeline,
    circuits: Circuits,
    params: ParamCache,
    pool: Arc<ThreadPool>,
    devices: Vec<Device>,
    budget: Arc<Budget>,
    buffers: Arc<BufferPool>,
    queued: Queue<Task>,
    synthesized: Queue<SynthesizedTask>,
    jobs_accepted: AtomicU64,
}

/// A partition to be proved.
struct Task {
    job: Arc<dyn Job>,
    state: Arc<JobState>,
    partition: usize,
    priority: Priority,
    since: Instant,
}

impl Task {
    fn trace<'a>(&self, timeline: &'a Timeline) -> Trace<'a> {
        timeline.trace(self.state.number(), Some(self.partition))
    }
}

/// A partition that waits for a device.
struct SynthesizedTask {
    task: Task,
    ready: Ready,
    since: Instant,
}

/// What synthesis leaves for a device.
struct Ready {
    synthesized: Synthesized,
    params: Arc<LoadedParams>,
    /// The partition's memory, given back when it is proved.
    memory: Reservation,
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
        let shared = Arc::new(Shared::new(config, pool, devices)?);
        let engine = Self {
            synthesis_workers: Mutex::default(),
            device_workers: Mutex::default(),
            shared,
        };
        for worker in 0..engine.shared.config.synthesis.partition_workers {
            let work = |shared: &Shared| shared.synthesize_until_closed();
            engine.spawn(
                &engine.synthesis_workers,
                format!("cuzk-synth-{worker}"),
                work,
            )?;
        }
        for device in 0..engine.shared.devices.len() {
            for worker in 0..engine.shared.config.gpus.gpu_workers_per_device {
                let work = move |shared: &Shared| shared.prove_until_closed(device);
                let name = format!("cuzk-dev{device}-{worker}");
                engine.spawn(&engine.device_workers, name, work)?;
            }
        }
        Ok(engine)
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
            .map_err(|error| Error::Start {
                problem: error.to_string(),
            })?;
        workers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(worker);
        Ok(())
    }

    /// Decodes and validates `request` and queues its partitions.
    ///
    /// # Errors
    /// Whatever is wrong with the request; missing parameters; [`Error::Busy`]
    /// when the queue is full; [`Error::ShuttingDown`].
    pub fn submit(&self, request: &ProofRequest) -> Result<JobHandle> {
        let shared = &self.shared;
        let number = shared.jobs_accepted.fetch_add(1, Ordering::Relaxed);
        let job: Arc<dyn Job> = Arc::from(
            shared
                .timeline
                .trace(number, None)
                .time(Stage::Decode, || decode(request))?,
        );
        shared.check_parameters(job.circuit())?;
        let state = Arc::new(JobState::new(number, job.circuit(), job.partitions()));
        let priority = priority_of(job.circuit().kind);
        let since = Instant::now();
        let tasks = (0..job.partitions())
            .map(|partition| Task {
                job: Arc::clone(&job),
                state: Arc::clone(&state),
                partition,
                priority,
                since,
            })
            .collect();
        match shared.queued.try_push_all(priority, tasks) {
            Ok(()) => Ok(JobHandle::new(state)),
            Err(PushError::Full(_)) => Err(Error::Busy {
                capacity: shared.queued.capacity(),
            }),
            Err(PushError::Closed(_)) => Err(Error::ShuttingDown),
        }
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

    /// Accepts no more jobs, finishes those it has, and ends the threads.
    pub fn shutdown(self) {
        self.end_threads();
    }

    fn end_threads(&self) {
        self.shared.queued.close();
        join_all(&self.synthesis_workers);
        self.shared.synthesized.close();
        join_all(&self.device_workers);
    }
}

/// Dropping the engine ends what has not started: those jobs end with
/// [`Error::ShuttingDown`]. After [`Engine::shutdown`] nothing is left to end.
impl Drop for Engine {
    fn drop(&mut self) {
        self.shared.queued.close();
        for task in self.shared.queued.drain() {
            task.state.settle(task.partition, Err(Error::ShuttingDown));
        }
        self.end_threads();
    }
}

fn join_all(workers: &Mutex<Vec<JoinHandle<()>>>) {
    let workers = std::mem::take(&mut *workers.lock().unwrap_or_else(PoisonError::into_inner));
    for worker in workers {
        if worker.join().is_err() {
            tracing::error!("a thread of the engine panicked outside a stage; please report it");
        }
    }
}

impl Shared {
    fn new(config: Config, pool: Arc<ThreadPool>, devices: Vec<Device>) -> Result<Self> {
        let gpu_threads = u32::try_from(config.gpus.gpu_threads).map_err(cannot_start)?;
        set_gpu_threads(gpu_threads).map_err(cannot_start)?;
        let budget_bytes = config.memory.total_budget_bytes - config.memory.safety_margin_bytes;
        Ok(Self {
            timeline: Timeline::default(),
            circuits: Circuits::default(),
            params: ParamCache::new(&config.srs.param_cache),
            pool,
            devices,
            budget: Budget::new(budget_bytes),
            buffers: BufferPool::new(config.memory.dealloc, budget_bytes),
            queued: Queue::new(QUEUED_PARTITIONS_MAX),
            synthesized: Queue::new(config.pipeline.synthesis_lookahead),
            jobs_accepted: AtomicU64::new(0),
            config,
        })
    }

    /// The count that b_g2_msm raises. It is the C++ side's own atomic, lent
    /// for as long as the device's resources live. Memory bandwidth is the
    /// machine's, so the first device's throttle stands for all.
    fn throttle(&self) -> Option<&AtomicI32> {
        let first = self.devices.first()?;
        self.config
            .pipeline
            .throttle
            .then(|| first.resources.throttle())
    }

    fn synthesize_until_closed(&self) {
        while let Some(task) = self.queued.pop() {
            task.trace(&self.timeline)
                .waited(Stage::QueueWait, task.since);
            if task.state.has_ended() {
                continue;
            }
            match unwinding_is_an_error("synthesis", || self.synthesize(&task)) {
                Ok(ready) => self.hand_over(SynthesizedTask {
                    task,
                    ready,
                    since: Instant::now(),
                }),
                Err(error) => task.state.settle(task.partition, Err(error)),
            }
        }
    }

    fn hand_over(&self, ready: SynthesizedTask) {
        if let Err(PushError::Closed(ready) | PushError::Full(ready)) =
            self.synthesized.push(ready.task.priority, ready)
        {
            ready
                .task
                .state
                .settle(ready.task.partition, Err(Error::ShuttingDown));
        }
    }

    fn synthesize(&self, task: &Task) -> Result<Ready> {
        let trace = task.trace(&self.timeline);
        let id = task.job.circuit();
        let circuit = trace.time(Stage::Circuit, || self.circuit(id))?;
        let params = trace.time(Stage::Params, || {
            Ok::<_, Error>(
                self.params
                    .load(&id.parameter_files()?, &circuit.query_lengths())?,
            )
        })?;
        let memory = trace.time(Stage::MemoryWait, || self.reserve(&circuit))?;
        let synthesized = synthesize_partition(
            &*task.job,
            task.partition,
            circuit,
            Arc::clone(params.mapped()),
            SynthesisResources {
                pool: &self.pool,
                buffers: &self.buffers,
                throttle: self.throttle(),
            },
            trace,
        )?;
        Ok(Ready {
            synthesized,
            params,
            memory,
        })
    }

    /// The memory of a partition. Of the buffers kept from other partitions, those
    /// give way that this one will not use and that there is no room for.
    fn reserve(&self, circuit: &Circuit) -> Result<Reservation> {
        let memory = self.budget.reserve(partition_bytes(circuit))?;
        let room = self.budget.free_bytes() + buffer_bytes(circuit);
        self.buffers.shrink_to(room);
        Ok(memory)
    }

    /// Parameters that are not there are the caller's to mend, and known before
    /// anything else is done.
    fn check_parameters(&self, id: CircuitId) -> Result<()> {
        let files = id.parameter_files()?;
        let paths = [self.params.params_path(&files), self.params.vk_path(&files)];
        match paths.into_iter().find(|path| !path.is_file()) {
            Some(path) => Err(ParamsError::Missing { path }.into()),
            None => Ok(()),
        }
    }

    fn circuit(&self, id: CircuitId) -> Result<Arc<Circuit>> {
        self.circuits.get_or_make(id, || {
            let circuit = Circuit::cached(id, &self.config.srs.param_cache)?;
            self.budget.hold(circuit_bytes(&circuit))?;
            Ok(circuit)
        })
    }

    fn prove_until_closed(&self, device: usize) {
        let backend = &self.devices[device].backend;
        while let Some(ready) = self.synthesized.pop() {
            let SynthesizedTask { task, ready, since } = ready;
            task.trace(&self.timeline).waited(Stage::ReadyWait, since);
            if task.state.has_ended() {
                continue;
            }
            let result = unwinding_is_an_error("prove", || self.prove(backend, &task, ready));
            task.state.settle(task.partition, result);
        }
    }

    fn prove(
        &self,
        backend: &Arc<dyn Backend>,
        task: &Task,
        ready: Ready,
    ) -> Result<VerifiedProof> {
        let Ready {
            synthesized,
            params,
            memory,
        } = ready;
        let trace = task.trace(&self.timeline);
        let pending = prove_start(backend, synthesized, task.partition, trace)?;
        let proof = prove_finish(
            pending,
            &**backend,
            &*task.job,
            task.partition,
            params.prepared_key(),
            Randomness::from_os(),
            trace,
        );
        drop(memory);
        proof
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

fn cannot_start(error: impl std::fmt::Display) -> Error {
    Error::Start {
        problem: error.to_string(),
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

fn unwinding_is_an_error<T>(stage: &'static str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        Err(Error::Internal {
            stage,
            problem: message_of(&*panic),
        })
    })
}

fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
}
