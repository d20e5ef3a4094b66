//! Subjects that a worker leaves to other workers for a while.
//!
//! A partition that excludes this worker goes back to the server, which delivers it again after
//! a delay. A request of this worker that waits at that moment would get it once more, and the
//! looks of other workers would never find it. The invariant: no request of a subject waits at
//! the server when such a partition comes back, or shortly after.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{EXCLUDED_DELAY, LOOK_PERIOD, WAIT};
use crate::subject::Subject;

/// The time before the partition comes back in which nothing is asked for. It is longer than a
/// request takes.
const MARGIN: Duration = Duration::from_secs(1);

/// The time after the partition came back in which nothing is asked for. Each worker with room
/// looks at the waiting work several times meanwhile.
const PRECEDENCE: Duration = LOOK_PERIOD.saturating_mul(4);

/// The subjects of partitions that went back because they exclude this worker.
#[derive(Debug, Default)]
pub(super) struct Yields(BTreeMap<Subject, Yield>);

#[derive(Clone, Copy, Debug)]
struct Yield {
    from: Duration,
    until: Duration,
}

impl Yields {
    /// Notes that a partition went back at `now`.
    pub(super) fn add(&mut self, subject: Subject, now: Duration) {
        let back = now.saturating_add(EXCLUDED_DELAY);
        let from = back.saturating_sub(MARGIN);
        let until = back.saturating_add(PRECEDENCE);
        let first = Yield { from, until };
        self.0.entry(subject).or_insert(first).until = until;
    }

    /// Forgets the subjects that others had precedence for until `now`.
    pub(super) fn forget(&mut self, now: Duration) {
        self.0.retain(|_, of| of.until > now);
    }

    /// Returns the time that a request may wait at the server; none if the subject is left to
    /// others now.
    pub(super) fn wait(&self, subject: &Subject, now: Duration) -> Option<Duration> {
        let Some(of) = self.0.get(subject).filter(|of| of.until > now) else {
            return Some(WAIT);
        };
        let left = of.from.saturating_sub(now);
        (left >= LOOK_PERIOD).then_some(left.min(WAIT))
    }
}
