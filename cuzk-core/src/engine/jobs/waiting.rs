//! The jobs that wait in the journal for their turn.
//!
//! Not their requests, which are in the journal and nowhere else. The invariant: a job is
//! here at most once, and takes no more memory than its record.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::job::JobState;

/// A job that waits in the journal.
pub(in crate::engine) struct WaitingJob {
    pub(in crate::engine) job: Arc<JobState>,
    /// Partitions that an earlier engine finished, with their proofs.
    pub(in crate::engine) finished: Vec<(u32, Vec<u8>)>,
}

#[derive(Default)]
pub(in crate::engine) struct WaitingJobs(Mutex<Vec<WaitingJob>>);

impl WaitingJobs {
    pub(in crate::engine) fn add(&self, job: WaitingJob) {
        self.lock().push(job);
    }

    /// Takes out the most urgent of the jobs for which `may_go` returns true.
    pub(in crate::engine) fn take(&self, may_go: impl Fn(&JobState) -> bool) -> Option<WaitingJob> {
        let mut jobs = self.lock();
        let candidates = jobs.iter().enumerate().filter(|(_, w)| may_go(&w.job));
        let (at, _) = candidates.min_by_key(|(_, waiting)| waiting.job.rank())?;
        Some(jobs.swap_remove(at))
    }

    /// Takes out a job. Returns true if it was here.
    pub(in crate::engine) fn remove(&self, number: u64) -> bool {
        let mut jobs = self.lock();
        let at = jobs.iter().position(|w| w.job.number() == number);
        let gone = at.map(|at| jobs.swap_remove(at));
        drop(jobs);
        gone.is_some()
    }

    /// Returns true if a job is here for which `is_sought` returns true.
    pub(in crate::engine) fn any(&self, is_sought: impl Fn(&JobState) -> bool) -> bool {
        self.lock().iter().any(|waiting| is_sought(&waiting.job))
    }

    /// Returns the numbers of the jobs.
    pub(in crate::engine) fn numbers(&self) -> HashSet<u64> {
        let jobs = self.lock();
        jobs.iter().map(|waiting| waiting.job.number()).collect()
    }

    // Every change is one step.
    fn lock(&self) -> MutexGuard<'_, Vec<WaitingJob>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
