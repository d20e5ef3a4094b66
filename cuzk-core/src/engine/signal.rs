//! A condition variable without a lock of its own.
//!
//! Not a queue: it says that something changed, and not what changed. The
//! invariant: a thread that begins to wait misses no change that was made before a
//! call of [`Signal::notify`].

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

#[derive(Debug, Default)]
pub(super) struct Signal {
    lock: Mutex<()>,
    changed: Condvar,
}

impl Signal {
    /// Waits until `is_done` returns true, for at most `timeout`. `is_done` is asked
    /// at once, and again after each notification.
    pub(super) fn wait(&self, timeout: Duration, is_done: impl Fn() -> bool) {
        let lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .changed
            .wait_timeout_while(lock, timeout, |()| !is_done());
        drop(waited);
    }

    pub(super) fn notify(&self) {
        // A thread that has asked `is_done` and does not wait yet holds the lock.
        drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::sync::{Arc, mpsc};
    use std::thread;

    use super::*;
    use cuzk_bounded::{BoundedJoin, BoundedReceiver};

    #[test]
    fn a_waiting_thread_wakes_and_asks_for_itself() {
        const LONG: Duration = Duration::from_secs(3600);
        let (signal, is_done) = (Signal::default(), AtomicBool::new(false));
        let is_done = &is_done;
        signal.wait(Duration::from_millis(1), || false);
        thread::scope(|scope| {
            for _ in 0..100 {
                is_done.store(false, Ordering::Relaxed);
                let waits = scope.spawn(|| signal.wait(LONG, || is_done.load(Ordering::Relaxed)));
                // Another change, before or after the thread waits.
                signal.notify();
                is_done.store(true, Ordering::Relaxed);
                signal.notify();
                waits.join_bounded().unwrap();
            }
        });
        signal.wait(LONG, || true);
    }

    /// A change after the question and before the wait. The notification waits for the wait;
    /// one that came before it would be lost.
    #[test]
    fn a_change_between_the_question_and_the_wait_is_noticed() {
        const LONG: Duration = Duration::from_secs(3600);
        const MOMENTS: Duration = Duration::from_secs(60);
        let signal = Arc::new(Signal::default());
        let (is_done, asked) = (Arc::new(AtomicBool::new(false)), AtomicUsize::new(0));
        let (asks, has_asked) = mpsc::sync_channel(0);
        let (answer, answers) = mpsc::sync_channel(0);
        let (ends, ended) = mpsc::channel();
        let (of_thread, done) = (Arc::clone(&signal), Arc::clone(&is_done));
        thread::spawn(move || {
            of_thread.wait(LONG, || {
                // The first answer is older than the change.
                let was_done = done.load(Ordering::SeqCst);
                if asked.fetch_add(1, Ordering::SeqCst) == 0 {
                    asks.send(()).unwrap();
                    answers.recv_bounded().unwrap();
                }
                was_done
            });
            ends.send(()).unwrap();
        });
        has_asked.recv_timeout(MOMENTS).unwrap();
        is_done.store(true, Ordering::SeqCst);
        let (rings, rung) = mpsc::channel();
        thread::spawn(move || {
            signal.notify();
            rings.send(()).unwrap();
        });
        // It has time for a notification that would not wait.
        let early = rung.recv_timeout(Duration::from_millis(100));
        assert!(early.is_err(), "the thread does not wait yet");
        answer.send(()).unwrap();
        ended.recv_timeout(MOMENTS).unwrap();
        rung.recv_timeout(MOMENTS).unwrap();
    }
}
