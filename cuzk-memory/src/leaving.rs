//! Memory that was given away to be freed in the background, and is not free yet.
//!
//! Nobody is charged for this memory any more, and the threads that free it have the lowest
//! priority. So a thread that is about to map memory waits here until the leaving memory
//! fits beside it. While it waits, the freeing threads have its core.
//!
//! Invariant: the bytes are counted from before a value is given away until after it was
//! dropped, however that ends.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::checkpoint::Checkpoint;

/// The time after which a waiting thread asks again if it was cancelled.
const LOOK: Duration = Duration::from_millis(1);

/// The number of bytes that are leaving.
#[derive(Debug, Default)]
pub(crate) struct Leaving {
    bytes: Mutex<u64>,
    fewer: Condvar,
}

/// A value on its way. Its bytes are counted until it is dropped.
pub(crate) struct Leaver<T> {
    // The order matters: fields are dropped from first to last, even if one panics.
    _value: T,
    _counted: Counted,
}

struct Counted {
    bytes: u64,
    leaving: Arc<Leaving>,
}

impl Leaving {
    /// Counts the `bytes` bytes of `value` until the result is dropped.
    pub(crate) fn count<T>(self: &Arc<Self>, value: T, bytes: u64) -> Leaver<T> {
        *self.lock() += bytes;
        Leaver {
            _value: value,
            _counted: Counted {
                bytes,
                leaving: Arc::clone(self),
            },
        }
    }

    /// Waits until at most `bytes_max` bytes are leaving, or until `checkpoint` is
    /// cancelled.
    pub(crate) fn wait_until_at_most(&self, bytes_max: u64, checkpoint: &Checkpoint<'_>) {
        let mut bytes = self.lock();
        while *bytes > bytes_max && !checkpoint.is_cancelled() {
            let waited = self.fewer.wait_timeout(bytes, LOOK);
            (bytes, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    // The number is consistent whenever the lock is free.
    fn lock(&self) -> MutexGuard<'_, u64> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        *self.leaving.lock() -= self.bytes;
        self.leaving.fewer.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::NEVER_STOP;
    use cuzk_bounded::BoundedReceiver;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc::{Receiver, channel};
    use std::thread;

    /// Ends when it is told to.
    struct Held(Receiver<()>);

    impl Drop for Held {
        fn drop(&mut self) {
            self.0.recv_bounded().ok();
        }
    }

    #[test]
    fn who_needs_the_room_waits_until_it_is_free() {
        let leaving = Arc::new(Leaving::default());
        leaving.wait_until_at_most(0, &NEVER_STOP);
        let (first_may, first_held) = channel();
        let (second_may, second_held) = channel();
        let first = leaving.count(Held(first_held), 100);
        let second = leaving.count(Held(second_held), 20);
        leaving.wait_until_at_most(120, &NEVER_STOP);
        let (tell, told) = channel();
        thread::scope(|scope| {
            for bytes_max in [100, 0] {
                let (tell, leaving) = (tell.clone(), &leaving);
                scope.spawn(move || {
                    leaving.wait_until_at_most(bytes_max, &NEVER_STOP);
                    tell.send(bytes_max).unwrap();
                });
            }
            scope.spawn(move || drop(first));
            scope.spawn(move || drop(second));
            // Both are being dropped or about to be, and count.
            assert_eq!(*leaving.lock(), 120);
            second_may.send(()).unwrap();
            assert_eq!(told.recv_bounded(), Ok(100));
            assert_eq!(*leaving.lock(), 100);
            first_may.send(()).unwrap();
            assert_eq!(told.recv_bounded(), Ok(0));
        });
        assert_eq!(*leaving.lock(), 0);
    }

    #[test]
    fn who_has_nothing_to_wait_for_any_more_goes_on() {
        let leaving = Arc::new(Leaving::default());
        let stays = leaving.count((), 1);
        let ended = AtomicBool::new(false);
        let asks_once = Checkpoint::asking(|| ended.swap(true, Ordering::Relaxed));
        leaving.wait_until_at_most(0, &asks_once);
        assert!(ended.load(Ordering::Relaxed));
        drop(stays);
    }

    #[test]
    fn what_panics_has_left() {
        struct Panics;
        impl Drop for Panics {
            fn drop(&mut self) {
                std::panic::resume_unwind(Box::new("as it must"));
            }
        }
        let leaving = Arc::new(Leaving::default());
        let leaver = leaving.count(Panics, 7);
        assert!(catch_unwind(AssertUnwindSafe(|| drop(leaver))).is_err());
        assert_eq!(*leaving.lock(), 0);
    }
}
