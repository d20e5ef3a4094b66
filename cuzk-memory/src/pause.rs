//! Work that stands still while more urgent work runs.
//!
//! A [`Pause`] is not a lock: nothing is owned, and urgent work does not wait until the
//! other threads stand still. Invariants: while anything is urgent, no thread passes a
//! [`Checkpoint`](crate::Checkpoint) that has the pause; once the last urgent work has
//! ended, every thread passes.

use std::fmt;
use std::sync::atomic::Ordering;

use crate::sync::{AtomicUsize, Condvar, Mutex, lock, wait};

/// A signal that is raised while urgent work runs.
pub struct Pause {
    /// The number of pieces of urgent work that run. Changed under the lock only, so that no
    /// thread starts to wait after the last wake-up; read without it on the fast path.
    urgent: AtomicUsize,
    /// The number of times that work became urgent.
    raised: Mutex<u64>,
    changed: Condvar,
}

impl Default for Pause {
    fn default() -> Self {
        Self {
            urgent: AtomicUsize::new(0),
            raised: Mutex::new(0),
            changed: Condvar::new(),
        }
    }
}

impl fmt::Debug for Pause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pause").field(&self.urgent).finish()
    }
}

/// A piece of urgent work. It ends when this is dropped.
#[derive(Debug)]
pub struct Urgent<'a>(&'a Pause);

impl Pause {
    /// Pauses all other work until the guard is dropped.
    #[must_use]
    pub fn raise(&self) -> Urgent<'_> {
        let mut times = lock(&self.raised);
        *times += 1;
        self.urgent.fetch_add(1, Ordering::Relaxed);
        drop(times);
        Urgent(self)
    }

    /// Returns at once if nothing is urgent: one load. Otherwise waits until nothing is
    /// urgent, or `is_cancelled` returns true. A thread that cancels calls [`Pause::wake`]
    /// afterwards.
    #[inline]
    pub(crate) fn pass(&self, is_cancelled: impl Fn() -> bool) {
        if self.urgent.load(Ordering::Relaxed) == 0 {
            return;
        }
        self.wait_until_quiet(&is_cancelled);
    }

    #[cold]
    fn wait_until_quiet(&self, is_cancelled: &dyn Fn() -> bool) {
        let mut guard = lock(&self.raised);
        while self.urgent.load(Ordering::Relaxed) > 0 && !is_cancelled() {
            guard = wait(&self.changed, guard);
        }
    }

    /// Returns the number of times that work became urgent, or `None` if work is urgent now.
    /// Between two equal numbers no thread stood still.
    pub fn quiet(&self) -> Option<u64> {
        let times = lock(&self.raised);
        (self.urgent.load(Ordering::Relaxed) == 0).then_some(*times)
    }

    /// Wakes the paused threads. Those whose work was cancelled return.
    pub fn wake(&self) {
        drop(lock(&self.raised));
        self.changed.notify_all();
    }
}

impl Drop for Urgent<'_> {
    fn drop(&mut self) {
        let guard = lock(&self.0.raised);
        self.0.urgent.fetch_sub(1, Ordering::Relaxed);
        drop(guard);
        self.0.changed.notify_all();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn nobody_passes_until_the_last_urgent_work_ends() {
        let pause = Pause::default();
        pause.pass(|| false);
        assert_eq!(pause.quiet(), Some(0));
        let first = pause.raise();
        let second = pause.raise();
        assert_eq!(pause.quiet(), None);
        let passed = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                pause.pass(|| false);
                passed.store(true, Ordering::SeqCst);
            });
            drop(first);
            thread::sleep(Duration::from_millis(20));
            assert!(!passed.load(Ordering::SeqCst));
            drop(second);
        });
        assert_eq!(pause.quiet(), Some(2));
        assert!(passed.into_inner());
    }

    #[test]
    fn who_is_told_to_stop_does_not_wait() {
        let pause = Pause::default();
        let stop = AtomicBool::new(false);
        let _urgent = pause.raise();
        thread::scope(|scope| {
            scope.spawn(|| pause.pass(|| stop.load(Ordering::SeqCst)));
            stop.store(true, Ordering::SeqCst);
            pause.wake();
        });
    }
}
