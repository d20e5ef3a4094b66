//! The engine: what a caller sees of it, and how long its threads live.
//!
//! Not the flow of a partition, which is in [`crate::pipeline`], and not the
//! order of work, which is `cuzk-scheduler`'s. The invariants: a job that was
//! accepted ends; a panic in a stage ends its job and not its thread; no thread
//! outlives the engine, except one that waits for a device that never answers.
//!
//! # Reading order
//!
//! `submit` (how a request becomes a job) → `shared` (what the threads share) →
//! `stations` (the devices) → `needs` (memory, circuits, parameters) → `replaced`
//! (parameters that others take the place of) → `ends` (how jobs begin and end) →
//! `task` (a partition on its way) → `threads` (how the threads begin and end) →
//! `lanes` (their loops, in the order of the way) → `faults` (what becomes of a
//! partition that failed) → `watch` (devices that do not answer) → `upkeep` (files made
//! anew in the background) → `registry` (jobs by
//! number and by id) → `book`, `journal` and `bell` (jobs that outlive the process) → `status`.
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

mod bell;
mod book;
mod ends;
mod faults;
mod journal;
mod lanes;
mod needs;
mod registry;
mod replaced;
mod shared;
mod stations;
mod status;
mod submit;
mod task;
mod threads;
mod upkeep;
mod watch;

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use rayon::ThreadPool;

use crate::backend::{self, Device};
use crate::config::Config;
use crate::job::{JobHandle, JobState};
use crate::kinds::{Job, decode};
use crate::request::ProofRequest;
use crate::timeline::Timeline;
use crate::{Error, Result};

use shared::Shared;
pub use status::{DeviceStatus, JobStatus, MemoryStatus, Status};
use threads::Threads;

/// Reads a request: its bytes become a job whose statement was checked.
pub type Decoder = Arc<dyn Fn(&[u8]) -> Result<Arc<dyn Job>> + Send + Sync>;

fn decode_file(request: &[u8]) -> Result<Arc<dyn Job>> {
    Ok(Arc::from(decode(&ProofRequest::from_json(request)?)?))
}

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
    threads: Arc<Threads>,
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
        let threads = Arc::default();
        // Before the threads, so that they end if one of them cannot begin.
        let engine = Self { shared, threads };
        engine.threads.begin(&engine.shared)?;
        Ok(engine)
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
    /// because somebody mended it. It is tried again by itself, too, after a rest; but with
    /// circuits that did not fit on it only after this.
    ///
    /// # Errors
    /// No such device, or one that still owes the answer for which it was given up.
    pub fn reinstate(&self, device: usize) -> Result<()> {
        self.shared.reinstate(device)
    }

    /// Accepts no more jobs from now on: submissions end with
    /// [`Error::ShuttingDown`], and the jobs it has go on, but for those of the journal
    /// that were not read again yet, which go on at the next start. For whoever shares
    /// the engine, before it is shut down.
    pub fn close(&self) {
        self.shared.close();
    }

    /// Accepts no more jobs, finishes those it has, and ends the threads. A device
    /// that does not answer is waited for until it counts as stalled.
    pub fn shutdown(self) {
        self.threads.end(&self.shared);
    }

    /// Accepts no more jobs and finishes those it has, for as long as `patience`.
    /// What is left then ends with [`Error::ShuttingDown`] and is returned; a job
    /// in the journal goes on at the next start. What runs stops at its next chunk;
    /// a device has ten seconds to answer, after which the thread that waits for it
    /// is left behind and said so in the log. It ends when the device answers.
    #[must_use]
    pub fn shutdown_within(self, patience: Duration) -> Vec<JobHandle> {
        self.shared.close();
        // None for a patience without an end.
        let until = Instant::now().checked_add(patience);
        let mut left = Vec::new();
        for state in self.shared.registry.all_live() {
            let handle = self.handle(Arc::clone(&state));
            let remaining = until.map_or(Duration::MAX, |until| {
                until.saturating_duration_since(Instant::now())
            });
            let is_left = match handle.wait_for(remaining) {
                None => self.shared.end(&state, Error::ShuttingDown),
                // Of the journal, and not read again before this.
                Some(outcome) => outcome.is_err_and(|error| matches!(*error, Error::ShuttingDown)),
            };
            if is_left {
                left.push(handle);
            }
        }
        self.shared.watch.hurry();
        self.threads.end(&self.shared);
        left
    }
}

/// Dropping the engine ends what it has not proved: those jobs end with
/// [`Error::ShuttingDown`]. After [`Engine::shutdown`] nothing is left to end.
/// Devices are waited for as in [`Engine::shutdown_within`].
impl Drop for Engine {
    fn drop(&mut self) {
        self.shared.close();
        for state in self.shared.registry.all_live() {
            self.shared.end(&state, Error::ShuttingDown);
        }
        self.shared.watch.hurry();
        self.threads.end(&self.shared);
    }
}
