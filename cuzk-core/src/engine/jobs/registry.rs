//! The engine's jobs: by number while they run, and by id for as long as they are
//! known.
//!
//! Not a queue: a job is here until it has ended, whatever its partitions do. The
//! invariants: an id stands for one request; of several submissions of an id at once
//! one decides, and the others attach to its job; ended jobs are kept for a bounded time
//! and up to a bounded number.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cuzk_scheduler::clock;

use crate::job::JobState;
use crate::{Error, Result};

/// The longest id, in bytes.
const ID_BYTES_MAX: usize = 1024;

/// The digest of a request.
pub(in crate::engine) type Digest = [u8; 32];

#[derive(Debug)]
pub(in crate::engine) struct Registry {
    next_number: AtomicU64,
    results_max: usize,
    results_kept_for: Duration,
    known: Mutex<KnownJobs>,
    decided: Condvar,
}

#[derive(Debug, Default)]
struct KnownJobs {
    live: HashMap<u64, Arc<JobState>>,
    ids: HashMap<String, IdEntry>,
    /// The ids of ended jobs, those that ended first in front.
    ended: VecDeque<(Instant, String)>,
    /// The jobs that the engine's end interrupted, and that nobody was told of. Only an engine
    /// that ends adds to them.
    interrupted: Vec<Arc<JobState>>,
}

#[derive(Debug)]
struct IdEntry {
    digest: Digest,
    /// None while its first submission is being decided.
    state: Option<Arc<JobState>>,
}

/// How a submission goes on.
pub(in crate::engine) enum Begin<'a> {
    /// It has no id.
    Nameless,
    /// The job is known.
    Attached(Arc<JobState>),
    /// It is the first of its id.
    New(IdClaim<'a>),
}

/// A claim on an id whose job is not decided yet. Dropped without a job, it frees the
/// id again.
pub(in crate::engine) struct IdClaim<'a> {
    registry: &'a Registry,
    id: String,
}

impl Registry {
    /// Keeps up to `results_max` ended jobs, each for `results_kept_for`.
    pub(super) fn new(results_max: usize, results_kept_for: Duration) -> Self {
        Self {
            next_number: AtomicU64::new(0),
            results_max,
            results_kept_for,
            known: Mutex::default(),
            decided: Condvar::new(),
        }
    }

    pub(in crate::engine) fn next_number(&self) -> u64 {
        self.next_number.fetch_add(1, Ordering::Relaxed)
    }

