//! The engine's end of a job.
//!
//! Not its queue: that is the engine's. The invariants: a job ends exactly once, and with
//! proofs only if all were verified with the same key; its input dies with its end,
//! whoever still holds the job; the end is recorded before anyone is told.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

use cuzk_groth16::params::Loading;
use cuzk_groth16::verify::VerifiedProof;
use cuzk_scheduler::priority::{Priority, Rank};

use super::{Outcome, Progress, ProofOutput};
use crate::Result;
use cuzk_filecoin::{CircuitId, Statement};

/// Where a job's progress is kept beyond the life of this process.
pub(crate) trait Record: Send + Sync {
    /// A partition was proved, and others are still to be.
    fn partition(&self, partition: usize, proof: &VerifiedProof);
    /// The job ended.
    fn end(&self, outcome: &Outcome);
}

/// The engine's end of a job.
pub(crate) struct JobState {
    number: u64,
    id: Option<String>,
    circuit: CircuitId,
    priority: Priority,
    rank: Rank,
    accepted: Instant,
    deadline: Option<Instant>,
    /// Let go of with the end, so that no handle keeps a journal open.
    record: Mutex<Option<Arc<dyn Record>>>,
    input: Mutex<Option<Arc<dyn Statement>>>,
    /// Set with the end, to be looked at without a lock.
    stopped: AtomicBool,
    parts: Mutex<Parts>,
    ended: Condvar,
}

/// A partition's proof, and with which parameters' key it was verified.
#[derive(Clone, Copy, Debug)]
struct Proven {
    proof: VerifiedProof,
    loading: Loading,
}

/// What came of a partition's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    /// Others are missing, or the job had ended.
    Open,
    /// The job ended with it.
    Ended,
    /// All partitions are proved, and not all were verified with the same key: the
    /// parameters were replaced meanwhile. See [`JobState::unite`].
    Mixed,
}

#[derive(Debug)]
struct Parts {
    proofs: Vec<Option<Proven>>,
    /// Set before the end is recorded, so that there is one end.
    ending: bool,
    /// Whether a thread looks at the proofs again.
    uniting: bool,
    outcome: Option<Outcome>,
    /// Each with the number of the future that left it, one of each.
    wakers: Vec<(u64, Waker)>,
    /// How many futures have left one.
    futures: u64,
}

/// What is known of a job when it is accepted.
pub(crate) struct NewJob {
    pub(crate) number: u64,
    pub(crate) id: Option<String>,
    pub(crate) circuit: CircuitId,
    pub(crate) partitions: usize,
    pub(crate) priority: Priority,
    pub(crate) rank: Rank,
    pub(crate) accepted: Instant,
    pub(crate) deadline: Option<Instant>,
    pub(crate) record: Option<Arc<dyn Record>>,
}

impl std::fmt::Debug for JobState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JobState")
            .field("number", &self.number)
            .field("id", &self.id)
            .field("circuit", &self.circuit)
            .finish_non_exhaustive()
    }
}

