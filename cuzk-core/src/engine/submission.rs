//! How a request becomes a job of the engine.
//!
//! Not the end of a job, which is in [`super::core`]. The invariants: nothing stays of a
//! submission that fails, unless the journal's disk failed, and the process ends before
//! it can be written again; a job with an id is in the journal before its submission
//! returns.

use std::sync::{Arc, Weak};
use std::time::Duration;

use cuzk_filecoin::verify::PARTITION_PROOF_BYTES;
use cuzk_filecoin::{CircuitId, Statement};
use cuzk_groth16::verify::VerifiedProof;
use cuzk_journal::{Accepted, End, JournalError, State};
use cuzk_memory::Checkpoint;
use cuzk_scheduler::admission::Lane;
use cuzk_scheduler::clock;
use cuzk_scheduler::priority::{Priority, Rank};

use super::core::Core;
use super::entrance::enter;
use super::jobs::recorder::{JobRecord, JobRecorder};
use super::jobs::registry::Begin;
use super::jobs::stored::stored_options;
use super::jobs::{Jobs, log_span};
use super::reverify::verify_stored;
use crate::error::ErrorCode;
use crate::job::{JobHandle, JobOptions, JobState, NewJob, Owner, RequestBytes, priority_of};
use crate::metrics::{self, Refusal};
use crate::timeline::Stage;
use crate::{Error, Result};

