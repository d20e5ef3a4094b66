//! The jobs of the daemon, and the calls that wait for them.
//!
//! Not the engine, which proves and keeps them. The invariants:
//!
//! * A job that no call waits for any more goes on, but gives way to others.
//! * A WinningPoSt that no call waits for is cancelled, because it is of no use later.
//! * A job that was submitted without waiting keeps its priority.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cuzk_core::job::{RequestBytes, priority_of};
use cuzk_core::{Engine, JobHandle, JobOptions, Priority, ProofKind};
use tokio::sync::Semaphore;

use crate::blocking::blocking_at_once;
use crate::intake::Way;
use crate::request::Submission;

/// PoSts that are taken at a time. The engine decodes them in the order of their urgency;
/// this bounds the threads that wait for it.
const POSTS_AT_A_TIME: usize = 32;

/// PoReps and SnapDeals that are taken at a time. Each has a copy of up to 256 MiB meanwhile. Those
/// that copy or digest when a WinningPoSt begins take the cores from it until they are done.
const SEALING_AT_A_TIME: usize = 2;

/// Entries of jobs that have ended are looked for when there are as many.
const SWEEP_AT: usize = 1024;

/// The jobs that calls wait for.
#[derive(Debug)]
pub(crate) struct Jobs {
    engine: Arc<Engine>,
    way: Way,
    waited: Mutex<HashMap<u64, Waited>>,
    /// PoSts have places of their own, so that they do not wait behind PoReps.
    places: [Semaphore; 2],
}

/// How a job is waited for.
#[derive(Debug)]
struct Waited {
    job: JobHandle,
    /// The calls that wait for it.
    calls: usize,
    /// True if a client submitted it without waiting. It expects its end all the same.
    is_expected: bool,
    /// Its priority while somebody waits for it.
    priority: Priority,
}

/// How a client submits a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// The call waits for the end of the job.
    Wait,
    /// The call returns, and the client asks later.
    Leave,
}

/// A call that waits for a job. Dropped, it waits no more.
#[derive(Debug)]
pub(crate) struct Waiting {
    jobs: Arc<Jobs>,
    job: JobHandle,
}

impl Jobs {
    pub(crate) fn new(engine: Arc<Engine>, way: Way) -> Self {
        Self {
            engine,
            way,
            waited: Mutex::default(),
            places: [
                Semaphore::new(SEALING_AT_A_TIME),
                Semaphore::new(POSTS_AT_A_TIME),
            ],
        }
    }

    /// Gives a submission to the engine, which decodes and checks it on threads that may
    /// block. `held` is dropped once the engine has the job. A call that is dropped
    /// meanwhile counts as one that came and went.
    ///
    /// # Errors
    /// As [`Engine::submit_with`].
    pub(crate) async fn submit(
        self: &Arc<Self>,
        submission: Submission,
        manner: Manner,
        held: impl Send + 'static,
    ) -> cuzk_core::Result<Waiting> {
        let is_post = !submission.may_wait();
        let is_critical = submission.kind == ProofKind::WinningPost;
        // No thread is waited for where a block can be lost.
        let place = if is_critical {
            None
        } else {
            let place = self.places[usize::from(is_post)].acquire().await;
            self.way.give().await;
            place.ok()
        };
        let jobs = Arc::clone(self);
        let taken = blocking_at_once(move || {
            let waits = submission.may_wait();
            // The engine decodes in this order. It cannot look into a message for the kind.
            let priority = submission.priority.unwrap_or(priority_of(submission.kind));
            let input = submission.into_input();
            if !is_critical {
                jobs.way.give_here();
            }
            let request = RequestBytes::new(&input.bytes);
            let options = JobOptions {
                waits,
                id: Some(input.job_id(&request)),
                priority: Some(priority),
                deadline: None,
            };
            let job = jobs.engine.submit_bytes(request, options)?;
            drop(held);
            Ok(jobs.attach(job, manner))
        });
        let taken = taken.await;
        drop(place);
        taken.flatten()
    }

    /// Waits for a job that the engine knows.
    pub(crate) fn find(self: &Arc<Self>, id: &str) -> Option<Waiting> {
        let job = self.engine.job(id)?;
        // A client that asks for a job by its name submitted it, perhaps before a restart.
        Some(self.attach(job, Manner::Leave))
    }

    /// Ends a job, for all who wait for it. Returns true if it had not ended.
    pub(crate) fn cancel(&self, id: &str) -> bool {
        self.engine.job(id).is_some_and(|job| job.cancel())
    }

    fn attach(self: &Arc<Self>, job: JobHandle, manner: Manner) -> Waiting {
        let mut waited = self.lock();
        if waited.len() >= SWEEP_AT {
            waited.retain(|_, entry| entry.calls > 0 || entry.job.poll().is_none());
        }
        let entry = waited.entry(job.number()).or_insert_with(|| Waited {
            job: job.clone(),
            calls: 0,
            is_expected: false,
            priority: job.priority(),
        });
        entry.is_expected |= manner == Manner::Leave;
        entry.calls += 1;
        // It may have been given up before.
        if entry.calls == 1 && entry.job.priority() != entry.priority {
            entry.job.set_priority(entry.priority);
        }
        drop(waited);
        Waiting {
            jobs: Arc::clone(self),
            job,
        }
    }

    fn leave(&self, job: &JobHandle) {
        let mut waited = self.lock();
        let Some(entry) = waited.get_mut(&job.number()) else {
            return;
        };
        entry.calls -= 1;
        if entry.calls > 0 {
            return;
        }
        if job.poll().is_some() {
            waited.remove(&job.number());
        } else if !entry.is_expected {
            give_up(job);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Waited>> {
        self.waited.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Treats a job whose last caller has gone away. The caller comes back with the same
/// input, unless it was for a block, which is lost by then.
fn give_up(job: &JobHandle) {
    if job.circuit().kind == ProofKind::WinningPost {
        job.cancel();
        tracing::warn!(
            id = job.id(),
            "the client has gone away; the WinningPoSt is cancelled"
        );
    } else {
        job.set_priority(Priority::Low);
        tracing::info!(
            id = job.id(),
            "the client has gone away; the job goes on at low priority and its proof is kept"
        );
    }
}

impl Waiting {
    pub(crate) fn job(&self) -> &JobHandle {
        &self.job
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.jobs.leave(&self.job);
    }
}
