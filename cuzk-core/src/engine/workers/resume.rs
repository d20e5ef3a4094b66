//! The thread that takes jobs out of the journal when their turn has come. An earlier
//! engine left them, or the queue had no room for them.
//!
//! Not what happens to them afterwards. The invariants: whoever asks for the id of such a
//! job finds it before its request was read; a proof that was read from the journal is
//! verified again, since a file is not the verifier.

use std::sync::Arc;
use std::time::Duration;

use cuzk_filecoin::Statement;
use cuzk_journal::{JournalError, PendingJob};
use cuzk_scheduler::admission::Entrance;
use cuzk_scheduler::clock;
use cuzk_scheduler::priority::Priority;

use crate::engine::core::Core;
use crate::engine::entrance::may_go;
use crate::engine::jobs::recorder::{JobRecord, JobRecorder, Store};
use crate::engine::jobs::stored::{instant_of, parse_kind};
use crate::engine::jobs::waiting::WaitingJob;
use crate::engine::reverify::verify_stored;
use crate::error::ErrorCode;
use crate::job::{JobState, NewJob};
use crate::panics::catch_panic;
use crate::{Error, Result};

/// How long a job waits before the journal is read again. A file that failed is not
/// opened again sooner.
const JOURNAL_POLL: Duration = Duration::from_secs(1);

/// Takes the jobs that were left into the registry. A job that cannot be resumed is taken
/// out of the journal, so that it can be submitted again.
///
/// # Errors
/// When the journal cannot be read.
pub(super) fn find_left(core: &Core, recorder: &Arc<JobRecorder>) -> Result<()> {
    let journal = &recorder.journal;
    let resumable = journal.pending()?;
    for damaged in &resumable.damaged {
        let code = ErrorCode::JournalUnusable;
        tracing::error!(id = damaged.id, %code, error = %damaged.error, "a job cannot be resumed");
        journal.forget(&damaged.id)?;
    }
    for pending in resumable.jobs {
        if !pending.damaged.is_empty() {
            tracing::warn!(
                id = pending.id,
                partitions = ?pending.damaged,
                "the journal's proofs of these partitions were changed; they are proved again. \
                 Look for a bad disk, or for who wrote to the file"
            );
        }
        if let Some(job) = restore(core, recorder, &pending) {
            let finished = pending.finished;
            core.jobs.waiting.add(WaitingJob { job, finished });
        } else {
            tracing::error!(
                id = pending.id,
                code = %ErrorCode::JournalUnusable,
                "a job of another version cannot be resumed; submit it again"
            );
            // Nobody could ask for it by its id, and it would keep a place.
            recorder.forget(&pending.id);
        }
    }
    Ok(())
}

fn restore(
    core: &Core,
    recorder: &Arc<JobRecorder>,
    pending: &PendingJob,
) -> Option<Arc<JobState>> {
    let (circuit, digest) = parse_kind(&pending.options.kind)?;
    let priority = *Priority::ALL.get(usize::from(pending.options.priority))?;
    let registry = &core.jobs.registry;
    let number = registry.next_number();
    // The time before the restart counts as waiting. Whatever the clock was set to
    // meanwhile, the job has not waited less than nothing.
    let accepted = instant_of(pending.accepted_unix_ms).min(clock::now());
    let record = JobRecord::new(Arc::clone(recorder), pending.id.clone());
    let partitions = usize::try_from(pending.options.partitions).ok()?;
    let job = Arc::new(JobState::new(NewJob {
        number,
        id: Some(pending.id.clone()),
        caller: tracing::Span::none(),
        circuit,
        partitions,
        priority,
        patience: core.config.jobs.patience,
        accepted,
        deadline: pending.options.deadline_unix_ms.map(instant_of),
        record: Some(Arc::new(record)),
    }));
    registry.restore(&pending.id, digest, &job);
    core.timeline.follow(number, Arc::clone(job.live()));
    registry.add_live(&job);
    Some(job)
}

