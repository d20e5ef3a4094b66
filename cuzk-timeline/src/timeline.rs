//! When each stage of each partition ran.
//!
//! Not a log and not a metric: a bounded list of finished spans, in the order
//! they ended, from which a waterfall can be drawn. The invariant: a span is
//! recorded for every stage that ran, also when it failed or unwound.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::metrics::{self, InStage};
use crate::{Lane, Span, Stage};

/// How many spans are kept; the oldest are dropped first. A partition has
/// about sixteen, so this is the last thousand partitions.
pub const SPANS_MAX: usize = 16_384;

/// The finished spans of an engine, oldest first. A clone is another handle on
/// the same list.
#[derive(Clone, Debug)]
pub struct Timeline {
    epoch: Instant,
    spans: Arc<Mutex<VecDeque<Span>>>,
}

impl Default for Timeline {
    fn default() -> Self {
        Self {
            epoch: Instant::now(),
            spans: Arc::default(),
        }
    }
}

impl Timeline {
    /// A handle that records the stages of one partition, or, without one, of
    /// a job.
    #[must_use]
    pub fn trace(&self, job: u64, partition: Option<usize>) -> Trace<'_> {
        Trace {
            timeline: self,
            job,
            partition,
            device: None,
            tally: None,
        }
    }

    /// When the times of all spans count from.
    #[must_use]
    pub fn epoch(&self) -> Instant {
        self.epoch
    }

    /// The finished spans of `job`, oldest first.
    #[must_use]
    pub fn of_job(&self, job: u64) -> Vec<Span> {
        self.lock()
            .iter()
            .filter(|span| span.job == job)
            .cloned()
            .collect()
    }

    /// All the spans that are still kept, oldest first.
    #[must_use]
    pub fn spans(&self) -> Vec<Span> {
        self.lock().iter().cloned().collect()
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

    // A panic while the lock is held leaves the list whole: every push is one
    // step. So a poisoned lock is as good as any.
    fn lock(&self) -> MutexGuard<'_, VecDeque<Span>> {
        self.spans.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Records the stages of one partition.
#[derive(Clone, Copy, Debug)]
pub struct Trace<'a> {
    timeline: &'a Timeline,
    job: u64,
    partition: Option<usize>,
    device: Option<usize>,
    tally: Option<&'a DeviceTally>,
}

/// What a device takes for a partition, added up as it is recorded.
#[derive(Debug, Default)]
pub struct DeviceTally {
    waited_ns: AtomicU64,
    busy_ns: AtomicU64,
}

impl DeviceTally {
    /// The wait for the device's lock.
    #[must_use]
    pub fn waited(&self) -> Duration {
        Duration::from_nanos(self.waited_ns.load(Ordering::Relaxed))
    }

    /// How long the device was busy.
    #[must_use]
    pub fn busy(&self) -> Duration {
        Duration::from_nanos(self.busy_ns.load(Ordering::Relaxed))
    }

    fn add(&self, stage: Stage, time: Duration) {
        let sum = match stage {
            Stage::LockWait => &self.waited_ns,
            Stage::Device => &self.busy_ns,
            _ => return,
        };
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        sum.fetch_add(ns, Ordering::Relaxed);
    }
}

impl<'a> Trace<'a> {
    /// The same, which adds up in `tally` as well.
    #[must_use]
    pub fn tallied(self, tally: &'a DeviceTally) -> Self {
        let tally = Some(tally);
        Self { tally, ..self }
    }
}

