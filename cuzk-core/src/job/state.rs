//! A job as the engine sees it: its statement, its proofs so far, its end.
//!
//! Not its queue, which is the engine's. The invariants: a job ends exactly once, and with
//! proofs only if all were verified with the same key; its input is dropped with its end,
//! also if handles still hold the job; the end is recorded before anyone is told. The
//! engine notes the end where a caller may look for it, and tells callers after that.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use cuzk_filecoin::{CircuitId, Statement};
use cuzk_groth16::params::Loading;
use cuzk_groth16::verify::VerifiedProof;
use cuzk_memory::Cancellation;
use cuzk_scheduler::clock;
use cuzk_scheduler::priority::{Patience, Priority, Rank};
use cuzk_timeline::LiveJob;

use super::new_job::{NewJob, Record};
use super::outcome_cell::OutcomeCell;
use super::places::Places;
use super::{JobTimes, Outcome, Progress, ProofOutput};
use crate::Result;

/// A job that was accepted.
pub(crate) struct JobState {
    number: u64,
    id: Option<String>,
    caller: tracing::Span,
    circuit: CircuitId,
    /// True if it was accepted as critical. It keeps its lane: the reserve has its memory.
    critical: bool,
    /// A [`Priority`]. It is read without a lock.
    priority: AtomicU8,
    patience: Patience,
    accepted: Instant,
    deadline: Option<Instant>,
    ended: OnceLock<Instant>,
    live: Arc<LiveJob>,
    places: Places,
    /// Dropped with the end, so that no handle keeps a journal open.
    record: Mutex<Option<Arc<dyn Record>>>,
    input: Mutex<Option<Arc<dyn Statement>>>,
    /// Raised with the end. It is read without a lock.
    stopped: Cancellation,
    parts: Mutex<Parts>,
    outcome: OnceLock<Outcome>,
    /// Set after `outcome`: what callers wait for.
    told: OutcomeCell,
}

/// A partition's proof, and the loading of the parameters that it was verified with.
#[derive(Clone, Copy, Debug)]
struct Proven {
    proof: VerifiedProof,
    loading: Loading,
}

/// The effect of a partition's result on its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    /// None: other partitions are missing, or the job had ended.
    Open,
    /// The job ended with it.
    Ended,
    /// All partitions are proved, but not all were verified with the same key, because the
    /// parameters were replaced meanwhile. See [`JobState::unite`].
    Mixed,
}

