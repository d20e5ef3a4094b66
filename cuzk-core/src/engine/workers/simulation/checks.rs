//! The properties that hold after every step of a run, and at its end.
//!
//! The numbers are those of the invariants in ARCHITECTURE.md.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::Arc;

use cuzk_filecoin::verify::PARTITION_PROOF_BYTES;
use cuzk_journal::End;
use cuzk_scheduler::admission::Lane;

use super::request::{Flaw, Request};
use super::world::World;
use crate::Error;
use crate::engine::attempt::Attempt;
use crate::job::{JobState, Outcome};
use crate::verdicts::verdict_on_bytes;

/// A property that does not hold.
#[derive(Debug)]
pub(super) enum Violation {
    /// 1. Bytes left the engine that the verifier does not accept.
    WrongProof(String),
    /// 2. A queue holds more than its capacity, or was said to be full and was not.
    Queue(String),
    /// 3. A job ended twice, in another way than it had, or not at all.
    End(String),
    /// 3. A partition is in no place, or in two, or its job has ended.
    Attempts(String),
    /// 4. A panic outside of a job's work.
    Panic(String),
    /// 10. A job that was accepted is not in the journal, or not as it is.
    Journal(String),
    /// 11. An input was proved again while its result was kept.
    ProvedAgain(String),
    /// More memory is charged than there is, or some of it is never given back.
    Memory(String),
    /// A device was given a partition that it must not have.
    Device(String),
    /// A partition began after its deadline.
    Late(String),
    /// Work was not taken in its order.
    Order(String),
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (property, problem) = match self {
            Self::WrongProof(problem) => ("a wrong proof", problem),
            Self::Queue(problem) => ("a queue", problem),
            Self::End(problem) => ("the end of a job", problem),
            Self::Attempts(problem) => ("attempts", problem),
            Self::Panic(problem) => ("a panic", problem),
            Self::Journal(problem) => ("the journal", problem),
            Self::ProvedAgain(problem) => ("proved again", problem),
            Self::Memory(problem) => ("memory", problem),
            Self::Device(problem) => ("a device", problem),
            Self::Late(problem) => ("a late beginning", problem),
            Self::Order(problem) => ("the order", problem),
        };
        write!(f, "{property}: {problem}")
    }
}

type Checked = Result<(), Violation>;

/// A job that was accepted in this life of the engine.
pub(super) struct Tracked {
    pub(super) job: Arc<JobState>,
    pub(super) request: Request,
    /// True if its submitter has cancelled it.
    pub(super) is_cancelled: bool,
    pub(super) has_deadline: bool,
    /// True if attempts of it can have the places of an earlier priority.
    pub(super) has_old_places: bool,
    pub(super) outcome: Option<Outcome>,
}

impl Tracked {
    pub(super) fn new(job: Arc<JobState>, request: Request, has_deadline: bool) -> Self {
        Self {
            job,
            request,
            has_deadline,
            is_cancelled: false,
            has_old_places: false,
            outcome: None,
        }
    }
}

/// Partitions of jobs, by the number of the job.
type Partitions = BTreeMap<(u64, usize), usize>;

