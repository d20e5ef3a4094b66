//! The engine's jobs, by number while they run and by id as long as they are
//! known.
//!
//! Not a queue: a job is here until it has ended, whatever its partitions do.
//! The invariants: an id stands for one request; of several submissions of an id
//! at once one decides and the others attach to what it decided; what is kept of
//! ended jobs is bounded in number and in time.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::job::JobState;
use crate::{Error, Result};

/// The longest id, in bytes.
const ID_BYTES_MAX: usize = 1024;

/// Of a request.
pub(super) type Digest = [u8; 32];

/// The jobs of an engine.
#[derive(Debug)]
pub(super) struct Registry {
    next_number: AtomicU64,
    kept_max: usize,
    kept_for: Duration,
    jobs: Mutex<Jobs>,
    decided: Condvar,
}

#[derive(Debug, Default)]
struct Jobs {
    live: HashMap<u64, Arc<JobState>>,
    ids: HashMap<String, Entry>,
    /// The ids of ended jobs, those that ended first in front.
    ended: VecDeque<(Instant, String)>,
}

#[derive(Debug)]
struct Entry {
    digest: Digest,
    /// None while its first submission is being decided.
    state: Option<Arc<JobState>>,
}

/// How a submission goes on.
pub(super) enum Begin<'a> {
    /// It has no id.
    Nameless,
    /// The job is there.
    Attached(Arc<JobState>),
    /// It is the first of its id.
    New(Place<'a>),
}

/// The place of an id whose job is being decided. Dropped without a job it is
/// free again.
pub(super) struct Place<'a> {
    registry: &'a Registry,
    id: String,
}

impl Registry {
    pub(super) fn new(kept_max: usize, kept_for: Duration) -> Self {
        Self {
            next_number: AtomicU64::new(0),
            kept_max,
            kept_for,
            jobs: Mutex::default(),
            decided: Condvar::new(),
        }
    }

    pub(super) fn next_number(&self) -> u64 {
        self.next_number.fetch_add(1, Ordering::Relaxed)
    }

    /// Begins a submission under an id.
    ///
    /// # Errors
    /// [`Error::Conflict`] for an id of another request, and ids that are empty
    /// or too long.
    pub(super) fn begin(&self, id: &str, digest: Digest) -> Result<Begin<'_>> {
        check_id(id)?;
        let mut jobs = self.lock();
        loop {
            self.forget_old(&mut jobs);
            match jobs.ids.get(id) {
                None => break,
                Some(entry) if entry.digest != digest => {
                    return Err(Error::Conflict { id: id.to_owned() });
                }
                Some(Entry { state: None, .. }) => {
                    jobs = self
                        .decided
                        .wait(jobs)
                        .unwrap_or_else(PoisonError::into_inner);
                }
                Some(Entry {
                    state: Some(state), ..
                }) => match state.outcome() {
                    // What failed may well succeed when it is asked for again.
                    Some(Err(_)) => break,
                    _ => return Ok(Begin::Attached(Arc::clone(state))),
                },
            }
        }
        let entry = Entry {
            digest,
            state: None,
        };
        jobs.ids.insert(id.to_owned(), entry);
        Ok(Begin::New(Place {
            registry: self,
            id: id.to_owned(),
        }))
    }

    /// The id stands for this job, from an earlier life of the engine.
    pub(super) fn take(&self, id: &str, digest: Digest, state: &Arc<JobState>) {
        let entry = Entry {
            digest,
            state: Some(Arc::clone(state)),
        };
        self.lock().ids.insert(id.to_owned(), entry);
    }

    /// From now on `state` is one of the engine's jobs.
    pub(super) fn live(&self, state: &Arc<JobState>) {
        self.lock().live.insert(state.number(), Arc::clone(state));
    }

    /// `state` has ended.
    pub(super) fn ended(&self, state: &Arc<JobState>) {
        let mut jobs = self.lock();
        jobs.live.remove(&state.number());
        // A job that nobody can ask for by its id keeps no other from being asked for.
        let is_found = |id: &&str| {
            let found = jobs.ids.get(*id).and_then(|entry| entry.state.as_ref());
            found.is_some_and(|found| Arc::ptr_eq(found, state))
        };
        if let Some(id) = state.id().filter(is_found).map(str::to_owned) {
            jobs.ended.push_back((Instant::now(), id));
        }
        self.forget_old(&mut jobs);
    }

    /// The jobs that have not ended, the oldest first.
    pub(super) fn all_live(&self) -> Vec<Arc<JobState>> {
        let live = self.lock();
        let not_ended = live.live.values().filter(|state| !state.has_ended());
        let mut live: Vec<_> = not_ended.cloned().collect();
        live.sort_unstable_by_key(|state| state.number());
        live
    }

    /// The job of an id.
    pub(super) fn find(&self, id: &str) -> Option<Arc<JobState>> {
        let mut jobs = self.lock();
        self.forget_old(&mut jobs);
        jobs.ids.get(id)?.state.clone()
    }

    fn forget_old(&self, jobs: &mut Jobs) {
        while let Some((ended, _)) = jobs.ended.front()
            && (jobs.ended.len() > self.kept_max || ended.elapsed() > self.kept_for)
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

    fn lock(&self) -> MutexGuard<'_, Jobs> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place<'_> {
    /// The id stands for this job.
    pub(super) fn take(self, state: Arc<JobState>) {
        let mut jobs = self.registry.lock();
        let has_ended = state.has_ended();
        if let Some(entry) = jobs.ids.get_mut(&self.id) {
            entry.state = Some(state);
        }
        // It may have ended so long ago that its end is forgotten.
        if has_ended && !jobs.ended.iter().any(|(_, id)| *id == self.id) {
            jobs.ended.push_back((Instant::now(), self.id.clone()));
        }
        drop(jobs);
    }
}

impl Drop for Place<'_> {
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
        "use what names the sector and the proof, or a UUID",
    ))
}

