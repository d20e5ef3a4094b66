//! A recorder over a store that can be broken.

use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use cuzk_bounded::BoundedReceiver;
use metrics_util::debugging::{DebugValue, DebuggingRecorder};

use super::*;

/// A store that can be broken, and says what was written.
#[derive(Default)]
struct Paper {
    is_broken: Mutex<bool>,
    written: Mutex<Vec<String>>,
    pending: Mutex<BTreeSet<String>>,
    /// A thread that writes an end reports here that it has begun, and waits until it may
    /// go on.
    holds_up: Mutex<Option<(Sender<()>, Receiver<()>)>>,
}

impl Paper {
    fn write(&self, line: String) -> StoreResult<()> {
        if *self.is_broken.lock().unwrap() {
            return Err(JournalError::Store {
                path: "paper".into(),
                what: "the disk is full".to_owned(),
            });
        }
        self.written.lock().unwrap().push(line);
        Ok(())
    }
}

impl Store for Paper {
    // To attach to a job nothing is written.
    fn accept(&self, id: &str, _: &JobOptions, _: &[u8]) -> StoreResult<Accepted> {
        if self.pending.lock().unwrap().contains(id) {
            return Ok(Accepted::Attached(State::Pending));
        }
        self.write(format!("accept {id}"))?;
        self.pending.lock().unwrap().insert(id.to_owned());
        Ok(Accepted::New)
    }

    fn end(&self, id: &str, end: End) -> StoreResult<()> {
        if let Some((began, goes_on)) = self.holds_up.lock().unwrap().take() {
            began.send(()).unwrap();
            goes_on.recv_bounded().unwrap();
        }
        self.write(format!("end {id} {end:?}"))?;
        self.pending.lock().unwrap().remove(id);
        Ok(())
    }

    fn forget(&self, id: &str) -> StoreResult<bool> {
        self.write(format!("forget {id}"))?;
        Ok(self.pending.lock().unwrap().remove(id))
    }

    fn finish_partition(&self, id: &str, partition: u32, _: &[u8]) -> StoreResult<()> {
        self.write(format!("finish {partition} of {id}"))
    }

    fn request(&self, id: &str) -> StoreResult<Vec<u8>> {
        Err(JournalError::Unknown { id: id.to_owned() })
    }

    fn pending(&self) -> StoreResult<Resumable> {
        Ok(Resumable::default())
    }
}

impl JobRecorder<Paper> {
    fn blank() -> Self {
        let (journal, unwritten) = Default::default();
        Self { journal, unwritten }
    }

    fn broken(&self, is_broken: bool) {
        *self.journal.is_broken.lock().unwrap() = is_broken;
    }

    fn written(&self) -> Vec<String> {
        self.journal.written.lock().unwrap().clone()
    }

    fn accept_blank(&self, id: &str) -> StoreResult<Accepted> {
        self.accept(id, &JobOptions::default(), b"")
    }
}

#[test]
fn a_job_that_cannot_be_forgotten_does_not_go_on() {
    let recorder = JobRecorder::blank();
    recorder.forget("a");
    recorder.broken(true);
    recorder.forget("b");
    recorder.write_unwritten();
    assert_eq!(recorder.written(), ["forget a"]);
    recorder.broken(false);
    for _ in 0..2 {
        recorder.write_unwritten();
        assert_eq!(recorder.written(), ["forget a", "end b Cancelled"]);
    }
}

#[test]
fn an_unwritten_end_is_not_the_next_attempts() {
    let recorder = JobRecorder::blank();
    recorder.broken(true);
    recorder.end("a", End::Failed("the first".to_owned()));
    recorder.end("b", End::Cancelled);
    // A submission that is not kept changes nothing.
    assert!(recorder.accept_blank("a").is_err());
    assert_eq!(recorder.lock_unwritten().len(), 2);
    recorder.broken(false);
    recorder.accept_blank("a").unwrap();
    recorder.write_unwritten();
    assert_eq!(recorder.written(), ["accept a", "end b Cancelled"]);
}

/// The first attempt is over, which could not be written: its row is still pending.
#[test]
fn an_attempt_after_a_pending_one_has_a_row_of_its_own() {
    let recorder = JobRecorder::blank();
    recorder.accept_blank("a").unwrap();
    recorder.broken(true);
    recorder.end("a", End::Failed("the first".to_owned()));
    // A job that cannot be written is not accepted, and the first must not go on.
    assert!(recorder.accept_blank("a").is_err());
    assert_eq!(recorder.lock_unwritten().len(), 1);
    recorder.broken(false);
    assert_eq!(recorder.accept_blank("a").unwrap(), Accepted::New);
    assert!(recorder.lock_unwritten().is_empty());
    assert_eq!(recorder.written(), ["accept a", "forget a", "accept a"]);
}

/// The other thread has taken the end out of the unwritten ones, and not written it yet.
#[test]
fn no_job_is_accepted_while_an_earlier_end_is_being_written() {
    let recorder = JobRecorder::blank();
    recorder.broken(true);
    recorder.end("a", End::Cancelled);
    recorder.broken(false);
    let (began, has_begun) = channel();
    let (go_on, goes_on) = channel();
    *recorder.journal.holds_up.lock().unwrap() = Some((began, goes_on));
    thread::scope(|scope| {
        scope.spawn(|| recorder.write_unwritten());
        has_begun.recv_bounded().unwrap();
        scope.spawn(|| recorder.accept_blank("a").unwrap());
        // Time enough for it to come too early.
        thread::sleep(Duration::from_millis(50));
        go_on.send(()).unwrap();
    });
    assert_eq!(recorder.written(), ["end a Cancelled", "accept a"]);
}

/// Returns the gauges that are set during `work`.
fn gauges(work: impl FnOnce()) -> Vec<(String, f64)> {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    ::metrics::with_local_recorder(&recorder, work);
    let all = snapshotter.snapshot().into_vec().into_iter();
    let gauges = all.filter_map(|(key, _, _, value)| match value {
        DebugValue::Gauge(value) => Some((key.key().name().to_owned(), value.into_inner())),
        _ => None,
    });
    gauges.collect()
}

#[test]
fn a_journal_that_cannot_be_written_is_told_to_operators() {
    let recorder = JobRecorder::blank();
    let told = |is_broken| {
        recorder.broken(is_broken);
        gauges(|| log_failure("a", &recorder.journal.finish_partition("a", 0, b"")))
    };
    let failing = |value| vec![("cuzk_journal_failing".to_owned(), value)];
    assert_eq!(told(true), failing(1.0));
    assert_eq!(told(false), failing(0.0));
}
