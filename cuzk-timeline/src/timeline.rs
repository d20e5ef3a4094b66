//! The record of the stages that ran.
//!
//! This is neither a log nor a metric: it is a bounded list of finished spans, in the
//! order in which they ended. A waterfall can be drawn from it. The invariant: each
//! stage that ran has a span, also a stage that failed or unwound.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::live::{LiveJob, LiveJobs};
use crate::metrics::{self, InStage};
use crate::tally::DeviceTally;
use crate::wait::Wait;
use crate::{Lane, Names, Span, Stage};

/// The number of spans that are kept; the oldest are dropped first. A partition has
/// about sixteen, so these are the last thousand partitions.
pub const SPANS_MAX: usize = 16_384;

/// The finished spans of an engine, oldest first. A clone is another handle on the same
/// list.
#[derive(Clone, Debug)]
pub struct Timeline {
    epoch: Instant,
    spans: Arc<Mutex<VecDeque<Span>>>,
    live: Arc<LiveJobs>,
    names: Arc<Mutex<Names>>,
}

impl Default for Timeline {
    fn default() -> Self {
        Self {
            epoch: Instant::now(),
            spans: Arc::default(),
            live: Arc::default(),
            names: Arc::default(),
        }
    }
}

impl Timeline {
    /// Returns a handle that records the stages of one partition. Without a partition
    /// it records those of a job.
    #[must_use]
    pub fn trace(&self, job: u64, partition: Option<usize>) -> Trace<'_> {
        Trace {
            timeline: self,
            job: Some(job),
            partition,
            device: None,
            served: None,
            tally: None,
        }
    }

    /// Returns a handle that records background work, which belongs to no job.
    #[must_use]
    pub fn background(&self) -> Trace<'_> {
        Trace {
            timeline: self,
            job: None,
            partition: None,
            device: None,
            served: None,
            tally: None,
        }
    }

    /// Returns the names of devices and jobs, for pictures.
    #[must_use]
    pub fn names(&self) -> Names {
        self.lock_names().clone()
    }

    /// Gives a device a name.
    pub fn name_device(&self, device: usize, name: impl Into<String>) {
        self.lock_names().name_device(device, name);
    }

    /// Gives a job a name.
    pub fn name_job(&self, job: u64, name: impl Into<String>) {
        self.lock_names().name_job(job, name);
    }

    // Each change of a name is one step.
    fn lock_names(&self) -> MutexGuard<'_, Names> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the time from which the times of all spans count.
    #[must_use]
    pub fn epoch(&self) -> Instant {
        self.epoch
    }

    /// Returns the finished spans of `job`, oldest first.
    #[must_use]
    pub fn of_job(&self, job: u64) -> Vec<Span> {
        self.lock()
            .iter()
            .filter(|span| span.job == Some(job))
            .cloned()
            .collect()
    }

    /// Returns all spans that are still kept, oldest first.
    #[must_use]
    pub fn spans(&self) -> Vec<Span> {
        self.lock().iter().cloned().collect()
    }

    /// Notes the stages of a job in `live` from now on, until [`Timeline::unfollow`].
    pub fn follow(&self, job: u64, live: Arc<LiveJob>) {
        self.live.follow(job, live);
    }

    /// Follows a job no more, because it has ended.
    pub fn unfollow(&self, job: u64) {
        self.live.unfollow(job);
    }

    /// Returns a number that grows whenever a stage of any job begins or ends.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.live.changes()
    }

    fn push(&self, span: Span) {
        let dropped = {
            let mut spans = self.lock();
            let dropped = (spans.len() == SPANS_MAX).then(|| spans.pop_front());
            spans.push_back(span);
            dropped
        };
        drop(dropped);
    }

    // A panic while the lock is held leaves the list whole, because each push is one
    // step. So a poisoned lock is as good as any other.
    fn lock(&self) -> MutexGuard<'_, VecDeque<Span>> {
        self.spans.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Records the stages of one partition.
#[derive(Clone, Copy, Debug)]
pub struct Trace<'a> {
    timeline: &'a Timeline,
    job: Option<u64>,
    partition: Option<usize>,
    device: Option<usize>,
    served: Option<usize>,
    tally: Option<&'a DeviceTally>,
}

impl<'a> Trace<'a> {
    /// Returns this trace, which also adds up the times of the device in `tally`.
    #[must_use]
    pub fn tallied(self, tally: &'a DeviceTally) -> Self {
        let tally = Some(tally);
        Self { tally, ..self }
    }

    /// Shows the partition in `stage` until the guard is dropped, and records nothing. For
    /// a stage whose times become known only after it has ended.
    #[must_use]
    pub fn shows(&self, stage: Stage) -> Shown<'a> {
        let Trace {
            timeline,
            job,
            partition,
            device,
            ..
        } = *self;
        if let Some(job) = job {
            timeline.live.enter(job, partition, stage, device);
        }
        Shown {
            live: &timeline.live,
            job,
            partition,
            stage,
        }
    }
}