impl World<'_> {
    /// Checks what holds after every step.
    pub(super) fn check(&mut self) -> Checked {
        self.check_ends()?;
        self.check_attempts()?;
        self.check_kept()?;
        self.check_queues()?;
        self.check_memory()
    }

    fn check_ends(&mut self) -> Checked {
        let failures = self.disk.lock().failures;
        let mut ended = 0;
        for tracked in &mut self.jobs {
            let outcome = tracked.job.outcome();
            ended += u64::from(outcome.is_some());
            match (&tracked.outcome, outcome) {
                (None, None) => {
                    let is_kept = |id| self.disk.row(id).is_some_and(|row| row.end.is_none());
                    if !tracked.job.id().is_none_or(is_kept) {
                        return Err(Violation::Journal(format!(
                            "job {:?} goes on and is not pending",
                            tracked.job.id()
                        )));
                    }
                }
                (None, Some(outcome)) => {
                    check_outcome(tracked, &outcome, self.cpu_fails)?;
                    *self.report.count_of(&outcome) += 1;
                    tracked.outcome = Some(outcome);
                    if failures == self.failures_before {
                        check_written(tracked, &self.disk.row(tracked.job.id().unwrap_or("")))?;
                    }
                }
                (Some(before), Some(now)) if is_same(before, &now) => {}
                (Some(before), now) => {
                    return Err(Violation::End(format!("{before:?}, and then {now:?}")));
                }
            }
        }
        self.failures_before = failures;
        let totals = self.life.core.jobs.ended.totals();
        let totals = totals.map(|of| of.proved + of.failed + of.cancelled);
        let totals: u64 = totals.iter().sum();
        if totals != ended {
            return Err(Violation::End(format!("{ended} jobs ended {totals} times")));
        }
        Ok(())
    }

    /// Each partition that is not proved has one attempt, and no other has one that waits.
    fn check_attempts(&self) -> Checked {
        let core = &self.life.core;
        let mut there = Partitions::new();
        let mut over = None;
        let dispatch = &core.dispatch;
        let mut count = |attempt: &Attempt, waits: bool| {
            if attempt.job.has_ended() {
                over = over.or(waits.then_some(attempt.job.number()));
            } else {
                *there
                    .entry((attempt.job.number(), attempt.partition))
                    .or_default() += 1;
            }
        };
        let admission = &dispatch.admission;
        admission.visit_waiting(|attempt, _| count(attempt, true));
        dispatch.ready.visit(|ready| count(&ready.attempt, true));
        dispatch
            .finishing
            .visit(|finishing| count(&finishing.attempt, false));
        self.life.visit_in_hands(|attempt| count(attempt, false));
        if let Some(job) = over {
            return Err(Violation::Attempts(format!(
                "job {job} has ended and waits"
            )));
        }
        let in_journal = self.in_journal();
        let mut expected = Partitions::new();
        for job in core.jobs.registry.all_live() {
            if !in_journal.contains(&job.number()) {
                let missing = job.missing().into_iter();
                expected.extend(missing.map(|partition| ((job.number(), partition), 1)));
            }
        }
        if there != expected {
            return Err(Violation::Attempts(format!(
                "expected {expected:?}, there are {there:?}"
            )));
        }
        Ok(())
    }

    /// Returns the numbers of the jobs that wait in the journal, or are read from it now.
    fn in_journal(&self) -> HashSet<u64> {
        let mut in_journal = self.life.core.jobs.waiting.numbers();
        let resumed = self.life.resumed.as_ref();
        in_journal.extend(resumed.map(|(next, _)| next.job.number()));
        in_journal
    }

    /// The proofs of a job that goes on are those that the journal has, unless a write failed
    /// in this life of the engine.
    fn check_kept(&self) -> Checked {
        if self.disk.lock().failures != self.failures_of_earlier_lives {
            return Ok(());
        }
        let in_journal = self.in_journal();
        let goes_on = |job: &JobState| !job.has_ended() && !in_journal.contains(&job.number());
        let jobs = self.jobs.iter().map(|tracked| &tracked.job);
        for job in jobs.filter(|job| goes_on(job)) {
            let Some(row) = job.id().and_then(|id| self.disk.row(id)) else {
                continue;
            };
            let done = job.done();
            let kept = |partition: u32| row.finished.contains_key(&partition);
            if !(0..).zip(&done).all(|(at, done)| kept(at) == *done) {
                return Err(Violation::Journal(format!(
                    "job {:?} has the proofs {done:?}, kept are those of {:?}",
                    job.id(),
                    row.finished.keys()
                )));
            }
        }
        Ok(())
    }

    fn check_queues(&self) -> Checked {
        let dispatch = &self.life.core.dispatch;
        let pipeline = &self.life.core.config.pipeline;
        let (mut ready, mut finishing) = (0, 0);
        dispatch
            .ready
            .visit(|item| ready += usize::from(!item.attempt.is_critical()));
        dispatch
            .finishing
            .visit(|item| finishing += usize::from(!item.attempt.is_critical()));
        if ready > pipeline.synthesis_lookahead || finishing > pipeline.finish_workers {
            return Err(Violation::Queue(format!(
                "{ready} ready, {finishing} finishing"
            )));
        }
        Ok(())
    }

    fn check_memory(&mut self) -> Checked {
        let usage = self.life.core.dispatch.admission.usage();
        self.report.note(&usage);
        if usage.used_bytes > usage.total_bytes {
            return Err(Violation::Memory(format!("{usage:?}")));
        }
        Ok(())
    }

    /// Checks that a device may have an attempt that it claimed. It was trusted before, or
    /// not.
    pub(super) fn check_claim(
        &self,
        device: usize,
        is_trusted: bool,
        attempt: &Attempt,
    ) -> Checked {
        let (job, partition) = (attempt.job.number(), attempt.partition);
        let problem = if self.failed_on.contains(&(job, partition, device)) {
            "it failed to prove it before"
        } else if !is_trusted && attempt.is_critical() {
            "it is in quarantine, and the partition is critical"
        } else if !is_trusted && attempt.trial.is_none() {
            "it is in quarantine"
        } else {
            return Ok(());
        };
        Err(Violation::Device(format!(
            "device {device} has {partition} of {job}: {problem}"
        )))
    }

    /// Checks that an attempt has its turn before all others of its lane.
    pub(super) fn check_order(&self, next: &Attempt) -> Checked {
        let moved = |job: &JobState| {
            let mut jobs = self.jobs.iter();
            let tracked = jobs.find(|tracked| tracked.job.number() == job.number());
            tracked.is_none_or(|tracked| tracked.has_old_places)
        };
        if moved(&next.job) {
            return Ok(());
        }
        let mut overtaken = None;
        let admission = &self.life.core.dispatch.admission;
        admission.visit_waiting(|attempt, work| {
            let is_common = work.lane == Lane::Common;
            let (job, other) = (&attempt.job, &next.job);
            // The jobs of an earlier process can have come at the same millisecond.
            let is_before = job.rank() < other.rank() && job.accepted() != other.accepted();
            if is_common && is_before && !work.is_held && !moved(&attempt.job) {
                overtaken = Some(attempt.job.number());
            }
        });
        match overtaken {
            Some(job) => Err(Violation::Order(format!(
                "{} before {job}",
                next.job.number()
            ))),
            None => Ok(()),
        }
    }

    /// Checks what holds at the end of a run, when all has been done.
    pub(super) fn check_end(&self) -> Checked {
        for Tracked { job, outcome, .. } in &self.jobs {
            if outcome.is_none() {
                let (number, progress) = (job.number(), job.progress());
                return Err(Violation::End(format!(
                    "job {number} does not: {progress:?}"
                )));
            }
        }
        if !self.life.is_at_rest() {
            return Err(Violation::End(
                "a worker has an attempt at the end".to_owned(),
            ));
        }
        let usage = self.life.core.dispatch.admission.usage();
        let charged = usage.waiting + usage.running + usage.in_background;
        if usage.used_bytes != usage.idle_bytes || charged > 0 {
            return Err(Violation::Memory(format!("at the end {usage:?}")));
        }
        let content = self.disk.lock();
        let mut rows = content.rows.iter();
        match rows.find(|(_, row)| row.end.is_none()) {
            Some((id, _)) => Err(Violation::Journal(format!("{id} is pending at the end"))),
            None => Ok(()),
        }
    }
}

