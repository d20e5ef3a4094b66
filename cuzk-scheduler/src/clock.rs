//! The time that decisions are made by: deadlines, rests, ages, places in an order.
//!
//! This is no timer: nobody waits here. The invariant: without the feature `test-hooks`
//! these are the system's clocks. With it, a thread can have simulated clocks, and every
//! other thread has the system's.

use std::time::{Duration, Instant, SystemTime};

/// Returns the present time of the clock that never goes back.
#[must_use]
pub fn now() -> Instant {
    #[cfg(feature = "test-hooks")]
    if let Some(time) = simulated::get() {
        return time.monotonic;
    }
    Instant::now()
}

/// Returns the time since `earlier`; zero if that is in the future.
#[must_use]
pub fn since(earlier: Instant) -> Duration {
    now().saturating_duration_since(earlier)
}

/// Returns the time of the wall clock, which can be set.
#[must_use]
pub fn wall() -> SystemTime {
    #[cfg(feature = "test-hooks")]
    if let Some(time) = simulated::get() {
        return time.wall;
    }
    SystemTime::now()
}

/// Clocks that a test sets, for the current thread alone.
#[cfg(feature = "test-hooks")]
pub mod simulated {
    use std::cell::Cell;
    use std::time::{Instant, SystemTime};

    /// The times that both clocks show.
    #[derive(Clone, Copy, Debug)]
    pub struct Time {
        /// Of the clock that never goes back.
        pub monotonic: Instant,
        /// Of the clock that can be set.
        pub wall: SystemTime,
    }

    thread_local! {
        static TIME: Cell<Option<Time>> = const { Cell::new(None) };
    }

    /// Sets the clocks of this thread. With none, it has the system's again.
    pub fn set(time: Option<Time>) {
        TIME.set(time);
    }

    pub(super) fn get() -> Option<Time> {
        TIME.get()
    }
}

#[cfg(all(test, feature = "test-hooks"))]
mod tests {
    use super::*;
    use cuzk_bounded::BoundedJoin;

    #[test]
    fn a_simulated_clock_is_that_of_one_thread() {
        let start = Instant::now();
        let far = Duration::from_secs(1 << 20);
        let time = simulated::Time {
            monotonic: start + far,
            wall: SystemTime::UNIX_EPOCH,
        };
        simulated::set(Some(time));
        assert_eq!((now(), wall()), (start + far, SystemTime::UNIX_EPOCH));
        assert_eq!(
            (since(start), since(start + far * 2)),
            (far, Duration::ZERO)
        );
        let other = std::thread::spawn(|| (now(), wall())).join_bounded();
        simulated::set(None);
        let (other_now, other_wall) = other.unwrap();
        assert!(other_now < start + far && other_wall > SystemTime::UNIX_EPOCH);
        assert!(now() < start + far);
    }
}