impl Trace<'_> {
    /// Returns this trace for stages on the device of this index.
    #[must_use]
    pub fn on_device(self, device: usize) -> Self {
        Self {
            device: Some(device),
            ..self
        }
    }

    /// Returns this trace for stages that serve so many partitions, this one among them.
    #[must_use]
    pub fn serving(self, partitions: usize) -> Self {
        Self {
            served: Some(partitions),
            ..self
        }
    }

    /// Runs `work` as `stage`, inside a `tracing` span. Records the stage when it ends,
    /// also if it unwinds.
    pub fn time<R>(&self, stage: Stage, work: impl FnOnce() -> R) -> R {
        self.time_throttled(stage, |_| work())
    }

    /// As [`Self::time`], for work that stands aside while the throttle is raised. `work` sets
    /// its argument to the time in which it did, and the span has that time.
    pub fn time_throttled<R>(&self, stage: Stage, work: impl FnOnce(&Cell<Duration>) -> R) -> R {
        let _entered = tracing::info_span!(
            "stage",
            stage = stage.name(),
            job = self.job,
            partition = self.partition,
            device = self.device,
            served = self.served
        )
        .entered();
        let open = OpenSpan {
            trace: *self,
            start: self.timeline.epoch.elapsed(),
            stood_aside: Cell::default(),
            inside: InStage::enter(stage, self.device),
            _shown: self.shows(stage),
        };
        work(&open.stood_aside)
    }

    /// Records that `stage` lasted from `since` until now.
    pub fn waited(&self, stage: Stage, since: Instant) {
        let since = since.saturating_duration_since(self.timeline.epoch);
        self.record(stage, since, Duration::ZERO);
    }

    /// Records that `stage` lasted from `start` to `end`. For times that another clock
    /// measured, for example a device's.
    pub fn between(&self, stage: Stage, start: Instant, end: Instant) {
        self.between_on(Lane::current(), stage, start, end);
    }

    /// Records that `stage` lasted from `start` to `end` on the thread of another lane.
    pub fn between_on(&self, lane: Lane, stage: Stage, start: Instant, end: Instant) {
        let since_epoch = |at: Instant| at.saturating_duration_since(self.timeline.epoch);
        let times = [start, end].map(since_epoch);
        self.record_between(lane, stage, times, Duration::ZERO);
    }

    /// Records `wait`, which ends now.
    pub fn ended(&self, wait: Wait) {
        self.waited(wait.stage(), wait.since());
    }

    /// Returns `value` in a wrapper that can be dropped on any thread. The duration of
    /// its drop is recorded as [`Stage::Dealloc`].
    #[must_use]
    pub fn timed_drop<T>(&self, value: T) -> TimedDrop<T> {
        TimedDrop {
            value: Some(value),
            timeline: self.timeline.clone(),
            job: self.job,
            partition: self.partition,
            device: self.device,
        }
    }

    fn record(&self, stage: Stage, start: Duration, stood_aside: Duration) {
        let times = [start, self.timeline.epoch.elapsed()];
        self.record_between(Lane::current(), stage, times, stood_aside);
    }

    fn record_between(
        &self,
        lane: Lane,
        stage: Stage,
        [start, end]: [Duration; 2],
        stood_aside: Duration,
    ) {
        let Trace {
            timeline,
            job,
            partition,
            device,
            served,
            tally,
        } = *self;
        if let Some(tally) = tally {
            tally.add(stage, end.saturating_sub(start));
        }
        let span = Span {
            job,
            partition,
            device,
            stage,
            served,
            stood_aside: (!stood_aside.is_zero()).then_some(stood_aside),
            lane,
            start,
            end,
        };
        if let Some(job) = job {
            let time = end.saturating_sub(start);
            timeline.live.add(job, partition, stage, time);
        }
        metrics::stage_ended(&span);
        timeline.push(span);
    }
}

/// A stage that runs on this thread. It ends when this is dropped.
struct OpenSpan<'a> {
    trace: Trace<'a>,
    start: Duration,
    stood_aside: Cell<Duration>,
    inside: InStage,
    // Dropped after the span was recorded.
    _shown: Shown<'a>,
}

/// The presence of a partition in a stage, as [`LiveJob`] shows it.
#[derive(Debug)]
pub struct Shown<'a> {
    live: &'a LiveJobs,
    job: Option<u64>,
    partition: Option<usize>,
    stage: Stage,
}

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        if let Some(job) = self.job {
            self.live.leave(job, self.partition, self.stage);
        }
    }
}

impl Drop for OpenSpan<'_> {
    fn drop(&mut self) {
        let stage = self.inside.stage();
        self.trace.record(stage, self.start, self.stood_aside.get());
    }
}

/// A value whose drop is recorded as [`Stage::Dealloc`], on the thread that drops it.
#[derive(Debug)]
pub struct TimedDrop<T> {
    value: Option<T>,
    timeline: Timeline,
    job: Option<u64>,
    partition: Option<usize>,
    device: Option<usize>,
}

impl<T> Drop for TimedDrop<T> {
    fn drop(&mut self) {
        let value = self.value.take();
        let trace = Trace {
            timeline: &self.timeline,
            job: self.job,
            partition: self.partition,
            device: self.device,
            served: None,
            tally: None,
        };
        trace.time(Stage::Dealloc, || drop(value));
    }
}

#[cfg(test)]
mod tests;