#[cfg(test)]
mod tests {
    use cuzk_scheduler::priority::{Patience, Priority, Rank};

    use super::*;
    use crate::job::NewJob;
    use crate::kinds::{CircuitId, ProofKind, SectorSize};

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
            circuit: CircuitId {
                kind: ProofKind::Porep,
                sector_size: SectorSize::KiB2,
            },
            partitions: 1,
            priority: Priority::Normal,
            rank: Rank::new(Priority::Normal, accepted, number, patience),
            accepted,
            deadline: None,
            record: None,
        }))
    }

    fn end(registry: &Registry, state: &Arc<JobState>) {
        assert!(state.end(Err(Arc::new(Error::Cancelled))));
        registry.ended(state);
    }

    /// Its end is forgotten by the time its submission is over.
    #[test]
    fn a_job_that_ends_at_once_is_forgotten_as_any() {
        let registry = Registry::new(2, Duration::from_secs(3600));
        let prove = |id: &str| {
            let Begin::New(place) = registry.begin(id, [0; 32]).unwrap() else {
                panic!("{id} is new");
            };
            let state = job(&registry, id);
            registry.live(&state);
            (place, state)
        };
        let (late, state) = prove("late");
        end(&registry, &state);
        let prove_others = |ids: [&str; 3]| {
            for id in ids {
                let (place, state) = prove(id);
                place.take(Arc::clone(&state));
                end(&registry, &state);
            }
        };
        prove_others(["a", "b", "c"]);
        late.take(Arc::clone(&state));
        assert!(registry.find("late").is_some());
        prove_others(["d", "e", "f"]);
        assert!(registry.find("late").is_none());
        assert_eq!(registry.lock().ids.len(), 2);
    }
    /// One that nobody can ask for by its id takes no place of one that somebody can.
    #[test]
    fn what_was_not_taken_in_pushes_nothing_out() {
        let registry = Registry::new(2, Duration::from_secs(3600));
        let kept = job(&registry, "kept");
        registry.take("kept", [0; 32], &kept);
        end(&registry, &kept);
        for id in ["a", "b", "kept"] {
            end(&registry, &job(&registry, id));
        }
        assert!(registry.find("kept").is_some());
        assert_eq!(registry.lock().ended.len(), 1);
    }
}