/// Goes on with the jobs that wait in the journal, the most urgent first, each when the
/// queue has room for it. Jobs that a closing engine has not come to end here, and go on
/// at the next start.
pub(super) fn run(core: &Core, recorder: &JobRecorder) {
    let waiting = &core.jobs.waiting;
    while !core.dispatch.admission.is_closed() {
        let Some(next) = waiting.take(|job| may_go(core, job)) else {
            let is_next =
                || core.dispatch.admission.is_closed() || waiting.any(|job| may_go(core, job));
            core.jobs.wait(JOURNAL_POLL, is_next);
            continue;
        };
        let resumed = resume_when_readable(core, &*recorder.journal, &next);
        end_unresumed(core, &next.job, resumed);
    }
    while let Some(left) = waiting.take(|_| true) {
        core.end(&left.job, Error::ShuttingDown);
    }
}

/// Ends a job that cannot be resumed.
pub(super) fn end_unresumed(core: &Core, job: &Arc<JobState>, resumed: Result<()>) {
    if let Err(error) = resumed {
        if !matches!(error, Error::ShuttingDown) {
            let code = ErrorCode::of(&error);
            tracing::error!(id = job.id(), %code, %error, "a job cannot be resumed");
        }
        core.end(job, error);
    }
}

/// Resumes a job. While the journal cannot be read, the job waits.
fn resume_when_readable(core: &Core, journal: &dyn Store, waiting: &WaitingJob) -> Result<()> {
    let job = &waiting.job;
    let mut is_logged = false;
    loop {
        if let Some(resumed) = resume_if_readable(core, journal, waiting, &mut is_logged) {
            return resumed;
        }
        let is_over = || job.has_ended() || core.dispatch.admission.is_closed();
        core.jobs.wait(JOURNAL_POLL, is_over);
        if job.has_ended() {
            return Ok(());
        }
        if core.dispatch.admission.is_closed() {
            return Err(Error::ShuttingDown);
        }
    }
}

/// Resumes a job; none if the journal cannot be read now. That is logged if it was not yet.
pub(super) fn resume_if_readable(
    core: &Core,
    journal: &dyn Store,
    waiting: &WaitingJob,
    is_logged: &mut bool,
) -> Option<Result<()>> {
    core.dispatch.heartbeat.beat();
    let resumed = || resume(core, journal, waiting);
    match catch_panic("resumption", resumed) {
        Err(Error::Journal(error @ JournalError::Store { .. })) => {
            if !std::mem::replace(is_logged, true) {
                let (id, code) = (waiting.job.id(), ErrorCode::JournalFailing);
                tracing::error!(id, %code, %error, "a job waits for the journal");
            }
            None
        }
        resumed => Some(resumed),
    }
}

fn resume(core: &Core, journal: &dyn Store, waiting: &WaitingJob) -> Result<()> {
    let WaitingJob { job, finished } = waiting;
    if job.has_ended() {
        return Ok(());
    }
    if job.deadline_has_passed() {
        return Err(Error::DeadlinePassed);
    }
    let id = job.id().unwrap_or_default();
    let request = journal.request(id)?;
    let critical = job.is_critical();
    let statement = core.compute.decode(critical, || (core.decoder)(&request))?;
    drop(request);
    check_is_same(&*statement, job)?;
    for (partition, proof) in finished {
        let partition = usize::try_from(*partition).unwrap_or(usize::MAX);
        let services = (&core.assets, &core.compute);
        match verify_stored(services, &*statement, critical, partition, proof) {
            Ok(proof) => core.restore(job, partition, proof),
            Err(error) => {
                tracing::warn!(
                    id, code = %ErrorCode::of(&error), %error,
                    "a partition is proved again"
                )
            }
        }
    }
    job.set_input(statement);
    // There was room for it a moment ago, and other jobs may have taken some since.
    core.queue(job, job.missing(), Entrance::AtOnce)
}

/// Returns an error if the decoder reads the request in another way than when the job was
/// accepted.
fn check_is_same(statement: &dyn Statement, job: &JobState) -> Result<()> {
    let now = (statement.circuit(), statement.partitions());
    let then = (job.circuit(), job.progress().partitions);
    if now == then {
        return Ok(());
    }
    Err(Error::request(
        "request",
        format!(
            "it was accepted as {} partitions of {} and reads as {} of {}",
            then.1, then.0, now.1, now.0
        ),
        "submit it again",
    ))
}
