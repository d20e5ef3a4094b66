//! The threads of an engine: how they begin, and in which order they end.
//!
//! Not what they do: that is in `lanes`, `watch`, `upkeep` and `journal`. The invariants: a
//! thread ends when those that give it work have ended and nothing is left to do;
//! none outlives the engine, except one that waits for a device that never answers;
//! a finish worker that is lost to such a device is replaced.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use cuzk_scheduler::admission::Lane;

use super::shared::{Shared, cannot_start};
use super::watch::Watch;
use crate::Result;

/// By what must have ended before they can.
#[derive(Debug, Default)]
pub(super) struct Threads {
    resuming: Crew,
    admitted: Crew,
    devices: Crew,
    finishing: Crew,
    watch: Crew,
    upkeep: Crew,
}

/// Threads that end together.
#[derive(Debug, Default)]
struct Crew(Mutex<Vec<JoinHandle<()>>>);

impl Threads {
    /// # Errors
    /// When the system has no more threads, or the journal cannot be read.
    pub(super) fn begin(self: &Arc<Self>, shared: &Arc<Shared>) -> Result<()> {
        let config = &shared.config;
        for worker in 0..config.synthesis.partition_workers {
            let name = format!("cuzk-synth-{worker}");
            let work = |shared: &Shared| shared.synthesize_until_over();
            self.admitted.spawn(shared, name, work)?;
        }
        for (name, lane) in [
            ("cuzk-critical", Lane::Critical),
            ("cuzk-retry", Lane::Retry),
        ] {
            let work = move |shared: &Shared| shared.prove_alone_until_over(lane);
            self.admitted.spawn(shared, name.to_owned(), work)?;
        }
        for device in 0..shared.stations.devices().len() {
            for worker in 0..config.gpus.gpu_workers_per_device {
                let name = format!("cuzk-dev{device}-{worker}");
                let work = move |shared: &Shared| shared.start_until_closed(device);
                self.devices.spawn(shared, name, work)?;
            }
        }
        for worker in 0..config.pipeline.finish_workers {
            self.begin_finish_worker(shared, worker)?;
        }
        let (threads, lent) = (Arc::clone(self), Arc::clone(shared));
        let replace = move |worker| threads.begin_finish_worker(&lent, worker);
        let work = move |shared: &Shared| shared.watch_until_closed(replace);
        self.watch.spawn(shared, "cuzk-watch".to_owned(), work)?;
        let work = |shared: &Shared| shared.keep_up_until_closed();
        self.upkeep.spawn(shared, "cuzk-upkeep".to_owned(), work)?;
        self.begin_resuming(shared)
    }

    fn begin_finish_worker(&self, shared: &Arc<Shared>, worker: usize) -> Result<()> {
        let name = format!("cuzk-finish-{worker}");
        let work = |shared: &Shared| shared.finish_until_closed();
        self.finishing.spawn(shared, name, work)
    }

    fn begin_resuming(&self, shared: &Arc<Shared>) -> Result<()> {
        let Some(book) = shared.book() else {
            return Ok(());
        };
        let left = shared.find_left(&book)?;
        let work = move |shared: &Shared| shared.resume(&book, left);
        self.resuming.spawn(shared, "cuzk-resume".to_owned(), work)
    }

    /// Accepts no more work, finishes what there is, and ends the threads.
    pub(super) fn end(&self, shared: &Shared) {
        shared.close();
        shared.end_upkeep();
        self.upkeep.join();
        self.resuming.join();
        self.admitted.join();
        shared.ready.close();
        self.devices.join_but_for_the_lost(&shared.watch);
        shared.finishing.close();
        self.finishing.join_but_for_the_lost(&shared.watch);
        shared.watch.close();
        self.watch.join();
        shared.close_book();
    }
}

impl Crew {
    fn spawn(
        &self,
        shared: &Arc<Shared>,
        name: String,
        work: impl FnOnce(&Shared) + Send + 'static,
    ) -> Result<()> {
        let shared = Arc::clone(shared);
        let builder = std::thread::Builder::new().name(name);
        let worker = builder.spawn(move || work(&shared));
        self.lock().push(worker.map_err(cannot_start)?);
        Ok(())
    }

    fn join(&self) {
        let workers = std::mem::take(&mut *self.lock());
        workers.into_iter().for_each(join);
    }

    /// Waits for those who work for devices, but not for one whose device was given
    /// up: what took its place is here by then.
    fn join_but_for_the_lost(&self, watch: &Watch) {
        loop {
            let Some(worker) = self.lock().pop() else {
                return;
            };
            if watch.has_ended(worker.thread().id()) {
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

    fn lock(&self) -> MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn join(worker: JoinHandle<()>) {
    if worker.join().is_err() {
        tracing::error!("a thread of the engine panicked outside a stage; please report it");
    }
}
