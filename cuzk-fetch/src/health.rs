//! How well a source answers: its rate, its failures, and when it is asked again.
//!
//! No connections and no files. The invariant: a source that failed too often, or gave wrong
//! bytes, is never asked again in this run.

use std::time::{Duration, Instant};

use crate::Source;

/// The wait after the second failure in a row. It doubles with each further failure. After
/// the first a source is asked at once: most cuts are of one connection only.
const WAIT_FIRST: Duration = Duration::from_millis(200);

/// The longest wait that a source gets for its failures.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// The bytes after which an attempt counts as a success, although it was cut.
const PROGRESS_BYTES: u64 = 64 << 10;

/// The weight of the last claim in the rate of a source.
const RATE_WEIGHT: f64 = 0.3;

/// A source of a run.
#[derive(Debug)]
pub(crate) struct Health {
    /// Nothing stands for a source of an earlier run, which is not a source of this one.
    pub(crate) source: Option<Source>,
    /// Its text.
    pub(crate) name: String,
    /// The claims that it works on.
    pub(crate) active: usize,
    /// The bytes that it gave in this run.
    pub(crate) fetched_bytes: u64,
    /// The rate of one connection, in bytes a second.
    pub(crate) rate_bytes_s: Option<f64>,
    /// The reason for which it is not asked again.
    pub(crate) out: Option<String>,
    /// It gave bytes of a file that are not those of the digest.
    pub(crate) is_corrupt: bool,
    failures: u32,
    /// Attempts that began before this moment are not counted again.
    failed_at: Option<Instant>,
    asked_after: Option<Instant>,
}

impl Health {
    /// Returns a source that was not asked yet.
    pub(crate) fn new(name: String, source: Option<Source>) -> Self {
        let out = source
            .is_none()
            .then(|| "it is no source of this run".to_owned());
        Self {
            source,
            name,
            active: 0,
            fetched_bytes: 0,
            rate_bytes_s: None,
            out,
            is_corrupt: false,
            failures: 0,
            failed_at: None,
            asked_after: None,
        }
    }

    /// Returns true if it may be asked at `now`.
    pub(crate) fn is_ready(&self, now: Instant) -> bool {
        self.out.is_none() && self.asked_after.is_none_or(|after| now >= after)
    }

    /// Records the rate of an attempt that began at `began` and brought `bytes`.
    pub(crate) fn brought(&mut self, began: Instant, now: Instant, bytes: u64) {
        if bytes < PROGRESS_BYTES {
            return;
        }
        self.failures = 0;
        let rate = rate(bytes, now.saturating_duration_since(began));
        self.rate_bytes_s = Some(match self.rate_bytes_s {
            Some(old) => old + (rate - old) * RATE_WEIGHT,
            None => rate,
        });
    }

    /// Records that an attempt failed. The server may have said how long to wait. After
    /// `failures_max` failures in a row the source is out.
    pub(crate) fn failed(
        &mut self,
        began: Instant,
        now: Instant,
        problem: &str,
        asked: Option<Duration>,
        failures_max: u32,
    ) {
        // Several connections fail at once when a server goes down. They are one failure.
        if self.failed_at.is_some_and(|at| began < at) {
            return;
        }
        self.failed_at = Some(now);
        self.failures += 1;
        if self.failures >= failures_max {
            self.out = Some(format!("{problem} ({failures_max} times)"));
        }
        let doubled = match self.failures {
            0 | 1 => Duration::ZERO,
            more => WAIT_FIRST.saturating_mul(1 << (more - 2).min(16)),
        };
        self.asked_after = Some(now + asked.unwrap_or(doubled.min(WAIT_MAX)));
    }
}

/// Returns a rate in bytes a second.
#[expect(clippy::cast_precision_loss, reason = "a rate is an estimate")]
pub(crate) fn rate(bytes: u64, time: Duration) -> f64 {
    bytes as f64 / time.as_secs_f64().max(1e-6)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source() -> Health {
        let source = Source::Http("http://h/".to_owned());
        Health::new(source.to_string(), Some(source))
    }

    #[test]
    fn failures_in_a_row_make_it_wait_longer_and_end_it() {
        let mut health = source();
        let mut now = Instant::now();
        let mut waits = Vec::new();
        while health.out.is_none() {
            health.failed(now, now, "no answer", None, 4);
            waits.push(health.asked_after.unwrap() - now);
            now += WAIT_MAX;
        }
        assert_eq!(waits, [0, 1, 2, 4].map(|times| WAIT_FIRST * times));
        assert_eq!(health.out.as_deref(), Some("no answer (4 times)"));
        assert!(!health.is_ready(now + WAIT_MAX));
    }

    #[test]
    fn connections_that_fail_together_are_one_failure() {
        let mut health = source();
        let began = Instant::now();
        for _ in 0..10 {
            health.failed(began, began + Duration::from_secs(1), "cut", None, 2);
        }
        assert_eq!((health.failures, &health.out), (1, &None));
    }

    #[test]
    fn a_cut_after_progress_is_no_failure_in_a_row() {
        let mut health = source();
        let mut now = Instant::now();
        for _ in 0..20 {
            let began = now;
            now += Duration::from_secs(1);
            health.brought(began, now, PROGRESS_BYTES);
            health.failed(began, now, "cut", Some(Duration::ZERO), 2);
            now += Duration::from_secs(1);
            assert!(health.is_ready(now));
        }
        assert_eq!(health.rate_bytes_s.map(f64::round), Some(65536.0));
    }
}
