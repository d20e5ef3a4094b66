//! The threads of an engine: how they begin, and in which order they end.
//!
//! Not their work, which is a file for each kind of worker. The invariants: a thread ends
//! when those that give it work have ended and nothing is left to do; no thread outlives
//! the engine, except one that waits for a device that never answers; a finish worker
//! that is lost to such a device is replaced.

mod admission;
mod batch;
mod dedicated;
mod device;
mod digests;
mod finish;
mod multiples;
mod resume;
#[cfg(test)]
mod simulation;
mod synthesis;
mod watchdog;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use cuzk_scheduler::admission::Lane;

pub(super) use self::admission::learn;
use super::Engine;
use super::core::Core;
use super::fleet::watchdog::Watchdog;
use super::start::no_thread;
use crate::Result;
use crate::error::ErrorCode;

/// The threads, by what must have ended before they can.
#[derive(Debug, Default)]
pub(super) struct Workers {
    resume: Crew,
    admitted: Crew,
    devices: Crew,
    finishing: Crew,
    watchdog: Crew,
    /// Threads of work that no job waits for.
    background: Crew,
}

/// Threads that end together.
#[derive(Debug, Default)]
struct Crew(Mutex<Vec<JoinHandle<()>>>);

/// Begins the threads of an engine.
pub(super) fn begin(core: Arc<Core>) -> Result<Engine> {
    let workers = Arc::default();
    // Made before the threads, so that they end if one of them cannot begin.
    let engine = Engine { core, workers };
    engine.workers.begin(&engine.core)?;
    Ok(engine)
}

impl Workers {
    /// Starts all threads.
    ///
    /// # Errors
    /// When the system has no more threads, or the journal cannot be read.
    pub(super) fn begin(self: &Arc<Self>, core: &Arc<Core>) -> Result<()> {
        let config = &core.config;
        for worker in 0..config.synthesis.partition_workers {
            let name = format!("cuzk-synth-{worker}");
            self.admitted.spawn(core, name, synthesis::run)?;
        }
        for (name, lane) in [
            ("cuzk-critical", Lane::Critical),
            ("cuzk-retry", Lane::Retry),
        ] {
            let work = move |core: &Core| dedicated::run(core, lane);
            self.admitted.spawn(core, name.to_owned(), work)?;
        }
        for device in 0..core.fleet.devices().len() {
            for worker in 0..config.gpus.gpu_workers_per_device {
                let name = format!("cuzk-dev{device}-{worker}");
                let work = move |core: &Core| device::run(core, device);
                self.devices.spawn(core, name, work)?;
            }
        }
        for worker in 0..config.pipeline.finish_workers {
            self.begin_finish_worker(core, worker)?;
        }
        let (workers, lent) = (Arc::clone(self), Arc::clone(core));
        let replace = move |worker| workers.begin_finish_worker(&lent, worker);
        let work = move |core: &Core| watchdog::run(core, replace);
        self.watchdog.spawn(core, "cuzk-watch".to_owned(), work)?;
        let name = "cuzk-multiples".to_owned();
        self.background.spawn(core, name, multiples::run)?;
        let name = "cuzk-digests".to_owned();
        self.background.spawn(core, name, digests::run)?;
        self.begin_resuming(core)
    }

    fn begin_finish_worker(&self, core: &Arc<Core>, worker: usize) -> Result<()> {
        let name = format!("cuzk-finish-{worker}");
        self.finishing.spawn(core, name, finish::run)
    }

    fn begin_resuming(&self, core: &Arc<Core>) -> Result<()> {
        let Some(recorder) = core.jobs.recorder() else {
            return Ok(());
        };
        resume::find_left(core, &recorder)?;
        let work = move |core: &Core| resume::run(core, &recorder);
        self.resume.spawn(core, "cuzk-resume".to_owned(), work)
    }

    /// Accepts no more work, finishes all that was accepted, and ends the threads.
    pub(super) fn end(&self, core: &Core) {
        core.close();
        multiples::stop(core);
        digests::stop(core);
        self.background.join();
        self.resume.join();
        self.admitted.join();
        core.dispatch.ready.close();
        self.devices.join_all_but_the_lost(&core.fleet.watchdog);
        core.dispatch.finishing.close();
        self.finishing.join_all_but_the_lost(&core.fleet.watchdog);
        core.fleet.watchdog.close();
        self.watchdog.join();
        core.jobs.close_recorder();
    }
}

impl Crew {
    fn spawn(
        &self,
        core: &Arc<Core>,
        name: String,
        work: impl FnOnce(&Core) + Send + 'static,
    ) -> Result<()> {
        let core = Arc::clone(core);
        let builder = std::thread::Builder::new().name(name);
        let worker = builder.spawn(move || work(&core));
        self.lock().push(worker.map_err(no_thread)?);
        Ok(())
    }

    fn join(&self) {
        let workers = std::mem::take(&mut *self.lock());
        workers.into_iter().for_each(join);
    }

    /// Waits for the threads that work for devices, but not for one whose device was given
    /// up: its replacement has started by then.
    fn join_all_but_the_lost(&self, watchdog: &Watchdog) {
        loop {
            let Some(worker) = self.lock().pop() else {
                return;
            };
            if watchdog.has_ended(worker.thread().id()) {
                join(worker);
            } else {
                let thread = worker.thread().name().unwrap_or_default();
                tracing::error!(
                    thread,
                    code = %ErrorCode::Stalled,
                    "its device does not answer; the thread is left behind with the memory of \
                     one partition"
                );
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn join(worker: JoinHandle<()>) {
    if worker.join().is_err() {
        let code = ErrorCode::Internal;
        tracing::error!(%code, "a thread of the engine panicked outside a stage; please report it");
    }
}
