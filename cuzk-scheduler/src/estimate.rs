//! How long work takes, from how long such work took.
//!
//! Not a promise: a moving average of what was measured, and nothing where
//! nothing was. The invariant: an estimate is only given when every part of it
//! was measured.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The weight of the newest measurement.
const NEWEST: f64 = 0.25;

/// What a piece of work takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Times {
    /// From its turn to its end, alone.
    pub total: Duration,
    /// The part of it that the next piece has to wait for: on the device.
    pub exclusive: Duration,
}

/// What each sort of work takes, by `K`.
pub struct Estimates<K> {
    times: Mutex<HashMap<K, Times>>,
}

impl<K> Default for Estimates<K> {
    fn default() -> Self {
        Self {
            times: Mutex::default(),
        }
    }
}

impl<K> fmt::Debug for Estimates<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Estimates").finish_non_exhaustive()
    }
}

impl<K: Eq + Hash> Estimates<K> {
    /// Work of this sort took so long.
    pub fn measured(&self, key: K, times: Times) {
        let mut all = self.lock();
        let mean = all.entry(key).or_insert(times);
        mean.total = moved(mean.total, times.total);
        mean.exclusive = moved(mean.exclusive, times.exclusive);
    }

    /// What work of this sort takes.
    #[must_use]
    pub fn times(&self, key: &K) -> Option<Times> {
        self.lock().get(key).copied()
    }

    /// When work of `key` in `pieces` would end, with the work `ahead` before it
    /// on so many `devices`. None where something was never measured.
    #[must_use]
    pub fn until_end(
        &self,
        key: &K,
        pieces: usize,
        ahead: impl IntoIterator<Item = K>,
        devices: usize,
    ) -> Option<Duration> {
        let all = self.lock();
        let own = all.get(key)?;
        let mut busy = own.exclusive.as_secs_f64() * pieces.saturating_sub(1) as f64;
        for other in ahead {
            busy += all.get(&other)?.exclusive.as_secs_f64();
        }
        let waiting = Duration::try_from_secs_f64(busy / devices.max(1) as f64).ok()?;
        waiting.checked_add(own.total)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, Times>> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner)
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

    #[test]
    fn nothing_is_said_of_what_was_never_measured() {
        let estimates = Estimates::default();
        assert_eq!(estimates.until_end(&"porep", 1, [], 1), None);
        let times = Times {
            total: s(10),
            exclusive: s(4),
        };
        estimates.measured("porep", times);
        assert_eq!(estimates.until_end(&"porep", 1, ["winning"], 1), None);
        assert_eq!(estimates.until_end(&"porep", 1, [], 1), Some(s(10)));
        assert_eq!(estimates.until_end(&"porep", 10, [], 1), Some(s(46)));
        let ahead = ["porep", "porep"];
        assert_eq!(estimates.until_end(&"porep", 1, ahead, 2), Some(s(14)));
    }

    #[test]
    fn the_mean_follows_what_is_measured() {
        let estimates = Estimates::default();
        let times = |total| Times {
            total,
            exclusive: total,
        };
        estimates.measured(1, times(s(8)));
        estimates.measured(1, times(s(16)));
        assert_eq!(estimates.times(&1), Some(times(s(10))));
    }
}