    /// Begins a submission under an id.
    ///
    /// # Errors
    /// [`Error::Conflict`] for an id of another request, and ids that are empty
    /// or too long.
    pub(in crate::engine) fn begin(&self, id: &str, digest: Digest) -> Result<Begin<'_>> {
        check_id(id)?;
        let mut jobs = self.lock();
        loop {
            self.forget_old(&mut jobs);
            match jobs.ids.get(id) {
                None => break,
                Some(entry) if entry.digest != digest => {
                    return Err(Error::Conflict { id: id.to_owned() });
                }
                Some(IdEntry { state: None, .. }) => {
                    jobs = self
                        .decided
                        .wait(jobs)
                        .unwrap_or_else(PoisonError::into_inner);
                }
                Some(IdEntry {
                    state: Some(state), ..
                }) => match state.outcome() {
                    // A job that failed may succeed when it is submitted again.
                    Some(Err(_)) => break,
                    _ => return Ok(Begin::Attached(Arc::clone(state))),
                },
            }
        }
        let entry = IdEntry {
            digest,
            state: None,
        };
        jobs.ids.insert(id.to_owned(), entry);
        Ok(Begin::New(IdClaim {
            registry: self,
            id: id.to_owned(),
        }))
    }

    /// Gives an id to a job that an earlier engine left in the journal.
    pub(in crate::engine) fn restore(&self, id: &str, digest: Digest, state: &Arc<JobState>) {
        let entry = IdEntry {
            digest,
            state: Some(Arc::clone(state)),
        };
        self.lock().ids.insert(id.to_owned(), entry);
    }

    /// Adds a job that has not ended.
    pub(in crate::engine) fn add_live(&self, state: &Arc<JobState>) {
        self.lock().live.insert(state.number(), Arc::clone(state));
    }

    /// Moves a job that has ended from the live jobs to those whose result is kept.
    pub(in crate::engine) fn ended(&self, state: &Arc<JobState>) {
        let mut jobs = self.lock();
        let was_live = jobs.live.remove(&state.number()).is_some();
        // A job that cannot be found by its id takes no place of one that can.
        let is_found = |id: &&str| {
            let found = jobs.ids.get(*id).and_then(|entry| entry.state.as_ref());
            found.is_some_and(|found| Arc::ptr_eq(found, state))
        };
        if let Some(id) = state.id().filter(is_found).map(str::to_owned) {
            jobs.ended.push_back((clock::now(), id));
        }
        let error = state.outcome().and_then(std::result::Result::err);
        let is_interrupted = error.is_some_and(|error| matches!(*error, Error::ShuttingDown));
        // A submission that is refused takes its job back, which may have ended by then.
        if was_live && is_interrupted {
            jobs.interrupted.push(Arc::clone(state));
        }
        self.forget_old(&mut jobs);
    }

    /// Returns the jobs that ended with [`Error::ShuttingDown`], each once, the oldest first.
    pub(in crate::engine) fn take_interrupted(&self) -> Vec<Arc<JobState>> {
        let mut interrupted = std::mem::take(&mut self.lock().interrupted);
        interrupted.sort_unstable_by_key(|state| state.number());
        interrupted
    }

    /// Returns the job of a number, if it has not ended.
    pub(in crate::engine) fn live(&self, number: u64) -> Option<Arc<JobState>> {
        self.lock().live.get(&number).cloned()
    }

    /// Returns the jobs that have not ended, the oldest first.
    pub(in crate::engine) fn all_live(&self) -> Vec<Arc<JobState>> {
        let live = self.lock();
        let not_ended = live.live.values().filter(|state| !state.has_ended());
        let mut live: Vec<_> = not_ended.cloned().collect();
        live.sort_unstable_by_key(|state| state.number());
        live
    }

    /// Returns the job of an id.
    pub(in crate::engine) fn find(&self, id: &str) -> Option<Arc<JobState>> {
        let mut jobs = self.lock();
        self.forget_old(&mut jobs);
        jobs.ids.get(id)?.state.clone()
    }

    fn forget_old(&self, jobs: &mut KnownJobs) {
        while let Some((ended, _)) = jobs.ended.front()
            && (jobs.ended.len() > self.results_max || clock::since(*ended) > self.results_kept_for)
            && let Some((_, id)) = jobs.ended.pop_front()
        {
            let over = jobs
                .ids
                .get(&id)
                .and_then(|entry| entry.state.as_ref())
                .is_some_and(|state| state.has_ended());
            // The id may stand for a later attempt, which has its own end.
            if over && !jobs.ended.iter().any(|(_, later)| *later == id) {
                jobs.ids.remove(&id);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, KnownJobs> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl IdClaim<'_> {
    /// Gives the id to a job.
    pub(in crate::engine) fn decide(self, state: Arc<JobState>) {
        let mut jobs = self.registry.lock();
        let has_ended = state.has_ended();
        if let Some(entry) = jobs.ids.get_mut(&self.id) {
            entry.state = Some(state);
        }
        // It may have ended so long ago that its end is forgotten.
        if has_ended && !jobs.ended.iter().any(|(_, id)| *id == self.id) {
            jobs.ended.push_back((clock::now(), self.id.clone()));
        }
        drop(jobs);
    }
}

impl Drop for IdClaim<'_> {
    fn drop(&mut self) {
        let mut jobs = self.registry.lock();
        if jobs
            .ids
            .get(&self.id)
            .is_some_and(|entry| entry.state.is_none())
        {
            jobs.ids.remove(&self.id);
        }
        drop(jobs);
        self.registry.decided.notify_all();
    }
}

fn check_id(id: &str) -> Result<()> {
    if (1..=ID_BYTES_MAX).contains(&id.len()) && !id.chars().any(char::is_control) {
        return Ok(());
    }
    Err(Error::request(
        "id",
        format!(
            "expected 1 to {ID_BYTES_MAX} bytes without control characters, got {} bytes",
            id.len()
        ),
        "use the names of the sector and the proof, or a UUID",
    ))
}

#[cfg(test)]
mod tests {
    use cuzk_scheduler::priority::{Patience, Priority};

    use super::*;
    use crate::job::NewJob;
    use cuzk_filecoin::{CircuitId, ProofKind, SectorSize};

    fn job(registry: &Registry, id: &str) -> Arc<JobState> {
        let accepted = Instant::now();
        let number = registry.next_number();
        let patience = Patience {
            normal: Duration::ZERO,
            low: Duration::ZERO,
        };
        Arc::new(JobState::new(NewJob {
            number,
            id: Some(id.to_owned()),
            caller: tracing::Span::none(),
            circuit: CircuitId {
                kind: ProofKind::Porep,
                sector_size: SectorSize::KiB2,
            },
            partitions: 1,
            priority: Priority::Normal,
            patience,
            accepted,
            deadline: None,
            record: None,
        }))
    }

    fn end(registry: &Registry, state: &Arc<JobState>) {
        end_with(registry, state, Error::Cancelled);
    }

    fn end_with(registry: &Registry, state: &Arc<JobState>, error: Error) {
        assert!(state.end(Err(Arc::new(error))));
        registry.ended(state);
    }

    #[test]
    fn a_job_that_was_interrupted_is_told_once_however_its_result_is_kept() {
        let registry = Registry::new(0, Duration::ZERO);
        let [first, cancelled, refused, second] =
            ["first", "cancelled", "refused", "second"].map(|id| job(&registry, id));
        for state in [&first, &cancelled, &refused, &second] {
            registry.add_live(state);
        }
        end_with(&registry, &second, Error::ShuttingDown);
        end(&registry, &cancelled);
        // Its caller has the error of the submission.
        registry.ended(&refused);
        end_with(&registry, &first, Error::ShuttingDown);
        registry.ended(&first);
        let numbers = |jobs: Vec<Arc<JobState>>| jobs.iter().map(|job| job.number()).collect();
        let told: Vec<_> = numbers(registry.take_interrupted());
        assert_eq!(told, [first.number(), second.number()]);
        assert!(registry.take_interrupted().is_empty());
    }

    /// Its end is forgotten by the time its submission is over.
    #[test]
    fn a_job_that_ends_at_once_is_forgotten_as_any() {
        let registry = Registry::new(2, Duration::from_secs(3600));
        let prove = |id: &str| {
            let Begin::New(claim) = registry.begin(id, [0; 32]).unwrap() else {
                panic!("{id} is new");
            };
            let state = job(&registry, id);
            registry.add_live(&state);
            (claim, state)
        };
        let (late, state) = prove("late");
        end(&registry, &state);
        let prove_others = |ids: [&str; 3]| {
            for id in ids {
                let (claim, state) = prove(id);
                claim.decide(Arc::clone(&state));
                end(&registry, &state);
            }
        };
        prove_others(["a", "b", "c"]);
        late.decide(Arc::clone(&state));
        assert!(registry.find("late").is_some());
        prove_others(["d", "e", "f"]);
        assert!(registry.find("late").is_none());
        assert_eq!(registry.lock().ids.len(), 2);
    }

    /// A job that cannot be found by its id takes no place of one that can.
    #[test]
    fn a_job_that_cannot_be_found_pushes_nothing_out() {
        let registry = Registry::new(2, Duration::from_secs(3600));
        let kept = job(&registry, "kept");
        registry.restore("kept", [0; 32], &kept);
        end(&registry, &kept);
        for id in ["a", "b", "kept"] {
            end(&registry, &job(&registry, id));
        }
        assert!(registry.find("kept").is_some());
        assert_eq!(registry.lock().ended.len(), 1);
    }
}
