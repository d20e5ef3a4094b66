//! Ends of jobs, without an engine.

use std::future::{Future as _, IntoFuture as _};
use std::pin::Pin;
use std::sync::{Arc, Mutex, Weak, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use cuzk_bounded::{BoundedReceiver, bounded};
use cuzk_filecoin::verify::PARTITION_PROOF_BYTES;
use cuzk_filecoin::{CircuitId, ProofKind, SectorSize};
use cuzk_groth16::params::Loading;
use cuzk_groth16::verify::VerifiedProof;
use cuzk_scheduler::priority::{Patience, Priority};

use super::*;
use crate::Error;

/// As long as a test waits for what comes at once.
const MOMENTS: Duration = Duration::from_secs(60);

struct NoEngine;

impl Owner for NoEngine {
    fn check_caller(&self) -> crate::Result<()> {
        Ok(())
    }

    fn set_priority(&self, state: &Arc<JobState>, priority: Priority) {
        state.set_priority(priority);
    }

    fn cancel(&self, state: &Arc<JobState>) -> bool {
        let ended = state.end(Err(Arc::new(Error::Cancelled)));
        if ended {
            state.tell();
        }
        ended
    }
}

fn state(partitions: usize) -> Arc<JobState> {
    recorded(partitions, None)
}

fn recorded(partitions: usize, record: Option<Arc<dyn Record>>) -> Arc<JobState> {
    let accepted = Instant::now();
    let patience = Patience {
        normal: Duration::ZERO,
        low: Duration::ZERO,
    };
    Arc::new(JobState::new(NewJob {
        number: 1,
        id: None,
        caller: tracing::Span::none(),
        circuit: CircuitId {
            kind: ProofKind::Porep,
            sector_size: SectorSize::KiB2,
        },
        partitions,
        priority: Priority::Normal,
        patience,
        accepted,
        deadline: None,
        record,
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
    assert_eq!(state.settle(1, Err(Error::ShuttingDown)), Settled::Ended);
    let later = Err(Error::Busy { capacity: 1 });
    assert_eq!(state.settle(0, later), Settled::Open);
    assert!(!handle.cancel());
    assert!(state.has_ended());
    assert!(handle.poll().is_none(), "nobody is told yet");
    state.tell();
    assert!(matches!(
        *bounded(|| handle.wait()).unwrap_err(),
        Error::ShuttingDown
    ));
    assert!(matches!(
        *bounded(|| handle.wait()).unwrap_err(),
        Error::ShuttingDown
    ));
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
fn a_waker_that_panics_keeps_no_other_waiting() {
    struct Panics;
    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            panic!("a defect of an executor");
        }
    }
    struct Sender(mpsc::SyncSender<()>);
    impl Wake for Sender {
        fn wake(self: Arc<Self>) {
            self.0.send(()).unwrap();
        }
    }
    let (state, engine) = (state(1), Arc::new(NoEngine));
    let (sender, woken) = mpsc::sync_channel(1);
    let wakers = [
        Waker::from(Arc::new(Panics)),
        Waker::from(Arc::new(Sender(sender))),
    ];
    let mut futures = [(); 2].map(|()| handle(&state, &engine).into_future());
    for (future, waker) in futures.iter_mut().zip(&wakers) {
        let polled = Pin::new(future).poll(&mut Context::from_waker(waker));
        assert!(polled.is_pending());
    }
    assert!(handle(&state, &engine).cancel());
    woken.recv_bounded().unwrap();
}

/// A caller that polls again and again, each time from another task.
#[test]
fn a_future_that_is_gone_or_asks_again_leaves_no_waker() {
    struct Nobody;
    impl Wake for Nobody {
        fn wake(self: Arc<Self>) {}
    }
    let (state, engine) = (state(1), Arc::new(NoEngine));
    let mut stays = handle(&state, &engine).into_future();
    for _ in 0..3 {
        let waker = Waker::from(Arc::new(Nobody));
        let mut goes = handle(&state, &engine).into_future();
        for future in [&mut stays, &mut goes] {
            let polled = Pin::new(future).poll(&mut Context::from_waker(&waker));
            assert!(polled.is_pending());
        }
        assert_eq!(state.told().num_wakers(), 2);
        drop(goes);
        assert_eq!(state.told().num_wakers(), 1);
    }
    drop(stays);
    assert_eq!(state.told().num_wakers(), 0);
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
    woken.recv_bounded().unwrap();
    assert!(woken.try_recv().is_err(), "asked twice, woken once");
    let Poll::Ready(Err(error)) = poll() else {
        panic!("the job has ended")
    };
    assert!(matches!(*error, Error::Cancelled));
}

/// What was recorded of a job, in words.
#[derive(Default)]
struct Lines(Mutex<Vec<String>>);

impl Record for Lines {
    fn partition(&self, partition: usize, _: &VerifiedProof) {
        self.0
            .lock()
            .unwrap()
            .push(format!("partition {partition}"));
    }

    fn end(&self, outcome: &Outcome) {
        let partitions = outcome.as_ref().map(|proof| proof.partitions());
        self.0.lock().unwrap().push(format!("end {partitions:?}"));
    }
}

/// A wait for the disk less.
#[test]
fn the_last_partition_is_recorded_with_the_end() {
    let proof = VerifiedProof::unchecked([1; PARTITION_PROOF_BYTES]);
    let (old, new) = (Loading::begin(), Loading::begin());
    let lines = Arc::new(Lines::default());
    let one = recorded(1, Some(lines.clone()));
    assert_eq!(one.settle(0, Ok((proof, old))), Settled::Ended);
    assert_eq!(*lines.0.lock().unwrap(), ["end Ok(1)"]);
    // But if its end is not to be yet.
    let lines = Arc::new(Lines::default());
    let two = recorded(2, Some(lines.clone()));
    assert_eq!(two.settle(1, Ok((proof, old))), Settled::Open);
    assert_eq!(two.settle(0, Ok((proof, new))), Settled::Mixed);
    let written = ["partition 1", "partition 0"];
    assert_eq!(*lines.0.lock().unwrap(), written);
    assert_eq!(two.unite(new, |_, _| true), (Settled::Ended, vec![]));
    assert_eq!(lines.0.lock().unwrap()[2..], ["end Ok(2)"]);
}

#[test]
fn a_proof_that_comes_twice_or_after_the_end_is_dropped() {
    let proof = VerifiedProof::unchecked([1; PARTITION_PROOF_BYTES]);
    let (lines, loading) = (Arc::new(Lines::default()), Loading::begin());
    let state = recorded(2, Some(lines.clone()));
    for _ in 0..2 {
        assert_eq!(state.settle(0, Ok((proof, loading))), Settled::Open);
    }
    assert_eq!(*lines.0.lock().unwrap(), ["partition 0"]);
    assert_eq!(state.settle(1, Err(Error::ShuttingDown)), Settled::Ended);
    assert_eq!(state.settle(1, Ok((proof, loading))), Settled::Open);
    assert_eq!(state.progress().partitions_done, 1);
}

/// What a caller's waker does with the job, when it is woken and when it is dropped.
struct Looks(JobHandle, mpsc::SyncSender<&'static str>);

impl Wake for Looks {
    fn wake(self: Arc<Self>) {
        assert!(self.0.poll().is_some());
        self.1.send("woken").unwrap();
    }
}

impl Drop for Looks {
    fn drop(&mut self) {
        // It takes the lock of the outcome.
        let _ = self.0.poll();
        // Nobody listens to the last one.
        let _ = self.1.send("dropped");
    }
}

/// A job's lock is not held where a caller's code runs, or that could not look at the job.
#[test]
fn a_waker_can_look_at_its_job() {
    let (tell, told) = mpsc::sync_channel(8);
    thread::spawn(move || {
        let (state, engine) = (state(1), Arc::new(NoEngine));
        let future = || handle(&state, &engine).into_future();
        let waker = || Waker::from(Arc::new(Looks(handle(&state, &engine), tell.clone())));
        let (mut goes, mut asks_again) = (future(), future());
        for future in [&mut goes, &mut asks_again] {
            let polled = Pin::new(future).poll(&mut Context::from_waker(&waker()));
            assert!(polled.is_pending());
        }
        drop(goes);
        let polled = Pin::new(&mut asks_again).poll(&mut Context::from_waker(&waker()));
        assert!(polled.is_pending());
        assert!(handle(&state, &engine).cancel());
    });
    let said = |_| told.recv_timeout(MOMENTS).unwrap();
    assert_eq!(
        [(); 4].map(said),
        ["dropped", "dropped", "woken", "dropped"]
    );
}

/// The last two partitions are settled at once, with proofs of two keys, and both threads
/// see that.
#[test]
fn one_thread_unites_the_proofs_of_a_job() {
    let state = state(2);
    let proof = VerifiedProof::unchecked([1; PARTITION_PROOF_BYTES]);
    let loadings = [(); 2].map(|()| Loading::begin());
    assert_eq!(state.settle(0, Ok((proof, loadings[0]))), Settled::Open);
    assert_eq!(state.settle(1, Ok((proof, loadings[1]))), Settled::Mixed);
    let holds = |partition: usize, _: &VerifiedProof| {
        assert_eq!(partition, 1);
        let other = state.unite(loadings[1], |_, _| panic!("the other looks at them"));
        assert_eq!(other, (Settled::Open, Vec::new()));
        true
    };
    assert_eq!(state.unite(loadings[0], holds), (Settled::Ended, vec![]));
}

#[test]
fn what_does_not_hold_with_the_newest_key_is_missing_again() {
    let state = state(3);
    let proof = VerifiedProof::unchecked([1; PARTITION_PROOF_BYTES]);
    let (old, new) = (Loading::begin(), Loading::begin());
    for (partition, loading) in [old, old, new].into_iter().enumerate() {
        state.settle(partition, Ok((proof, loading)));
    }
    let united = state.unite(new, |partition, _| partition == 1);
    assert_eq!(
        (united, state.missing()),
        ((Settled::Open, vec![0]), vec![0])
    );
    assert_eq!(state.settle(0, Ok((proof, new))), Settled::Ended);
}
