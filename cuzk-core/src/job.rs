//! A job that was accepted, from the outside and from the inside.
//!
//! Not its queue: that is the engine's. The invariants: a job ends exactly once,
//! with the proof of all its partitions or with the first error, and whoever
//! waits for it, on a thread or in a future, is then woken; its input dies with
//! its end, whoever still holds the job.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use cuzk_scheduler::priority::{Priority, Rank};

use crate::engine::Ends;
use crate::kinds::verify::PARTITION_PROOF_BYTES;
use crate::kinds::{CircuitId, Job};
use crate::verify::VerifiedProof;
use crate::{Error, Result};

/// How a job ended. Shared, since a handle can be asked more than once.
pub type Outcome = std::result::Result<Arc<ProofOutput>, Arc<Error>>;

/// How a job is to be treated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobOptions {
    /// The caller's name for the job. The same name with the same request is the
    /// same job, so that a caller who does not know whether a submission arrived
    /// can repeat it. Only jobs with an id are kept in the journal.
    pub id: Option<String>,
    /// How urgent it is; by its kind where nothing is said.
    pub priority: Option<Priority>,
    /// The time from now after which the proof is of no use. A job that cannot
    /// make it is refused, as far as that is known.
    pub deadline: Option<Duration>,
}

/// A verified proof of all of a job's partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProofOutput {
    bytes: Vec<u8>,
}

impl ProofOutput {
    /// The proof as the chain expects it: the partitions' proofs in order,
    /// [`PARTITION_PROOF_BYTES`] each.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many partitions it proves.
    #[must_use]
    pub fn partitions(&self) -> usize {
        self.bytes.len() / PARTITION_PROOF_BYTES
    }
}

/// How far a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Partitions proved and verified.
    pub partitions_done: usize,
    /// All the job's partitions.
    pub partitions: usize,
}

/// The caller's end of a job. Dropping it does not stop the job.
///
/// It can be waited for on a thread ([`JobHandle::wait`]) or in async code:
/// `handle.await` gives the same [`Outcome`], on any executor.
#[derive(Clone)]
pub struct JobHandle {
    state: Arc<JobState>,
    engine: Weak<dyn Ends>,
}

impl std::fmt::Debug for JobHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("JobHandle").field(&self.state).finish()
    }
}

impl JobHandle {
    pub(crate) fn new(state: Arc<JobState>, engine: Weak<dyn Ends>) -> Self {
        Self { state, engine }
    }

    /// The job's number in the engine's timeline.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.state.number
    }

    /// The caller's name for the job, if it has one.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        self.state.id.as_deref()
    }

    /// How urgent the job is.
    #[must_use]
    pub fn priority(&self) -> Priority {
        self.state.priority
    }

    /// Blocks until the job has ended.
    ///
    /// # Errors
    /// The first error of any of its partitions.
    pub fn wait(&self) -> Outcome {
        let mut parts = self.state.lock();
        loop {
            if let Some(outcome) = &parts.outcome {
                return outcome.clone();
            }
            let ended = self.state.ended.wait(parts);
            parts = ended.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Blocks until the job has ended, but no longer than `timeout`.
    #[must_use]
    pub fn wait_for(&self, timeout: Duration) -> Option<Outcome> {
        let (parts, _) = self
            .state
            .ended
            .wait_timeout_while(self.state.lock(), timeout, |parts| parts.outcome.is_none())
            .unwrap_or_else(PoisonError::into_inner);
        parts.outcome.clone()
    }

    /// How the job ended, or none while it runs.
    #[must_use]
    pub fn poll(&self) -> Option<Outcome> {
        self.state.lock().outcome.clone()
    }

    /// Ends the job with [`Error::Cancelled`]: what waits is dropped, what runs
    /// stops at its next chunk, and its memory is free then. Whether there was
    /// still something to cancel.
    pub fn cancel(&self) -> bool {
        match self.engine.upgrade() {
            Some(engine) => engine.end(&self.state, Error::Cancelled),
            None => false,
        }
    }

    /// The circuit that every partition of the job proves.
    #[must_use]
    pub fn circuit(&self) -> CircuitId {
        self.state.circuit
    }

    /// How far the job is.
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.state.progress()
    }
}

impl IntoFuture for JobHandle {
    type Output = Outcome;
    type IntoFuture = Ended;

    fn into_future(self) -> Ended {
        Ended { state: self.state }
    }
}

/// The end of a job, as a future. Dropping it does not stop the job.
#[derive(Debug)]
pub struct Ended {
    state: Arc<JobState>,
}

impl Future for Ended {
    type Output = Outcome;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome> {
        let mut parts = self.state.lock();
        if let Some(outcome) = &parts.outcome {
            return Poll::Ready(outcome.clone());
        }
        if !parts.wakers.iter().any(|w| w.will_wake(context.waker())) {
            parts.wakers.push(context.waker().clone());
        }
        Poll::Pending
    }
}

/// Where a job's progress is kept beyond the life of this process.
pub(crate) trait Record: Send + Sync {
    /// A partition was proved.
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
    input: Mutex<Option<Arc<dyn Job>>>,
    /// Set with the end, to be looked at without a lock.
    stopped: AtomicBool,
    parts: Mutex<Parts>,
    ended: Condvar,
}

