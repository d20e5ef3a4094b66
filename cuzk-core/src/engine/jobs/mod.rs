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

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cuzk_scheduler::clock;

use self::ended::EndedJobs;
use self::recorder::JobRecorder;
use self::registry::Registry;
use self::waiting::WaitingJobs;
use super::signal::Signal;
use crate::config;
use crate::error::ErrorCode;
use crate::job::JobState;
use crate::metrics::{self, Outcome, Refusal};
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
    /// True if the lines of each job are of level debug.
    logs_less: AtomicBool,
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
            logs_less: AtomicBool::new(false),
        })
    }

    /// Returns the recorder, if jobs are kept in a journal.
    pub(super) fn recorder(&self) -> Option<Arc<JobRecorder>> {
        self.lock_recorder().clone()
    }

    /// Keeps jobs in the journal of `recorder` from now on.
    #[cfg(test)]
    pub(super) fn record_in(&self, recorder: JobRecorder) {
        *self.lock_recorder() = Some(Arc::new(recorder));
    }

    /// Lets go of the journal's file.
    pub(super) fn close_recorder(&self) {
        if let Some(recorder) = self.lock_recorder().take() {
            recorder.write_unwritten();
        }
    }

    /// Moves a job that has ended to the kept results, and counts it. Its caller is told
    /// after that, and finds it in the status.
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
        metrics::job_ended(kind, outcome, clock::since(job.accepted()));
        self.log_end(job, outcome);
        job.tell();
    }

    /// Writes the lines of each job at level debug from now on.
    pub(super) fn log_less(&self) {
        self.logs_less.store(true, Ordering::Relaxed);
    }

    /// Writes the line for a job that was accepted. The fields of this line and of the next
    /// have the names and values of the metrics' labels. `request_bytes` is the size of what
    /// was sent, if it was bytes.
    pub(super) fn log_accepted(&self, job: &JobState, request_bytes: Option<usize>) {
        macro_rules! line {
            ($level:ident) => {
                tracing::$level!(
                    parent: job.caller(),
                    job = job.number(),
                    id = job.id(),
                    kind = job.circuit().kind.name(),
                    sector_size = %job.circuit().sector_size,
                    priority = job.priority().name(),
                    partitions = job.progress().partitions,
                    request_bytes,
                    "the job is accepted"
                )
            };
        }
        if self.logs_less.load(Ordering::Relaxed) {
            line!(debug);
        } else {
            line!(info);
        }
    }

    /// Writes the line for a job that was not accepted. A full queue and an end are told to the
    /// caller, who calls again, so their lines are of level debug.
    pub(super) fn log_not_accepted(
        &self,
        (kind, id): (&'static str, Option<&str>),
        reason: Refusal,
        error: &Error,
    ) {
        macro_rules! line {
            ($level:ident) => {
                tracing::$level!(
                    id,
                    kind,
                    reason = reason.name(),
                    code = %ErrorCode::of(error),
                    %error,
                    "a job is not accepted"
                )
            };
        }
        let passes = matches!(reason, Refusal::Busy | Refusal::ShuttingDown);
        if passes || self.logs_less.load(Ordering::Relaxed) {
            line!(debug);
        } else {
            line!(info);
        }
    }

    /// Writes the line for a job that was accepted and had no place in the queue after all.
    pub(super) fn log_refused(job: &JobState, error: &Error) {
        tracing::warn!(
            parent: job.caller(),
            job = job.number(),
            id = job.id(),
            code = %ErrorCode::of(error),
            %error,
            "the job is refused after all"
        );
    }

    /// Writes the line for a job's end.
    fn log_end(&self, job: &JobState, outcome: Outcome) {
        let times = job.times();
        let end = job.outcome();
        let error = end.as_ref().and_then(|end| end.as_ref().err());
        macro_rules! line {
            ($level:ident) => {
                tracing::$level!(
                    parent: job.caller(),
                    job = job.number(),
                    id = job.id(),
                    kind = job.circuit().kind.name(),
                    sector_size = %job.circuit().sector_size,
                    outcome = outcome.name(),
                    total_s = times.total.as_secs_f64(),
                    queue_wait_s = times.queue_wait.as_secs_f64(),
                    srs_load_s = times.srs_load.as_secs_f64(),
                    synthesis_s = times.synthesis.as_secs_f64(),
                    device_s = times.device.as_secs_f64(),
                    code = error.map(|error| ErrorCode::of(error).to_string()),
                    error = error.map(|error| error.to_string()),
                    "the job has ended"
                )
            };
        }
        if self.logs_less.load(Ordering::Relaxed) {
            line!(debug);
        } else {
            line!(info);
        }
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

/// Returns the span of log lines that are written while a thread works for this job. It lies
/// within the span of the caller who submitted the job.
pub(super) fn log_span(number: u64, id: Option<&str>, caller: &tracing::Span) -> tracing::Span {
    tracing::error_span!(parent: caller, "job", job = number, id)
}
