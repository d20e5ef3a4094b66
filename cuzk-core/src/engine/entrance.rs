//! Where an accepted job waits: in the queue, or in the journal until the queue has room.
//!
//! Not the queue and not the journal. The invariants: a job in the journal holds no
//! decoded statement; the most urgent of them is next.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use cuzk_scheduler::admission::Entrance;

use super::core::Core;
use super::jobs::waiting::WaitingJob;
use crate::job::JobState;
use crate::{Error, Result};

/// The number of waiting partitions from which on no job is taken out of the journal. A
/// decoded statement takes tens of megabytes. So many partitions keep the workers busy
/// while the next job is decoded.
const TAKEN_UP_AHEAD: usize = 32;

/// This number for an engine whose partitions other machines prove, too.
const TAKEN_UP_AHEAD_OF_OTHERS: usize = 512;

/// The time between two looks at what runs, when an engine that drains shuts down.
const RUNNING_POLL: Duration = Duration::from_millis(5);

/// Queues a job that was accepted, or leaves it in the journal if it `can_wait` there.
///
/// # Errors
/// [`Error::Busy`], [`Error::ShuttingDown`].
pub(super) fn enter(core: &Core, job: &Arc<JobState>, can_wait: bool) -> Result<()> {
    if is_held(core, job) {
        return if can_wait {
            wait_in_journal(core, job)
        } else {
            Err(Error::ShuttingDown)
        };
    }
    if !can_wait {
        return core.queue(job, job.missing(), Entrance::IfRoom);
    }
    let others_first = core.jobs.waiting.any(|other| other.rank() < job.rank());
    if others_first || !has_room(core, job) {
        return wait_in_journal(core, job);
    }
    match core.queue(job, job.missing(), Entrance::IfRoom) {
        Err(Error::Busy { .. }) => wait_in_journal(core, job),
        queued => queued,
    }
}

fn wait_in_journal(core: &Core, job: &Arc<JobState>) -> Result<()> {
    job.drop_input();
    let waiting = &core.jobs.waiting;
    waiting.add(WaitingJob {
        job: Arc::clone(job),
        finished: Vec::new(),
    });
    // The thread that takes jobs out may have ended, or the job, before it was here.
    if core.dispatch.admission.is_closed() && waiting.remove(job.number()) {
        return Err(Error::ShuttingDown);
    }
    if job.has_ended() {
        waiting.remove(job.number());
    }
    core.jobs.notify();
    Ok(())
}

/// Returns true if no partition of a job is begun while the engine drains.
pub(super) fn is_held(core: &Core, job: &JobState) -> bool {
    core.dispatch.is_draining() && job.is_deferrable()
}

/// Returns true if a job that waits in the journal may be queued now.
pub(super) fn may_go(core: &Core, job: &JobState) -> bool {
    !is_held(core, job) && (job.is_critical() || has_room(core, job))
}

fn has_room(core: &Core, job: &JobState) -> bool {
    let capacity = core.dispatch.admission.limits().capacity;
    let waiting = core.dispatch.admission.usage().waiting;
    let partitions = job.progress().partitions;
    let ahead = match core.outside.is_there() {
        true => TAKEN_UP_AHEAD_OF_OTHERS,
        false => TAKEN_UP_AHEAD,
    };
    waiting == 0 || waiting < ahead && waiting.saturating_add(partitions) <= capacity
}

/// Returns the jobs that have not ended, those that a drain holds last.
pub(super) fn held_last(core: &Core) -> Vec<Arc<JobState>> {
    let mut live = core.jobs.registry.all_live();
    live.sort_by_key(|job| is_held(core, job));
    live
}

/// Waits until no partition runs, or the time has come.
pub(super) fn await_running(core: &Core, until: Option<Instant>) {
    let is_time = || until.is_some_and(|until| until <= Instant::now());
    while core.dispatch.admission.usage().running > 0 && !is_time() {
        thread::sleep(RUNNING_POLL);
    }
}

/// Returns true if nothing is to be done now. Work that a drain holds is not counted.
pub(super) fn is_idle(core: &Core) -> bool {
    let mut is_waiting = false;
    let admission = &core.dispatch.admission;
    admission.visit_waiting(|_, work| is_waiting |= !work.is_held);
    let usage = admission.usage();
    !is_waiting
        && usage.running + usage.in_background == 0
        && !core.compute.is_decoding()
        && !core.jobs.waiting.any(|job| !is_held(core, job))
}
