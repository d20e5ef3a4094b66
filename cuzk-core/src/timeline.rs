//! When each stage of each partition ran.
//!
//! Not a log and not a metric: a bounded list of finished spans, in the order
//! they ended, from which a waterfall can be drawn. The invariant: a span is
//! recorded for every stage that ran, also when it failed or unwound.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;

/// How many spans are kept; the oldest are dropped first. A partition has
/// about ten, so this is the last thousand partitions.
const SPANS_MAX: usize = 10_000;

/// What a partition goes through, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Parsing and validating the request.
    Decode,
    /// Waiting for a synthesis worker.
    QueueWait,
    /// Recording or loading the compiled circuit.
    Circuit,
    /// Mapping and checking the Groth16 parameters.
    Params,
    /// Waiting until the partition's memory is free.
    MemoryWait,
    /// Writing the witness natively.
    Witness,
    /// Computing the witness by running the circuit, for a shape that has no
    /// native writer.
    CircuitWitness,
    /// Evaluating A·w and B·w.
    Evaluate,
    /// Waiting for a device worker.
    ReadyWait,
    /// Waiting for the device's lock.
    LockWait,
    /// The quotient h, on the device.
    Quotient,
    /// The sums over H, L, A and B in G1, on the device.
    Msm,
    /// The sum over B in G2, outside the device's lock.
    BG2,
    /// Putting the proof together.
    Assemble,
    /// Checking the proof.
    Verify,
}

impl Stage {
    /// The stage's name in timelines and spans.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Decode => "decode",
            Self::QueueWait => "queue_wait",
            Self::Circuit => "circuit",
            Self::Params => "params",
            Self::MemoryWait => "memory_wait",
            Self::Witness => "witness",
            Self::CircuitWitness => "circuit_witness",
            Self::Evaluate => "evaluate",
            Self::ReadyWait => "ready_wait",
            Self::LockWait => "lock_wait",
            Self::Quotient => "quotient",
            Self::Msm => "msm",
            Self::BG2 => "b_g2",
            Self::Assemble => "assemble",
            Self::Verify => "verify",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// One stage of one partition, with its times since the timeline's epoch.
#[derive(Clone, Debug, Serialize)]
pub struct Span {
    /// The job's number.
    pub job: u64,
    /// The partition, or none for what happens once a job.
    pub partition: Option<usize>,
    /// What ran.
    pub stage: Stage,
    /// When it started.
    #[serde(rename = "start_us", serialize_with = "as_micros")]
    pub start: Duration,
    /// When it ended.
    #[serde(rename = "end_us", serialize_with = "as_micros")]
    pub end: Duration,
}

fn as_micros<S: serde::Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
}

impl Span {
    /// How long the stage took.
    #[must_use]
    pub fn length(&self) -> Duration {
        self.end.saturating_sub(self.start)
    }
}

/// The finished spans of an engine, oldest first.
#[derive(Debug)]
pub struct Timeline {
    epoch: Instant,
    spans: Mutex<VecDeque<Span>>,
}

impl Default for Timeline {
    fn default() -> Self {
        Self {
            epoch: Instant::now(),
            spans: Mutex::default(),
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
        }
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
        let mut spans = self.lock();
        if spans.len() == SPANS_MAX {
            spans.pop_front();
        }
        spans.push_back(span);
    }

    // A panic while the lock is held leaves the list whole: every push is one
    // step. So a poisoned lock is as good as any.
    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<Span>> {
        self.spans.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Records the stages of one partition.
#[derive(Clone, Copy, Debug)]
pub struct Trace<'a> {
    timeline: &'a Timeline,
    job: u64,
    partition: Option<usize>,
}

impl Trace<'_> {
    /// Runs `work` as `stage`: inside a `tracing` span, and with an entry in
    /// the timeline when it ends, however it ends.
    pub fn time<R>(&self, stage: Stage, work: impl FnOnce() -> R) -> R {
        let _entered = tracing::info_span!(
            "stage",
            name = stage.name(),
            job = self.job,
            partition = self.partition
        )
        .entered();
        let _open = OpenSpan {
            trace: *self,
            stage,
            start: self.timeline.epoch.elapsed(),
        };
        work()
    }

    /// Records that `stage` lasted from `since` until now.
    pub fn waited(&self, stage: Stage, since: Instant) {
        let start = since.saturating_duration_since(self.timeline.epoch);
        drop(OpenSpan {
            trace: *self,
            stage,
            start,
        });
    }
}

/// A stage that has not ended; it ends when this is dropped.
struct OpenSpan<'a> {
    trace: Trace<'a>,
    stage: Stage,
    start: Duration,
}

impl Drop for OpenSpan<'_> {
    fn drop(&mut self) {
        let Trace {
            timeline,
            job,
            partition,
        } = self.trace;
        let end = timeline.epoch.elapsed();
        timeline.push(Span {
            job,
            partition,
            stage: self.stage,
            start: self.start,
            end,
        });
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn a_stage_that_unwinds_is_recorded() {
        let timeline = Timeline::default();
        let trace = timeline.trace(7, Some(3));
        let unwound = catch_unwind(AssertUnwindSafe(|| {
            trace.time(Stage::Witness, || panic!("as a bad circuit would"));
        }));
        assert!(unwound.is_err());
        let spans = timeline.of_job(7);
        assert_eq!(spans.len(), 1);
        assert_eq!(
            (spans[0].stage, spans[0].partition),
            (Stage::Witness, Some(3))
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
    fn json_names_the_unit() {
        let timeline = Timeline::default();
        timeline.trace(1, None).time(Stage::BG2, || ());
        let json = serde_json::to_value(&timeline.spans()[0]).unwrap();
        assert_eq!(json["stage"], "b_g2");
        assert!(json["end_us"].as_u64() >= json["start_us"].as_u64());
    }
}