/// Returns the handle of a job that was accepted. One that was refused is counted and logged.
pub(super) fn accepted(
    core: &Arc<Core>,
    (kind, id): (&'static str, Option<String>),
    job: Result<Arc<JobState>>,
) -> Result<JobHandle> {
    let job = job.inspect_err(|error| {
        let reason = refusal(error);
        metrics::job_refused(kind, reason);
        core.jobs
            .log_not_accepted((kind, id.as_deref()), reason, error);
    })?;
    Ok(handle(core, job))
}

/// Returns a handle of a job.
pub(super) fn handle(core: &Arc<Core>, job: Arc<JobState>) -> JobHandle {
    let owner: Weak<Core> = Arc::downgrade(core);
    JobHandle::new(job, owner)
}

impl Owner for Core {
    fn cancel(&self, job: &Arc<JobState>) -> bool {
        self.end(job, Error::Cancelled)
    }

    fn set_priority(&self, job: &Arc<JobState>, priority: Priority) {
        job.set_priority(priority);
        self.dispatch.rerank(job);
        self.jobs.notify();
    }

    fn check_caller(&self) -> Result<()> {
        self.compute.check_caller()
    }
}

/// A partition with its proof, from an earlier engine.
type StoredProof = (usize, VerifiedProof);

/// Decodes a request and queues its partitions. Its bytes identify it, where its options
/// have an id; `priority` is the order in which it is decoded.
///
/// # Errors
/// As [`super::Engine::submit_with`].
pub(super) fn submit_request(
    core: &Core,
    request: RequestBytes<'_>,
    mut options: JobOptions,
    priority: Priority,
    decode: impl FnOnce() -> Result<Arc<dyn Statement>> + Send,
) -> Result<Arc<JobState>> {
    let begun = match &options.id {
        Some(id) => core.jobs.registry.begin(id, request.digest())?,
        None => Begin::Nameless,
    };
    if let Begin::Attached(job) = begun {
        return Ok(job);
    }
    // Nothing is decoded that could not be queued even with one partition.
    core.dispatch
        .check_room(usize::from(!can_wait(core, &options)))?;
    let number = core.jobs.registry.next_number();
    let trace = core.timeline.trace(number, None);
    let asked = clock::now();
    let patience = core.config.jobs.patience;
    let rank = Rank::new(priority, asked, number, patience);
    let turn = core.dispatch.decoding.enter(rank);
    give_way(core, rank);
    trace.waited(Stage::DecodeWait, asked);
    let decode = || core.compute.decode(rank.is_critical(), decode);
    let statement = trace.time(Stage::Decode, decode)?;
    drop(turn);
    let priority = options
        .priority
        .unwrap_or_else(|| priority_of(statement.circuit().kind));
    options.priority = Some(priority);
    let rank = Rank::new(priority, asked, number, patience);
    let job = accept(core, statement, options, (number, rank), Some(request))?;
    if let Begin::New(claim) = begun {
        claim.decide(Arc::clone(&job));
    }
    Ok(job)
}

/// Waits while critical work runs, because decoding has no checkpoint. The critical do not wait.
fn give_way(core: &Core, rank: Rank) {
    if !rank.is_critical() {
        let never_cancelled = Checkpoint::never().paused_by(&core.dispatch.pause);
        never_cancelled.check().ok();
    }
}

/// Queues the partitions of a statement that was decoded elsewhere.
///
/// # Errors
/// As [`super::Engine::submit_with`].
pub(super) fn submit_statement(
    core: &Core,
    statement: Arc<dyn Statement>,
    mut options: JobOptions,
) -> Result<Arc<JobState>> {
    let kind = statement.circuit().kind;
    let priority = options.priority.unwrap_or_else(|| priority_of(kind));
    let number = core.jobs.registry.next_number();
    let rank = Rank::new(priority, clock::now(), number, core.config.jobs.patience);
    options.priority = Some(priority);
    accept(core, statement, options, (number, rank), None)
}

/// Accepts a decoded job, whose priority is decided. `request` is what the journal may
/// keep of it.
fn accept(
    core: &Core,
    statement: Arc<dyn Statement>,
    options: JobOptions,
    (number, rank): (u64, Rank),
    request: Option<RequestBytes<'_>>,
) -> Result<Arc<JobState>> {
    let circuit = statement.circuit();
    let can_wait = request.is_some() && can_wait(core, &options);
    let priority = options.priority.unwrap_or(Priority::Normal);
    check(core, &*statement, (priority, rank), &options)?;
    let accepted = clock::now();
    let deadline = options.deadline.and_then(|left| accepted.checked_add(left));
    let mut new = NewJob {
        number,
        id: options.id,
        caller: tracing::Span::current(),
        circuit,
        partitions: statement.partitions(),
        priority,
        patience: core.config.jobs.patience,
        accepted,
        deadline,
        record: None,
    };
    let request_bytes = request.as_ref().map(|request| request.as_bytes().len());
    let recorder = core.jobs.recorder();
    let (done, is_new) = match (&recorder, request) {
        (Some(recorder), Some(request)) => {
            let kept = (request, options.deadline);
            keep(core, recorder, &mut new, &*statement, kept)?
        }
        _ => (Vec::new(), false),
    };
    let job = Arc::new(JobState::new(new));
    job.set_input(statement);
    core.timeline.follow(number, Arc::clone(job.live()));
    core.timeline.name_job(number, name_of(&job));
    core.jobs.registry.add_live(&job);
    core.jobs.log_accepted(&job, request_bytes);
    for (partition, proof) in done {
        core.restore(&job, partition, proof);
    }
    // A job that an earlier engine proved whole has ended by now.
    let queued = if job.has_ended() {
        Ok(())
    } else {
        enter(core, &job, can_wait)
    };
    if let Err(error) = queued {
        take_back(core, &job, &error);
        // Only the row of this submission: another job may have the id.
        if let (true, Some(recorder), Some(id)) = (is_new, &recorder, job.id()) {
            recorder.forget(id);
        }
        return Err(error);
    }
    metrics::job_accepted(circuit.kind.name());
    Ok(job)
}

/// Forgets a job that was accepted and has no place in the queue after all.
fn take_back(core: &Core, job: &Arc<JobState>, error: &Error) {
    Jobs::log_refused(job, error);
    core.jobs.registry.ended(job);
    core.timeline.unfollow(job.number());
}

/// Returns what pictures call a job.
pub(super) fn name_of(job: &JobState) -> String {
    match job.id() {
        Some(id) => format!("{} {id}", job.circuit()),
        None => job.circuit().to_string(),
    }
}

/// Returns the error for which a job is refused before anything is kept of it.
fn check(
    core: &Core,
    statement: &dyn Statement,
    (priority, rank): (Priority, Rank),
    options: &JobOptions,
) -> Result<()> {
    let (circuit, partitions) = (statement.circuit(), statement.partitions());
    core.dispatch.check_partitions(partitions)?;
    core.assets.check_present(circuit)?;
    // Others may have the memory that this machine has not.
    if !core.outside.is_there() {
        check_memory(core, circuit, priority)?;
    }
    if let Some(deadline) = options.deadline {
        let fleet = (&*core.jobs.registry.all_live(), core.fleet.num_trusted());
        let deadlines = &core.dispatch.deadlines;
        deadlines.check(circuit, partitions, rank, deadline, fleet)?;
    }
    let queued = if can_wait(core, options) {
        0
    } else {
        partitions
    };
    core.dispatch.check_room(queued)
}

/// Returns true if a job with these options waits in the journal where there is no room.
fn can_wait(core: &Core, options: &JobOptions) -> bool {
    options.waits && options.id.is_some() && core.config.jobs.journal.is_some()
}

/// Returns an error for a circuit whose partitions can never have their memory, where
/// that is known.
fn check_memory(core: &Core, id: CircuitId, priority: Priority) -> Result<()> {
    let lane = if priority == Priority::Critical {
        Lane::Critical
    } else {
        Lane::Common
    };
    let costs = &core.assets.costs;
    while let Some(need) = costs.known(id, lane) {
        match core.dispatch.admission.check(priority, &need) {
            Ok(()) => break,
            Err(_) if costs.uncharge_files(id) => {}
            Err(over) => {
                costs.forget(id);
                return Err(over.into());
            }
        }
    }
    Ok(())
}

/// Writes a job that has an id to the journal, and has its progress recorded there.
/// Returns the proofs that an earlier engine made of it, verified, and true if the journal
/// did not have the job before.
fn keep(
    core: &Core,
    recorder: &Arc<JobRecorder>,
    new: &mut NewJob,
    statement: &dyn Statement,
    (request, deadline): (RequestBytes<'_>, Option<Duration>),
) -> Result<(Vec<StoredProof>, bool)> {
    let Some(id) = &new.id else {
        return Ok((Vec::new(), false));
    };
    let span = log_span(new.number, Some(id.as_str()), &new.caller);
    let _span = span.entered();
    let record = JobRecord::new(Arc::clone(recorder), id.clone());
    new.record = Some(Arc::new(record));
    let journal = &recorder.journal;
    recorder.write_unwritten();
    let circuit = (new.circuit, request.digest());
    let options = stored_options(circuit, new.partitions, new.priority, deadline);
    for _ in 0..2 {
        let accepted = match recorder.accept(id, &options, request.as_bytes()) {
            // A job that cannot be read cannot be gone on with.
            Err(error @ JournalError::DamagedJob { .. }) => {
                tracing::warn!(
                    id, code = %ErrorCode::JournalUnusable, %error,
                    "the job is proved again"
                );
                journal.forget(id)?;
                continue;
            }
            Err(JournalError::OtherInput { id }) => return Err(Error::Conflict { id }),
            accepted => accepted?,
        };
        match accepted {
            // Nobody else's, whichever it is: see [`JobRecorder::accept`].
            Accepted::New | Accepted::Attached(State::Pending) => {
                return Ok((Vec::new(), true));
            }
            Accepted::Attached(State::Ended(end)) => {
                let critical = new.priority == Priority::Critical;
                if let Some(proofs) = stored_proofs(core, statement, critical, &end) {
                    return Ok((proofs, false));
                }
                // A job that failed is tried again, and so is one whose proof is rejected.
                journal.forget(id)?;
            }
        }
    }
    Ok((Vec::new(), false))
}

/// Returns the proofs of a job that ended well, verified; none if one is missing or
/// rejected.
fn stored_proofs(
    core: &Core,
    statement: &dyn Statement,
    critical: bool,
    end: &End,
) -> Option<Vec<StoredProof>> {
    let End::Done(bytes) = end else { return None };
    let proofs = bytes.chunks(PARTITION_PROOF_BYTES).enumerate();
    let services = (&core.assets, &core.compute);
    let verify = |(partition, proof)| {
        let proof = verify_stored(services, statement, critical, partition, proof);
        let warn = |error: &Error| {
            let code = ErrorCode::of(error);
            tracing::warn!(partition, %code, %error, "a proof of the journal is made again");
        };
        Some((partition, proof.inspect_err(warn).ok()?))
    };
    let verified: Vec<_> = proofs.map(verify).collect::<Option<_>>()?;
    (verified.len() == statement.partitions()).then_some(verified)
}

/// Returns the reason that a refused job is counted under.
pub(super) fn refusal(error: &Error) -> Refusal {
    match error {
        Error::Params(_) => Refusal::MissingParameters,
        Error::Conflict { .. } => Refusal::Conflict,
        error if error.is_busy() => Refusal::Busy,
        Error::OverBudget(_) => Refusal::Memory,
        Error::TooLate { .. } => Refusal::Deadline,
        Error::ShuttingDown => Refusal::ShuttingDown,
        error if error.is_input() => Refusal::Invalid,
        _ => Refusal::Internal,
    }
}