#[derive(Debug)]
struct Parts {
    proofs: Vec<Option<VerifiedProof>>,
    /// Set before the end is recorded, so that there is one end.
    ending: bool,
    outcome: Option<Outcome>,
    wakers: Vec<Waker>,
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
            outcome: None,
            wakers: Vec::new(),
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
    pub(crate) fn set_input(&self, input: Arc<dyn Job>) {
        *lock(&self.input) = Some(input);
        if self.has_ended() {
            *lock(&self.input) = None;
        }
    }

    /// The input, unless the job has ended.
    pub(crate) fn input(&self) -> Option<Arc<dyn Job>> {
        lock(&self.input).clone()
    }

    /// Takes the result of a partition. The last proof ends the job, and so does
    /// the first error; what comes after an end, or twice, is of no use and
    /// dropped. Whether this was the end.
    pub(crate) fn settle(&self, partition: usize, result: Result<VerifiedProof>) -> bool {
        let proof = match result {
            Ok(proof) => proof,
            Err(error) => return self.end(Err(Arc::new(error))),
        };
        {
            let mut parts = self.lock();
            if parts.ending || parts.proofs[partition].is_some() {
                return false;
            }
            parts.proofs[partition] = Some(proof);
        }
        let record = lock(&self.record).clone();
        if let Some(record) = record {
            record.partition(partition, &proof);
        }
        let proofs: Option<Vec<_>> = self.lock().proofs.iter().copied().collect();
        proofs.is_some_and(|proofs| self.end(Ok(Arc::new(assembled(&proofs)))))
    }

    /// Takes a partition's proof from an earlier life of the job.
    pub(crate) fn restore(&self, partition: usize, proof: VerifiedProof) -> bool {
        if let Some(place) = self.lock().proofs.get_mut(partition) {
            *place = Some(proof);
        }
        let proofs: Option<Vec<_>> = self.lock().proofs.iter().copied().collect();
        proofs.is_some_and(|proofs| self.end(Ok(Arc::new(assembled(&proofs)))))
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
        wakers.into_iter().for_each(Waker::wake);
        true
    }

    /// How it ended.
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        self.lock().outcome.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Parts> {
        lock(&self.parts)
    }
}

// Every change under a job's locks is whole before anything that can panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn assembled(proofs: &[VerifiedProof]) -> ProofOutput {
    ProofOutput {
        bytes: proofs.iter().flat_map(|proof| *proof.as_bytes()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::task::Wake;
    use std::thread;

    use cuzk_scheduler::priority::Patience;

    use super::*;
    use crate::kinds::{ProofKind, SectorSize};

    struct NoEngine;

    impl Ends for NoEngine {
        fn end(&self, state: &Arc<JobState>, error: Error) -> bool {
            state.end(Err(Arc::new(error)))
        }
    }

    fn state(partitions: usize) -> Arc<JobState> {
        let accepted = Instant::now();
        let patience = Patience {
            normal: Duration::ZERO,
            low: Duration::ZERO,
        };
        Arc::new(JobState::new(NewJob {
            number: 1,
            id: None,
            circuit: CircuitId {
                kind: ProofKind::Porep,
                sector_size: SectorSize::KiB2,
            },
            partitions,
            priority: Priority::Normal,
            rank: Rank::new(Priority::Normal, accepted, 0, patience),
            accepted,
            deadline: None,
            record: None,
        }))
    }

    fn handle(state: &Arc<JobState>, engine: &Arc<NoEngine>) -> JobHandle {
        let engine: Weak<NoEngine> = Arc::downgrade(engine);
        JobHandle::new(Arc::clone(state), engine)
    }

    #[test]
    fn the_first_error_ends_a_job_and_stays() {
        let (state, engine) = (state(2), Arc::new(NoEngine));
        let handle = handle(&state, &engine);
        assert!(handle.poll().is_none());
        assert!(state.settle(1, Err(Error::ShuttingDown)));
        assert!(!state.settle(0, Err(Error::Busy { capacity: 1 })));
        assert!(!handle.cancel());
        assert!(state.has_ended());
        assert!(matches!(*handle.wait().unwrap_err(), Error::ShuttingDown));
        assert!(matches!(*handle.wait().unwrap_err(), Error::ShuttingDown));
    }

    #[test]
    fn a_handle_outlives_its_engine() {
        let (state, engine) = (state(1), Arc::new(NoEngine));
        let handle = handle(&state, &engine);
        drop(engine);
        assert!(!handle.cancel());
        assert!(handle.wait_for(Duration::from_millis(1)).is_none());
    }

    #[test]
    fn a_future_is_woken_by_the_end() {
        struct Sender(mpsc::SyncSender<()>);
        impl Wake for Sender {
            fn wake(self: Arc<Self>) {
                self.0.send(()).unwrap();
            }
        }
        let (state, engine) = (state(1), Arc::new(NoEngine));
        let (sender, woken) = mpsc::sync_channel(8);
        let waker = Waker::from(Arc::new(Sender(sender)));
        let mut context = Context::from_waker(&waker);
        let mut future = handle(&state, &engine).into_future();
        let mut poll = || Pin::new(&mut future).poll(&mut context);
        assert!(poll().is_pending());
        assert!(poll().is_pending());
        let canceller = handle(&state, &engine);
        thread::scope(|scope| {
            scope.spawn(move || assert!(canceller.cancel()));
        });
        woken.recv().unwrap();
        assert!(woken.try_recv().is_err(), "asked twice, woken once");
        let Poll::Ready(Err(error)) = poll() else {
            panic!("the job has ended")
        };
        assert!(matches!(*error, Error::Cancelled));
    }
}