impl JobState {
    pub(crate) fn new(job: NewJob) -> Self {
        let parts = Parts {
            proofs: vec![None; job.partitions],
            ending: false,
            uniting: false,
            outcome: None,
            wakers: Vec::new(),
            futures: 0,
        };
        Self {
            number: job.number,
            id: job.id,
            circuit: job.circuit,
            priority: job.priority,
            rank: job.rank,
            accepted: job.accepted,
            deadline: job.deadline,
            record: Mutex::new(job.record),
            input: Mutex::default(),
            stopped: AtomicBool::new(false),
            parts: Mutex::new(parts),
            ended: Condvar::new(),
        }
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    pub(crate) fn circuit(&self) -> CircuitId {
        self.circuit
    }

    pub(crate) fn priority(&self) -> Priority {
        self.priority
    }

    pub(crate) fn rank(&self) -> Rank {
        self.rank
    }

    pub(crate) fn accepted(&self) -> Instant {
        self.accepted
    }

    pub(crate) fn deadline_has_passed(&self) -> bool {
        self.deadline
            .is_some_and(|deadline| deadline <= Instant::now())
    }

    /// Whether nothing more needs to be done for the job.
    pub(crate) fn has_ended(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    pub(crate) fn progress(&self) -> Progress {
        let parts = self.lock();
        Progress {
            partitions_done: parts.proofs.iter().flatten().count(),
            partitions: parts.proofs.len(),
        }
    }

    /// The partitions still to be proved.
    pub(crate) fn missing(&self) -> Vec<usize> {
        let parts = self.lock();
        let missing = parts.proofs.iter().enumerate();
        missing
            .filter(|(_, proof)| proof.is_none())
            .map(|(partition, _)| partition)
            .collect()
    }

    /// Gives the job its input, which lives no longer than the job.
    pub(crate) fn set_input(&self, input: Arc<dyn Statement>) {
        *lock(&self.input) = Some(input);
        if self.has_ended() {
            *lock(&self.input) = None;
        }
    }

    /// The input, unless the job has ended.
    pub(crate) fn input(&self) -> Option<Arc<dyn Statement>> {
        lock(&self.input).clone()
    }

    /// Takes the result of a partition, a proof with what it was verified with. The last
    /// proof ends the job, and so does the first error; what comes after an end, or
    /// twice, is of no use and dropped.
    pub(crate) fn settle(
        &self,
        partition: usize,
        result: Result<(VerifiedProof, Loading)>,
    ) -> Settled {
        let (proof, loading) = match result {
            Ok(proven) => proven,
            Err(error) => return self.ended_by(Err(Arc::new(error))),
        };
        let is_last = {
            let mut parts = self.lock();
            if parts.ending || parts.proofs[partition].is_some() {
                return Settled::Open;
            }
            parts.proofs[partition] = Some(Proven { proof, loading });
            parts.proofs.iter().all(Option::is_some)
        };
        let record = lock(&self.record).clone();
        // The end, which is recorded next, has the last one's proof in it: one wait for the
        // disk less for whoever waits for the job.
        if !is_last && let Some(record) = &record {
            record.partition(partition, &proof);
        }
        let settled = self.end_if_proved();
        if is_last
            && settled == Settled::Mixed
            && let Some(record) = record
        {
            record.partition(partition, &proof);
        }
        settled
    }

    /// Takes a partition's proof from an earlier life of the job, which was verified again
    /// with the circuit's key. Whether this was the end.
    pub(crate) fn restore(&self, partition: usize, proof: VerifiedProof) -> bool {
        let loading = Loading::KEY_ALONE;
        if let Some(place) = self.lock().proofs.get_mut(partition) {
            *place = Some(Proven { proof, loading });
        }
        self.end_if_proved() == Settled::Ended
    }

    /// Has the proofs that were verified with another key looked at again, so that the job
    /// ends with proofs of one. Those that do not hold are missing again, and returned. One
    /// thread does so: of two each could take the other's proofs for another key's, and none
    /// would end the job.
    pub(crate) fn unite(
        &self,
        loading: Loading,
        holds: impl Fn(usize, &VerifiedProof) -> bool,
    ) -> (Settled, Vec<usize>) {
        let mut parts = self.lock();
        if std::mem::replace(&mut parts.uniting, true) {
            return (Settled::Open, Vec::new());
        }
        let proofs = parts.proofs.clone();
        drop(parts);
        let mut missing = Vec::new();
        for (partition, proven) in proofs.into_iter().enumerate() {
            let Some(Proven { proof, .. }) = proven.filter(|proven| proven.loading != loading)
            else {
                continue;
            };
            let held = holds(partition, &proof).then_some(Proven { proof, loading });
            if held.is_none() {
                missing.push(partition);
            }
            self.lock().proofs[partition] = held;
        }
        self.lock().uniting = false;
        (self.end_if_proved(), missing)
    }

    fn end_if_proved(&self) -> Settled {
        let proven: Option<Vec<_>> = self.lock().proofs.iter().copied().collect();
        let Some(proven) = proven else {
            return Settled::Open;
        };
        if proven
            .windows(2)
            .any(|two| two[0].loading != two[1].loading)
        {
            return Settled::Mixed;
        }
        let proofs: Vec<_> = proven.iter().map(|proven| proven.proof).collect();
        self.ended_by(Ok(Arc::new(ProofOutput::of(&proofs))))
    }

    fn ended_by(&self, outcome: Outcome) -> Settled {
        if self.end(outcome) {
            Settled::Ended
        } else {
            Settled::Open
        }
    }

    /// Ends the job, unless it has ended. Whether this was the end.
    pub(crate) fn end(&self, outcome: Outcome) -> bool {
        if std::mem::replace(&mut self.lock().ending, true) {
            return false;
        }
        self.stopped.store(true, Ordering::Release);
        *lock(&self.input) = None;
        // On disk before anyone is told.
        let record = lock(&self.record).take();
        if let Some(record) = record {
            record.end(&outcome);
        }
        let mut parts = self.lock();
        parts.outcome = Some(outcome);
        let wakers = std::mem::take(&mut parts.wakers);
        drop(parts);
        self.ended.notify_all();
        for (_, waker) in wakers {
            // It is the caller's code.
            if catch_unwind(AssertUnwindSafe(|| waker.wake())).is_err() {
                tracing::error!(job = self.number, "a waker panicked");
            }
        }
        true
    }

    /// How it ended, or none while it runs.
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        self.lock().outcome.clone()
    }

    /// The same; while it runs, `waker` is to be woken by its end, in place of the one
    /// that this future left before. `future` is its number, if it left one.
    pub(crate) fn outcome_or_wake(
        &self,
        future: &mut Option<u64>,
        waker: &Waker,
    ) -> Option<Outcome> {
        let mut parts = self.lock();
        if parts.outcome.is_some() {
            return parts.outcome.clone();
        }
        let mut left = parts.wakers.iter_mut();
        if let Some((_, left)) = left.find(|(number, _)| Some(*number) == *future) {
            // Dropped once the lock is released: it is the caller's code.
            let left = std::mem::replace(left, waker.clone());
            drop(parts);
            drop(left);
        } else {
            parts.futures += 1;
            let number = parts.futures;
            *future = Some(number);
            parts.wakers.push((number, waker.clone()));
        }
        None
    }

    /// Who left this waker waits no longer.
    pub(crate) fn forget_waker(&self, future: u64) {
        let mut parts = self.lock();
        let forgotten = parts.wakers.extract_if(.., |(number, _)| *number == future);
        let forgotten: Vec<_> = forgotten.collect();
        drop(parts);
        // It is the caller's code, and not under the lock.
        drop(forgotten);
    }

    /// How many wait to be woken.
    #[cfg(test)]
    pub(crate) fn num_wakers(&self) -> usize {
        self.lock().wakers.len()
    }

    /// Blocks until it has ended.
    pub(crate) fn wait(&self) -> Outcome {
        let mut parts = self.lock();
        loop {
            if let Some(outcome) = &parts.outcome {
                return outcome.clone();
            }
            let woken = self.ended.wait(parts);
            parts = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Blocks until it has ended, but no longer than `timeout`.
    pub(crate) fn wait_for(&self, timeout: Duration) -> Option<Outcome> {
        let (parts, _) = self
            .ended
            .wait_timeout_while(self.lock(), timeout, |parts| parts.outcome.is_none())
            .unwrap_or_else(PoisonError::into_inner);
        parts.outcome.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Parts> {
        lock(&self.parts)
    }
}

// Every change under a job's locks is whole before anything that can panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
