//! The jobs of an engine: ids, states, results, and what the journal has to be told.
//!
//! Not a queue: where the partitions of a job wait is the dispatcher's. The invariants:
//! a job with an id is in the journal before its submission returns; a job ends once,
//! and its end is written before anyone is told.

pub(super) mod ended;
pub(super) mod recorder;
pub(super) mod registry;
pub(super) mod stored;
pub(super) mod waiting;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use self::ended::EndedJobs;
use self::recorder::JobRecorder;
use self::registry::Registry;
use self::waiting::WaitingJobs;
use super::signal::Signal;
use crate::config;
use crate::job::JobState;
use crate::metrics::{self, Outcome};
use crate::{Error, Result};

pub(super) struct Jobs {
    pub(super) registry: Registry,
    /// Jobs that wait in the journal for their turn.
    pub(super) waiting: WaitingJobs,
    /// The last jobs that ended.
    pub(super) ended: EndedJobs,
    /// Let go of when the engine ends, even if a thread that was left behind keeps the rest.
    recorder: Mutex<Option<Arc<JobRecorder>>>,
    /// Notified when a job has ended and when the engine closes.
    changed: Signal,
}

impl Jobs {
    /// # Errors
    /// When the journal that the configuration names cannot be opened.
    pub(super) fn new(config: &config::Jobs) -> Result<Self> {
        Ok(Self {
            registry: Registry::new(config.results_kept, config.results_kept_for),
            waiting: WaitingJobs::default(),
            ended: EndedJobs::default(),
            recorder: Mutex::new(JobRecorder::open(config)?),
            changed: Signal::default(),
        })
    }

    /// Returns the recorder, if jobs are kept in a journal.
    pub(super) fn recorder(&self) -> Option<Arc<JobRecorder>> {
        self.lock_recorder().clone()
    }

    /// Lets go of the journal's file.
    pub(super) fn close_recorder(&self) {
        if let Some(recorder) = self.lock_recorder().take() {
            recorder.write_unwritten();
        }
    }

    /// Moves a job that has ended to the kept results, and counts it.
    pub(super) fn note_end(&self, job: &Arc<JobState>) {
        self.registry.ended(job);
        self.waiting.remove(job.number());
        let outcome = match job.outcome() {
            Some(Ok(_)) | None => Outcome::Proved,
            Some(Err(error)) => match &*error {
                Error::Cancelled => Outcome::Cancelled,
                Error::ShuttingDown => Outcome::ShutDown,
                _ => Outcome::Failed,
            },
        };
        self.ended.note(job, outcome);
        let kind = job.circuit().kind.name();
        metrics::job_ended(kind, outcome, job.accepted().elapsed());
    }

    /// Has the threads that wait for a change of jobs look again.
    pub(super) fn notify(&self) {
        self.changed.notify();
    }

    /// Waits until `is_done` returns true, for at most `timeout`.
    pub(super) fn wait(&self, timeout: Duration, is_done: impl Fn() -> bool) {
        self.changed.wait(timeout, is_done);
    }

    fn lock_recorder(&self) -> MutexGuard<'_, Option<Arc<JobRecorder>>> {
        self.recorder.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
