//! The steps of callers, of operators and of the machine in a run.
//!
//! The invariant: a submission is refused only for a reason that there is.

use std::sync::Arc;
use std::time::Duration;

use cuzk_journal::End;
use cuzk_scheduler::priority::Priority;
use rand::Rng;

use super::bench::{KINDS, id};
use super::checks::{Tracked, Violation};
use super::disk::{Row, Trouble, pass};
use super::request::{Flaw, Request};
use super::steps::Done;
use super::world::World;
use crate::Error;
use crate::engine::preload;
use crate::engine::status::Status;
use crate::engine::submission::submit_request;
use crate::job::{JobOptions, JobState, Owner as _, priority_of};

const TROUBLES: [Trouble; 6] = [
    Trouble::None,
    Trouble::Full,
    Trouble::Torn,
    Trouble::Flaky,
    Trouble::Flaky,
    Trouble::Slow,
];

impl World<'_> {
    /// Makes any one step that is not a worker's.
    pub(super) fn any_call(&mut self) -> Done {
        match self.rng.gen_range(0..32) {
            0..10 => self.submit(),
            10..12 if self.faults.flood => {
                self.report.floods += 1;
                (0..5).try_for_each(|_| self.submit())
            }
            12..16 if self.faults.cancels => {
                self.cancel();
                Ok(())
            }
            16..19 => self.set_priority(),
            19..23 => {
                let time = Duration::from_millis(self.rng.gen_range(0..10_000));
                pass(time);
                Ok(())
            }
            23 if self.faults.leaps => {
                self.report.leaps += 1;
                let time = Duration::from_secs(self.rng.gen_range(0..3600));
                pass(time);
                self.set_wall();
                Ok(())
            }
            24..26 if self.faults.disk => {
                let trouble = TROUBLES[self.rng.gen_range(0..TROUBLES.len())];
                self.disk.lock().trouble = trouble;
                Ok(())
            }
            26 if self.faults.kills => self.kill(),
            27..29 if self.faults.drains => {
                let drains = self.rng.gen_bool(0.5);
                self.report.drains += u64::from(drains);
                self.life.core.dispatch.drain(drains);
                Ok(())
            }
            29 => {
                let device = self.rng.gen_range(0..self.life.devices.len());
                // A device that owes an answer is not.
                let _ = self.life.core.reinstate(device);
                Ok(())
            }
            30 if self.faults.evictions => {
                let kind = KINDS[self.rng.gen_range(0..KINDS.len())];
                // One that is in use is not.
                let _ = preload::evict(&self.life.core, id(kind));
                Ok(())
            }
            31 => {
                // An operator looks.
                let _ = Status::of(&self.life.core);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Submits any request.
    fn submit(&mut self) -> Done {
        // No two jobs come at the same time, so that their order is known.
        let passed = Duration::from_nanos(self.rng.gen_range(1..1_000_000));
        pass(passed);
        let mut request = Request::random(&mut self.rng, self.faults.flaws);
        let mut options = JobOptions::default();
        if self.rng.gen_bool(0.5) {
            let number = self.rng.gen_range(0..self.named.len());
            options.id = Some(format!("job {number}"));
            options.waits = self.rng.gen_bool(0.5);
            // A caller can have mixed up its ids.
            if !(self.faults.flaws && self.rng.gen_ratio(1, 8)) {
                request = self.named[number];
            }
        }
        if self.faults.deadlines && self.rng.gen_ratio(1, 3) {
            options.deadline = Some(Duration::from_secs(self.rng.gen_range(0..60)));
        }
        self.submit_with(request, options)
    }

    fn submit_with(&mut self, request: Request, options: JobOptions) -> Done {
        let core = &self.life.core;
        let (bytes, priority) = (request.to_bytes(), priority_of(request.kind));
        let decode = || Request::decode(&bytes);
        let before = core.dispatch.admission.usage().waiting;
        let row = options.id.as_ref().and_then(|id| self.disk.row(id));
        let submission = Submission {
            request,
            options: options.clone(),
            fits: before + request.partitions <= core.config.jobs.queued_partitions,
            row,
        };
        match submit_request(core, (&bytes).into(), options, priority, decode) {
            Ok(job) => self.accepted(submission, job),
            Err(error) => {
                self.report.refused += 1;
                self.refused(&submission, &error)
            }
        }
    }

    fn accepted(&mut self, submission: Submission, job: Arc<JobState>) -> Done {
        let Submission {
            request, options, ..
        } = &submission;
        let mut jobs = self.jobs.iter();
        if let Some(known) = jobs.find(|tracked| Arc::ptr_eq(&tracked.job, &job)) {
            if known.request == *request {
                self.report.attached += 1;
                return Ok(());
            }
            return Err(Violation::End(format!(
                "{request:?} is {:?}",
                known.request
            )));
        }
        let is_proved = job.outcome().is_some_and(|outcome| outcome.is_ok());
        if submission.was_proved() && !is_proved {
            return Err(Violation::ProvedAgain(format!("{:?}", options.id)));
        }
        if !job.has_ended() && !submission.fits && !submission.can_wait() {
            return Err(Violation::Queue(format!(
                "{request:?} is accepted by a full queue"
            )));
        }
        let has_deadline = options.deadline.is_some();
        self.report.accepted += 1;
        self.jobs.push(Tracked::new(job, *request, has_deadline));
        Ok(())
    }

    fn refused(&self, submission: &Submission, error: &Error) -> Done {
        let Submission {
            request, options, ..
        } = submission;
        let disk_fails = !matches!(self.disk.lock().trouble, Trouble::None | Trouble::Slow);
        let is_right = match error {
            Error::Busy { .. } => !submission.fits && !submission.can_wait(),
            Error::Conflict { .. } => self.is_of_another(submission),
            Error::Journal(_) => disk_fails && options.id.is_some(),
            Error::TooLate { .. } => options.deadline.is_some(),
            Error::OverBudget(_) => true,
            Error::ShuttingDown => self.life.core.dispatch.is_draining() && !submission.can_wait(),
            Error::Internal { .. } => request.flaw == Flaw::DecodePanics,
            error => error.is_input() && request.flaw == Flaw::Malformed,
        };
        if is_right {
            return Ok(());
        }
        Err(Violation::Queue(format!(
            "{submission:?} is refused with {error:?}"
        )))
    }

    /// Returns true if the id of a submission is another request's.
    fn is_of_another(&self, submission: &Submission) -> bool {
        let id = submission.options.id.as_deref();
        let of_row = submission
            .row
            .as_ref()
            .map(|row| Request::from_bytes(&row.request));
        let of_jobs = self.jobs.iter().filter(|tracked| tracked.job.id() == id);
        let others = of_jobs.map(|tracked| tracked.request).chain(of_row);
        others.into_iter().any(|other| other != submission.request)
    }

    fn any_job(&mut self) -> Option<usize> {
        (!self.jobs.is_empty()).then(|| self.rng.gen_range(0..self.jobs.len()))
    }

    fn cancel(&mut self) {
        if let Some(job) = self.any_job() {
            let tracked = &mut self.jobs[job];
            tracked.is_cancelled |= self.life.core.cancel(&tracked.job);
        }
    }

    fn set_priority(&mut self) -> Done {
        let Some(job) = self.any_job() else {
            return Ok(());
        };
        let priority = Priority::ALL[self.rng.gen_range(0..Priority::ALL.len())];
        let tracked = &mut self.jobs[job];
        // An attempt that runs keeps the place that it had, and may come back to it.
        let mut runs = false;
        let number = tracked.job.number();
        let is_of_job = |attempt: &crate::engine::attempt::Attempt| attempt.job.number() == number;
        self.life
            .visit_in_hands(|attempt| runs |= is_of_job(attempt));
        let finishing = &self.life.core.dispatch.finishing;
        finishing.visit(|finishing| runs |= is_of_job(&finishing.attempt));
        tracked.has_old_places |= runs;
        self.life.core.set_priority(&tracked.job, priority);
        if tracked.job.priority() == priority {
            return Ok(());
        }
        Err(Violation::Order(format!(
            "{number} does not have the priority {priority}"
        )))
    }
}

/// A submission, and what there was before it.
#[derive(Debug)]
struct Submission {
    request: Request,
    options: JobOptions,
    /// True if its partitions fit into the queue.
    fits: bool,
    /// The row that the journal had of its id.
    row: Option<Row>,
}

impl Submission {
    /// Returns true if it waits in the journal where there is no room.
    fn can_wait(&self) -> bool {
        self.options.waits && self.options.id.is_some()
    }

    /// Returns true if the journal has the proof.
    fn was_proved(&self) -> bool {
        let row = self.row.as_ref();
        row.is_some_and(|row| matches!(row.end, Some(End::Done(_))))
    }
}