impl Trace<'_> {
    /// The same, for what happens on the device of this index.
    #[must_use]
    pub fn on_device(self, device: usize) -> Self {
        Self {
            device: Some(device),
            ..self
        }
    }

    /// Runs `work` as `stage`: inside a `tracing` span, and with an entry in
    /// the timeline when it ends, however it ends.
    pub fn time<R>(&self, stage: Stage, work: impl FnOnce() -> R) -> R {
        let _entered = tracing::info_span!(
            "stage",
            name = stage.name(),
            job = self.job,
            partition = self.partition,
            device = self.device
        )
        .entered();
        let _open = OpenSpan {
            trace: *self,
            start: self.timeline.epoch.elapsed(),
            inside: InStage::enter(stage, self.device),
        };
        work()
    }

    /// Records that `stage` lasted from `since` until now.
    pub fn waited(&self, stage: Stage, since: Instant) {
        self.record(stage, since.saturating_duration_since(self.timeline.epoch));
    }

    /// Records that `stage` lasted from `start` to `end`, as something that has
    /// a clock of its own measured it.
    pub fn between(&self, stage: Stage, start: Instant, end: Instant) {
        let since_epoch = |at: Instant| at.saturating_duration_since(self.timeline.epoch);
        self.record_between(stage, since_epoch(start), since_epoch(end));
    }

    /// Records `wait`, which ends now.
    pub fn ended(&self, wait: Wait) {
        self.waited(wait.inside.stage(), wait.since);
    }

    /// `value`, to be dropped wherever it suits; the time that takes is
    /// recorded as [`Stage::Dealloc`].
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

    fn record(&self, stage: Stage, start: Duration) {
        self.record_between(stage, start, self.timeline.epoch.elapsed());
    }

    fn record_between(&self, stage: Stage, start: Duration, end: Duration) {
        let Trace {
            timeline,
            job,
            partition,
            device,
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
            lane: Lane::current(),
            start,
            end,
        };
        metrics::stage_ended(&span);
        timeline.push(span);
    }
}

/// A stage that runs on this thread; it ends when this is dropped.
struct OpenSpan<'a> {
    trace: Trace<'a>,
    start: Duration,
    inside: InStage,
}

impl Drop for OpenSpan<'_> {
    fn drop(&mut self) {
        self.trace.record(self.inside.stage(), self.start);
    }
}

/// A wait that has begun. It lies in the queue with what waits, counts as being
/// in its stage, and is recorded by [`Trace::ended`]; one that is dropped instead
/// led nowhere, and is not recorded.
#[derive(Debug)]
pub struct Wait {
    since: Instant,
    inside: InStage,
}

impl Wait {
    /// Begins to wait in `stage`.
    #[must_use]
    pub fn begin(stage: Stage) -> Self {
        Self {
            since: Instant::now(),
            inside: InStage::enter(stage, None),
        }
    }

    /// When it began.
    #[must_use]
    pub fn since(&self) -> Instant {
        self.since
    }
}

