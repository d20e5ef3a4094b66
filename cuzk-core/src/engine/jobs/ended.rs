//! The last jobs that ended, and how many did of each kind.
//!
//! Not their results, which the registry keeps. The invariant: so many proved jobs cannot
//! come that the last failures are not told any more.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use cuzk_filecoin::{CircuitId, ProofKind};
use cuzk_scheduler::clock;

use crate::job::{JobState, JobTimes};
use crate::metrics::Outcome;

/// The number of ended jobs that are remembered.
const ENDED_MAX: usize = 50;
/// The number of failed jobs that are remembered.
const FAILED_MAX: usize = 20;
/// The characters that are remembered of an error.
const ERROR_CHARS_MAX: usize = 2000;

/// A job that has ended.
#[derive(Debug)]
pub(in crate::engine) struct EndedRecord {
    pub(in crate::engine) number: u64,
    pub(in crate::engine) id: Option<String>,
    pub(in crate::engine) circuit: CircuitId,
    pub(in crate::engine) outcome: Outcome,
    pub(in crate::engine) error: Option<String>,
    pub(in crate::engine) at: Instant,
    pub(in crate::engine) times: JobTimes,
}

/// The jobs of a kind that ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::engine) struct Totals {
    pub(in crate::engine) proved: u64,
    pub(in crate::engine) failed: u64,
    pub(in crate::engine) cancelled: u64,
}

#[derive(Debug, Default)]
pub(in crate::engine) struct EndedJobs(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The newest in front.
    last: VecDeque<Arc<EndedRecord>>,
    last_failed: VecDeque<Arc<EndedRecord>>,
    totals: [Totals; ProofKind::ALL.len()],
}

impl EndedJobs {
    /// Notes a job that has ended, and how.
    pub(super) fn note(&self, job: &JobState, outcome: Outcome) {
        let error = job.outcome().and_then(Result::err);
        let error = error.map(|error| error.to_string().chars().take(ERROR_CHARS_MAX).collect());
        let ended = Arc::new(EndedRecord {
            number: job.number(),
            id: job.id().map(str::to_owned),
            circuit: job.circuit(),
            outcome,
            error,
            at: clock::now(),
            times: job.times(),
        });
        let mut state = self.lock();
        let kind = job.circuit().kind;
        let at = ProofKind::ALL.iter().position(|known| *known == kind);
        if let Some(totals) = at.and_then(|at| state.totals.get_mut(at)) {
            match outcome {
                Outcome::Proved => totals.proved += 1,
                Outcome::Failed => totals.failed += 1,
                Outcome::Cancelled => totals.cancelled += 1,
                Outcome::ShutDown => {}
            }
        }
        if outcome == Outcome::Failed {
            state.last_failed.push_front(Arc::clone(&ended));
            state.last_failed.truncate(FAILED_MAX);
        }
        state.last.push_front(ended);
        state.last.truncate(ENDED_MAX);
    }

    /// Returns the last jobs, the newest in front: all of the last ones, and behind them
    /// failed ones that ended before.
    pub(in crate::engine) fn last(&self) -> Vec<Arc<EndedRecord>> {
        let state = self.lock();
        let mut last: Vec<_> = state.last.iter().cloned().collect();
        let is_there = |failed: &Arc<EndedRecord>| {
            let mut last = state.last.iter();
            last.any(|ended| Arc::ptr_eq(ended, failed))
        };
        let older = state.last_failed.iter().filter(|failed| !is_there(failed));
        last.extend(older.cloned());
        last
    }

    /// Returns the totals of each kind, in the order of [`ProofKind::ALL`].
    pub(in crate::engine) fn totals(&self) -> [Totals; ProofKind::ALL.len()] {
        self.lock().totals
    }

    // Every change is whole before anything that can panic.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
