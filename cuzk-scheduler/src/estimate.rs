//! Estimates of the duration of work, from the measured durations of earlier work.
//!
//! An estimate is not a promise: it is computed from moving averages of measured
//! durations. Work with the same key takes equally long. The invariants:
//!
//! * There is an estimate only if each part of it was measured lately.
//! * A slow measurement does not refuse work for ever. The work itself is judged by the
//!   fastest measurement of its key.
//! * If no work of a key was measured for a while, its measurements count no more. This
//!   holds for the work itself and for the work ahead of it.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::clock;

/// The weight of the newest measurement.
const NEWEST: f64 = 0.25;

/// The time after the last measurement in which the measurements of a key count. It is
/// limited because refused work is not measured, and the next could be faster.
const FRESH: Duration = Duration::from_secs(600);

/// The durations of a piece of work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Times {
    /// The time from its turn to its end, if it runs alone.
    pub total: Duration,
    /// The part of it that occupies a worker.
    pub on_worker: Duration,
    /// The part of it that occupies a device.
    pub on_device: Duration,
}

/// The numbers of workers and devices that work at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Width {
    /// Workers.
    pub workers: usize,
    /// Devices.
    pub devices: usize,
}

/// The measured durations of work, by the key `K`.
pub struct Estimates<K> {
    fresh: Duration,
    measured: Mutex<HashMap<K, Measured>>,
}

#[derive(Clone, Copy, Debug)]
struct Measured {
    mean: Times,
    /// The least of each duration.
    fastest: Times,
    last: Instant,
}

impl<K> Default for Estimates<K> {
    fn default() -> Self {
        Self {
            fresh: FRESH,
            measured: Mutex::default(),
        }
    }
}

impl<K> fmt::Debug for Estimates<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Estimates").finish_non_exhaustive()
    }
}

impl<K: Eq + Hash> Estimates<K> {
    /// Records the durations of work of this key.
    pub fn measured(&self, key: K, times: Times) {
        let first = Measured {
            mean: times,
            fastest: times,
            last: clock::now(),
        };
        let mut all = self.lock();
        let known = all.entry(key).or_insert(first);
        known.mean = each(known.mean, times, moved);
        known.fastest = each(known.fastest, times, Duration::min);
        known.last = first.last;
    }

    /// Returns the time until work of `key` in `pieces` would end at best, with the
    /// work `ahead` before it. Returns none if a part of it was not measured lately.
    #[must_use]
    pub fn until_end(
        &self,
        key: &K,
        pieces: usize,
        ahead: impl IntoIterator<Item = K>,
        width: Width,
    ) -> Option<Duration> {
        let all = self.lock();
        let is_fresh = |known: &&Measured| clock::since(known.last) < self.fresh;
        let own = all.get(key).filter(is_fresh)?.fastest;
        let others = pieces.saturating_sub(1) as f64;
        let mut on_worker = own.on_worker.as_secs_f64() * others;
        let mut on_device = own.on_device.as_secs_f64() * others;
        for other in ahead {
            let mean = all.get(&other).filter(is_fresh)?.mean;
            on_worker += mean.on_worker.as_secs_f64();
            on_device += mean.on_device.as_secs_f64();
        }
        let on_worker = on_worker / width.workers.max(1) as f64;
        let on_device = on_device / width.devices.max(1) as f64;
        let waiting = Duration::try_from_secs_f64(on_worker.max(on_device)).ok()?;
        waiting.checked_add(own.total)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, Measured>> {
        self.measured.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn each(a: Times, b: Times, of: impl Fn(Duration, Duration) -> Duration) -> Times {
    Times {
        total: of(a.total, b.total),
        on_worker: of(a.on_worker, b.on_worker),
        on_device: of(a.on_device, b.on_device),
    }
}

fn moved(mean: Duration, newest: Duration) -> Duration {
    mean.mul_f64(1.0 - NEWEST) + newest.mul_f64(NEWEST)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    const fn times(total: u64, on_worker: u64, on_device: u64) -> Times {
        Times {
            total: s(total),
            on_worker: s(on_worker),
            on_device: s(on_device),
        }
    }

    const fn width(workers: usize, devices: usize) -> Width {
        Width { workers, devices }
    }

    #[test]
    fn nothing_is_said_of_what_was_never_measured() {
        let estimates = Estimates::default();
        let one = width(1, 1);
        assert_eq!(estimates.until_end(&"porep", 1, [], one), None);
        estimates.measured("porep", times(10, 3, 4));
        assert_eq!(estimates.until_end(&"porep", 1, ["winning"], one), None);
        assert_eq!(estimates.until_end(&"porep", 1, [], one), Some(s(10)));
        assert_eq!(estimates.until_end(&"porep", 10, [], one), Some(s(46)));
        let ahead = ["porep", "porep"];
        let two = width(2, 2);
        assert_eq!(estimates.until_end(&"porep", 1, ahead, two), Some(s(14)));
    }

    #[test]
    fn what_there_is_least_of_is_waited_for() {
        let estimates = Estimates::default();
        estimates.measured(1, times(10, 6, 4));
        let ahead = [1; 4];
        assert_eq!(estimates.until_end(&1, 1, ahead, width(1, 1)), Some(s(34)));
        assert_eq!(estimates.until_end(&1, 1, ahead, width(4, 2)), Some(s(18)));
        assert_eq!(estimates.until_end(&1, 1, ahead, width(1, 0)), Some(s(34)));
    }

    #[test]
    fn what_is_ahead_takes_its_mean_and_the_work_itself_its_best() {
        let estimates = Estimates::default();
        estimates.measured(1, times(8, 0, 8));
        estimates.measured(1, times(16, 0, 16));
        assert_eq!(estimates.until_end(&1, 2, [], width(1, 1)), Some(s(16)));
        assert_eq!(estimates.until_end(&1, 1, [1], width(1, 1)), Some(s(18)));
    }

    #[test]
    fn what_was_measured_long_ago_refuses_nothing() {
        let mut estimates = Estimates::default();
        estimates.measured(1, times(8, 0, 8));
        assert!(estimates.until_end(&1, 1, [1], width(1, 1)).is_some());
        estimates.fresh = Duration::ZERO;
        assert_eq!(estimates.until_end(&1, 1, [1], width(1, 1)), None);
        assert_eq!(estimates.until_end(&1, 1, [], width(1, 1)), None);
    }

    #[test]
    fn what_is_ahead_and_was_slow_long_ago_refuses_nothing() {
        let estimates = Estimates::default();
        for sort in [1, 2] {
            estimates.measured(sort, times(8, 0, 8));
        }
        let until_end = || estimates.until_end(&1, 1, [2], width(1, 1));
        assert_eq!(until_end(), Some(s(16)));
        let long_ago = Instant::now().checked_sub(FRESH).unwrap();
        estimates.lock().get_mut(&2).unwrap().last = long_ago;
        assert_eq!(until_end(), None);
        // A new measurement of that key gives an estimate again.
        estimates.measured(2, times(4, 0, 4));
        assert_eq!(until_end(), Some(s(15)));
    }
}