/// A value whose drop is recorded as [`Stage::Dealloc`], on whichever thread
/// that is.
#[derive(Debug)]
pub struct TimedDrop<T> {
    value: Option<T>,
    timeline: Timeline,
    job: u64,
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
            tally: None,
        };
        trace.time(Stage::Dealloc, || drop(value));
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::thread;

    use super::*;

    #[test]
    fn a_stage_that_unwinds_is_recorded() {
        let timeline = Timeline::default();
        let trace = timeline.trace(7, Some(3)).on_device(1);
        let unwound = catch_unwind(AssertUnwindSafe(|| {
            trace.time(Stage::Witness, || panic!("as a bad circuit would"));
        }));
        assert!(unwound.is_err());
        let spans = timeline.of_job(7);
        assert_eq!(spans.len(), 1);
        assert_eq!(
            (spans[0].stage, spans[0].partition, spans[0].device),
            (Stage::Witness, Some(3), Some(1))
        );
        assert!(timeline.of_job(8).is_empty());
    }

    #[test]
    fn the_list_is_bounded() {
        let timeline = Timeline::default();
        for job in 0..=SPANS_MAX as u64 {
            timeline.trace(job, None).time(Stage::Decode, || ());
        }
        let spans = timeline.spans();
        assert_eq!(spans.len(), SPANS_MAX);
        assert_eq!(spans[0].job, 1);
    }

    #[test]
    fn eight_threads_lose_nothing_and_keep_their_order() {
        let timeline = Timeline::default();
        let record = |job| {
            for partition in 0..1000 {
                let trace = timeline.trace(job, Some(partition));
                trace.time(Stage::Witness, || ());
            }
        };
        let record = &record;
        thread::scope(|scope| {
            for job in 0..8 {
                scope.spawn(move || record(job));
            }
        });
        let expected: Vec<_> = (0..1000).map(Some).collect();
        for job in 0..8 {
            let spans = timeline.of_job(job);
            let partitions: Vec<_> = spans.iter().map(|span| span.partition).collect();
            assert_eq!(partitions, expected);
            assert!(spans.iter().all(|span| span.lane == spans[0].lane));
            assert!(spans.is_sorted_by_key(|span| span.end));
        }
    }

    #[test]
    fn a_wait_lasts_from_where_it_began_to_where_it_is_ended() {
        let timeline = Timeline::default();
        let began = timeline.epoch().elapsed();
        let wait = Wait::begin(Stage::QueueWait);
        drop(Wait::begin(Stage::ReadyWait));
        let lane = thread::scope(|scope| {
            let ended = scope.spawn(|| {
                thread::sleep(Duration::from_millis(3));
                timeline.trace(1, Some(0)).ended(wait);
                Lane::current()
            });
            ended.join().unwrap()
        });
        let spans = timeline.spans();
        assert_eq!(spans.len(), 1);
        assert_eq!((spans[0].stage, &spans[0].lane), (Stage::QueueWait, &lane));
        assert!(spans[0].start >= began && spans[0].length() >= Duration::from_millis(3));
    }

    #[test]
    fn a_wait_from_before_the_epoch_starts_there() {
        let before = Instant::now();
        let timeline = Timeline::default();
        timeline.trace(1, None).waited(Stage::QueueWait, before);
        assert_eq!(timeline.spans()[0].start, Duration::ZERO);
    }

    #[test]
    fn what_a_device_takes_is_added_up_apart_from_the_wait_for_it() {
        const MS: Duration = Duration::from_millis(1);
        let timeline = Timeline::default();
        let tally = DeviceTally::default();
        let trace = timeline.trace(1, Some(0)).tallied(&tally).on_device(0);
        let at = |ms| timeline.epoch() + ms * MS;
        trace.between(Stage::LockWait, at(0), at(7));
        trace.between(Stage::Device, at(7), at(10));
        trace.between(Stage::Quotient, at(7), at(8));
        trace.between(Stage::Device, at(10), at(12));
        timeline
            .trace(1, Some(1))
            .between(Stage::Device, at(0), at(50));
        assert_eq!((tally.waited(), tally.busy()), (7 * MS, 5 * MS));
        trace.time(Stage::Device, || thread::sleep(MS));
        assert!(tally.busy() >= 6 * MS);
        assert_eq!(timeline.spans().len(), 6);
    }

    #[test]
    fn a_drop_is_timed_on_the_thread_that_does_it() {
        struct Slow;
        impl Drop for Slow {
            fn drop(&mut self) {
                thread::sleep(Duration::from_millis(3));
            }
        }
        let timeline = Timeline::default();
        let slow = timeline.trace(4, Some(2)).timed_drop(Slow);
        assert!(timeline.spans().is_empty());
        let freeing = thread::Builder::new().name("free".to_owned());
        freeing.spawn(move || drop(slow)).unwrap().join().unwrap();
        let spans = timeline.of_job(4);
        assert_eq!(spans.len(), 1);
        assert_eq!(
            (spans[0].stage, spans[0].partition, spans[0].lane.name()),
            (Stage::Dealloc, Some(2), "free")
        );
        assert!(spans[0].length() >= Duration::from_millis(3));
    }
}