#[derive(Debug)]
struct Parts {
    proofs: Vec<Option<Proven>>,
    /// Set before the end is recorded, so that there is one end.
    ending: bool,
    /// True while a thread verifies the proofs again.
    uniting: bool,
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
        };
        Self {
            number: job.number,
            id: job.id,
            caller: job.caller,
            circuit: job.circuit,
            critical: job.priority == Priority::Critical,
            priority: AtomicU8::new(job.priority as u8),
            patience: job.patience,
            accepted: job.accepted,
            deadline: job.deadline,
            ended: OnceLock::new(),
            live: Arc::new(LiveJob::new(job.partitions)),
            places: Places::new(job.partitions),
            record: Mutex::new(job.record),
            input: Mutex::default(),
            stopped: Cancellation::default(),
            parts: Mutex::new(parts),
            outcome: OnceLock::new(),
            told: OutcomeCell::default(),
        }
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    pub(crate) fn caller(&self) -> &tracing::Span {
        &self.caller
    }

    pub(crate) fn circuit(&self) -> CircuitId {
        self.circuit
    }

    /// Returns its priority, as it was set last.
    pub(crate) fn priority(&self) -> Priority {
        let priority = usize::from(self.priority.load(Ordering::Relaxed));
        *Priority::ALL.get(priority).unwrap_or(&Priority::Normal)
    }

    pub(crate) fn set_priority(&self, priority: Priority) {
        self.priority.store(priority as u8, Ordering::Relaxed);
    }

    /// Returns true if it was accepted as critical, for which there are workers, threads
    /// and memory of their own.
    pub(crate) fn is_critical(&self) -> bool {
        self.critical
    }

    /// Returns the priority that its place follows from: critical exactly if the job was
    /// accepted so.
    pub(crate) fn placed_as(&self) -> Priority {
        match self.priority() {
            _ if self.critical => Priority::Critical,
            Priority::Critical => Priority::High,
            priority => priority,
        }
    }

    /// Returns true if its partitions are not begun while the engine is draining.
    pub(crate) fn is_deferrable(&self) -> bool {
        matches!(self.placed_as(), Priority::Normal | Priority::Low)
    }

    /// Returns its place among all jobs.
    pub(crate) fn rank(&self) -> Rank {
        Rank::new(self.placed_as(), self.accepted, self.number, self.patience)
    }

    /// Returns the stages of its partitions.
    pub(crate) fn live(&self) -> &Arc<LiveJob> {
        &self.live
    }

    /// Returns where its partitions may be proved.
    pub(crate) fn places(&self) -> &Places {
        &self.places
    }

    pub(crate) fn times(&self) -> JobTimes {
        let ended = self.ended.get().copied().unwrap_or_else(clock::now);
        let stages = self.live.times();
        let begun = stages.first_work.unwrap_or(ended).min(ended);
        JobTimes {
            queue_wait: begun.saturating_duration_since(self.accepted),
            srs_load: stages.srs_load,
            synthesis: stages.synthesis,
            device: stages.device,
            total: ended.saturating_duration_since(self.accepted),
        }
    }

    pub(crate) fn accepted(&self) -> Instant {
        self.accepted
    }

    pub(crate) fn deadline_has_passed(&self) -> bool {
        self.deadline
            .is_some_and(|deadline| deadline <= clock::now())
    }

    /// Returns true if nothing more needs to be done for the job.
    pub(crate) fn has_ended(&self) -> bool {
        self.stopped.is_cancelled()
    }

    /// Returns the flag that is raised with the job's end.
    pub(crate) fn cancellation(&self) -> &Cancellation {
        &self.stopped
    }

    pub(crate) fn progress(&self) -> Progress {
        let parts = self.lock();
        Progress {
            partitions_done: parts.proofs.iter().flatten().count(),
            partitions: parts.proofs.len(),
        }
    }

    /// Returns for each partition whether it is proved.
    pub(crate) fn done(&self) -> Vec<bool> {
        self.lock().proofs.iter().map(Option::is_some).collect()
    }

    /// Returns the partitions that are not proved yet.
    pub(crate) fn missing(&self) -> Vec<usize> {
        let parts = self.lock();
        let missing = parts.proofs.iter().enumerate();
        missing
            .filter(|(_, proof)| proof.is_none())
            .map(|(partition, _)| partition)
            .collect()
    }

    /// Gives the job its input, unless it has ended.
    pub(crate) fn set_input(&self, input: Arc<dyn Statement>) {
        *lock(&self.input) = Some(input);
        if self.has_ended() {
            *lock(&self.input) = None;
        }
    }

    /// Lets go of the input, which is read again when the job's turn has come.
    pub(crate) fn drop_input(&self) {
        *lock(&self.input) = None;
    }

    /// Returns the input, unless the job has ended.
    pub(crate) fn input(&self) -> Option<Arc<dyn Statement>> {
        lock(&self.input).clone()
    }

    /// Takes the result of a partition: a proof with the loading of the parameters that it
    /// was verified with, or an error. The last proof ends the job, and so does the first
    /// error. A result that comes twice, or after the end, is dropped.
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
        // The end, which is recorded next, contains the last proof. That saves the caller
        // one wait for the disk.
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

    /// Takes a partition's proof that an earlier engine made and that was verified again
    /// with the circuit's key. Returns true if this ended the job.
    pub(crate) fn restore(&self, partition: usize, proof: VerifiedProof) -> bool {
        let loading = Loading::KEY_ALONE;
        if let Some(place) = self.lock().proofs.get_mut(partition) {
            *place = Some(Proven { proof, loading });
        }
        self.end_if_proved() == Settled::Ended
    }

    /// Checks the proofs that were verified with another key again, so that the job ends with
    /// proofs of one key. Those for which `holds` returns false are missing again, and
    /// returned. One thread does so: each of two could take the other's proofs for another
    /// key's, and neither would end the job.
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

    /// Ends the job, unless it has ended. Returns true if this ended it. Callers are told
    /// by [`JobState::tell`].
    pub(crate) fn end(&self, outcome: Outcome) -> bool {
        if std::mem::replace(&mut self.lock().ending, true) {
            return false;
        }
        self.stopped.cancel();
        *lock(&self.input) = None;
        self.ended.get_or_init(clock::now);
        // It is on disk before anyone is told.
        let record = lock(&self.record).take();
        if let Some(record) = record {
            record.end(&outcome);
        }
        self.outcome.get_or_init(|| outcome);
        true
    }

    /// Tells callers how the job ended. It is to be called once the status shows the job
    /// among those that ended.
    pub(crate) fn tell(&self) {
        if let Some(outcome) = self.outcome() {
            self.told.set(outcome);
        }
    }

    /// Returns the place of what callers were told, where they wait.
    pub(crate) fn told(&self) -> &OutcomeCell {
        &self.told
    }

    /// Returns its outcome; none while it runs. Callers may not have been told.
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        self.outcome.get().cloned()
    }

    fn lock(&self) -> MutexGuard<'_, Parts> {
        lock(&self.parts)
    }
}

// Every change under a job's locks is whole before anything that can panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
