//! What was given away to be freed in the background, and is not free yet.
//!
//! Nobody is charged for it any more, and the threads that free give way to all others:
//! whoever is about to map memory that it was admitted for waits here until what is
//! leaving fits beside it. It waits without a core, which those threads then have.
//!
//! The invariant: bytes are counted from before a value is given away until after it was
//! dropped, however that ends.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often who waits looks whether to go on waiting.
const LOOK: Duration = Duration::from_millis(1);

/// The bytes that are leaving.
#[derive(Debug, Default)]
pub(super) struct Leaving {
    bytes: Mutex<u64>,
    fewer: Condvar,
}

/// A value that is leaving, until it is dropped.
pub(super) struct Leaver<T> {
    // In this order: fields are dropped from the first to the last, even if one panics.
    _value: T,
    _counted: Counted,
}

struct Counted {
    bytes: u64,
    leaving: Arc<Leaving>,
}

impl Leaving {
    /// `value`, which holds so many bytes, on its way.
    pub(super) fn count<T>(self: &Arc<Self>, value: T, bytes: u64) -> Leaver<T> {
        *self.lock() += bytes;
        Leaver {
            _value: value,
            _counted: Counted {
                bytes,
                leaving: Arc::clone(self),
            },
        }
    }

    /// Waits until no more than `bytes_max` are leaving, or until `waits` says no, which
    /// is asked now and then.
    pub(super) fn wait_until_at_most(&self, bytes_max: u64, waits: &dyn Fn() -> bool) {
        let mut bytes = self.lock();
        while *bytes > bytes_max && waits() {
            let waited = self.fewer.wait_timeout(bytes, LOOK);
            (bytes, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    // A number is whole whenever the lock is free.
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
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc::{Receiver, channel};
    use std::thread;

    /// Ends when it is told to.
    struct Held(Receiver<()>);

    impl Drop for Held {
        fn drop(&mut self) {
            self.0.recv().ok();
        }
    }

    #[test]
    fn who_needs_the_room_waits_until_it_is_free() {
        let leaving = Arc::new(Leaving::default());
        leaving.wait_until_at_most(0, &|| true);
        let (first_may, first_held) = channel();
        let (second_may, second_held) = channel();
        let first = leaving.count(Held(first_held), 100);
        let second = leaving.count(Held(second_held), 20);
        leaving.wait_until_at_most(120, &|| true);
        let (tell, told) = channel();
        thread::scope(|scope| {
            for bytes_max in [100, 0] {
                let (tell, leaving) = (tell.clone(), &leaving);
                scope.spawn(move || {
                    leaving.wait_until_at_most(bytes_max, &|| true);
                    tell.send(bytes_max).unwrap();
                });
            }
            scope.spawn(move || drop(first));
            scope.spawn(move || drop(second));
            // Both are being dropped or about to be, and count.
            assert_eq!(*leaving.lock(), 120);
            second_may.send(()).unwrap();
            assert_eq!(told.recv(), Ok(100));
            assert_eq!(*leaving.lock(), 100);
            first_may.send(()).unwrap();
            assert_eq!(told.recv(), Ok(0));
        });
        assert_eq!(*leaving.lock(), 0);
    }

    #[test]
    fn who_has_nothing_to_wait_for_any_more_goes_on() {
        let leaving = Arc::new(Leaving::default());
        let stays = leaving.count((), 1);
        let ended = AtomicBool::new(false);
        leaving.wait_until_at_most(0, &|| !ended.swap(true, Ordering::Relaxed));
        assert!(ended.into_inner());
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
