//! The time by which results age: the clock's time without its jumps.
//!
//! Not used for the times that are written for pending jobs. Two invariants hold. The
//! time never goes back while a journal is open. A step of the clock, right or wrong,
//! counts for at most an eighth of the time that results are kept. This includes a step
//! while nobody had the journal open. So a machine that starts with a clock that is
//! years ahead keeps its results.

use std::time::Duration;

/// The least limit of a step, however short the time is that results are kept.
const STEP_MIN_MS: u64 = 60_000;

/// The age that results have reached. All times are milliseconds since 1970.
#[derive(Debug)]
pub(crate) struct Aging {
    /// The most that counts of the time between two readings of the clock.
    step_max_ms: u64,
    /// The last reading of the clock.
    clock_ms: u64,
    aging_ms: u64,
}

impl Aging {
    /// Continues from the time at which the newest result was written.
    pub(crate) fn since(
        newest_result_ms: Option<u64>,
        clock_ms: u64,
        result_age: Duration,
    ) -> Self {
        let eighth_ms = u64::try_from(result_age.as_millis() / 8).unwrap_or(u64::MAX);
        let step_max_ms = eighth_ms.max(STEP_MIN_MS);
        let most = newest_result_ms.map_or(clock_ms, |newest| newest.saturating_add(step_max_ms));
        Self {
            step_max_ms,
            clock_ms,
            aging_ms: clock_ms.min(most),
        }
    }

    /// Returns the time by which results age, for a clock that shows `clock_ms`.
    pub(crate) fn at(&mut self, clock_ms: u64) -> u64 {
        let step = clock_ms.saturating_sub(self.clock_ms);
        self.clock_ms = clock_ms;
        self.aging_ms = self.aging_ms.saturating_add(step.min(self.step_max_ms));
        self.aging_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_MS: u64 = 24 * 3600 * 1000;
    const YEAR_MS: u64 = 365 * DAY_MS;
    const NOW_MS: u64 = 50 * YEAR_MS;

    fn since(newest_result_ms: Option<u64>, clock_ms: u64) -> Aging {
        Aging::since(
            newest_result_ms,
            clock_ms,
            Duration::from_millis(8 * DAY_MS),
        )
    }

    #[test]
    fn a_right_clock_is_what_counts() {
        for newest in [None, Some(NOW_MS - 5)] {
            let mut aging = since(newest, NOW_MS);
            for later in [0, 1, 10, 10 + DAY_MS] {
                assert_eq!(aging.at(NOW_MS + later), NOW_MS + later);
            }
        }
    }

    #[test]
    fn a_jump_of_the_clock_counts_for_an_eighth_at_most() {
        let day_after = NOW_MS + DAY_MS;
        let mut aging = since(Some(NOW_MS), NOW_MS + YEAR_MS);
        assert_eq!(aging.at(NOW_MS + YEAR_MS), day_after);
        // The clock is set right, then wrong in the other direction, then right again.
        assert_eq!(aging.at(NOW_MS), day_after);
        assert_eq!(aging.at(NOW_MS + 7), day_after + 7);
        assert_eq!(aging.at(0), day_after + 7);
        assert_eq!(aging.at(NOW_MS + 7), day_after + 7 + DAY_MS);
        // If the clock was behind when the journal was opened, no result is older than
        // it was.
        assert_eq!(since(Some(NOW_MS), 0).at(3), 3);
        assert_eq!(since(Some(u64::MAX), u64::MAX).at(u64::MAX), u64::MAX);
        // If results are kept for an instant only, a minute counts of the step.
        let mut aging = Aging::since(Some(NOW_MS), NOW_MS + YEAR_MS, Duration::ZERO);
        assert_eq!(aging.at(NOW_MS + YEAR_MS), NOW_MS + STEP_MIN_MS);
    }
}
