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
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use super::*;

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
                waits.join().unwrap();
            }
        });
        signal.wait(LONG, || true);
    }
}