fn is_same(a: &Outcome, b: &Outcome) -> bool {
    match (a, b) {
        (Ok(a), Ok(b)) => Arc::ptr_eq(a, b),
        (Err(a), Err(b)) => Arc::ptr_eq(a, b),
        _ => false,
    }
}

/// Checks that a job ended as its request and its devices allow.
fn check_outcome(tracked: &Tracked, outcome: &Outcome, cpu_fails: bool) -> Checked {
    let request = &tracked.request;
    match outcome {
        Ok(output) => {
            let proofs: Vec<_> = output.as_bytes().chunks(PARTITION_PROOF_BYTES).collect();
            if proofs.len() != request.partitions {
                return Err(Violation::WrongProof(format!(
                    "{} partitions",
                    proofs.len()
                )));
            }
            for (partition, proof) in proofs.into_iter().enumerate() {
                let verdict = verdict_on_bytes(proof.to_vec(), request.input(partition));
                if verdict.flatten().is_none() {
                    return Err(Violation::WrongProof(format!("{request:?}, {partition}")));
                }
            }
            Ok(())
        }
        Err(error) => {
            let is_right = match &**error {
                Error::Cancelled => tracked.is_cancelled,
                Error::DeadlinePassed => tracked.has_deadline,
                Error::OverBudget(_) => true,
                Error::Unsatisfied { .. } => request.flaw == Flaw::Lies,
                Error::Internal { .. } => request.flaw == Flaw::WitnessPanics || cpu_fails,
                _ => cpu_fails,
            };
            if is_right {
                return Ok(());
            }
            Err(Violation::End(format!("{request:?} ended with {error:?}")))
        }
    }
}

/// Checks that the end of a job is in the journal.
fn check_written(tracked: &Tracked, row: &Option<super::disk::Row>) -> Checked {
    let (Some(id), Some(outcome)) = (tracked.job.id(), &tracked.outcome) else {
        return Ok(());
    };
    let end = row.as_ref().and_then(|row| row.end.as_ref());
    let is_written = match (outcome, end) {
        (Ok(output), Some(End::Done(bytes))) => bytes == output.as_bytes(),
        (Err(error), Some(End::Cancelled)) => matches!(**error, Error::Cancelled),
        (Err(error), Some(End::Failed(text))) => *text == error.to_string(),
        _ => false,
    };
    if is_written {
        return Ok(());
    }
    let told = outcome.as_ref().map(|output| output.partitions());
    let written = end.map(|end| match end {
        End::Done(_) => "a proof".to_owned(),
        end => format!("{end:?}"),
    });
    Err(Violation::Journal(format!(
        "{id} ended with {told:?}, written is {written:?}"
    )))
}
