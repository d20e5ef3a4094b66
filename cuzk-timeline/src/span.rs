//! A stage that has ended, with the place where it ran.

use std::fmt;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::Stage;

/// The line of a waterfall that a span belongs to: the name of the thread that recorded
/// it. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lane(Arc<str>);

thread_local! {
    static CURRENT: Lane = Lane::of_this_thread();
}

impl Lane {
    /// Returns a lane of this name.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self(name.into())
    }

    /// Returns the lane of the current thread. A thread without a name is known by its
    /// number. Give threads different names to tell them apart.
    #[must_use]
    pub fn current() -> Self {
        // A thread that is ending has no thread locals, and may still drop a value.
        CURRENT
            .try_with(Self::clone)
            .unwrap_or_else(|_| Self::of_this_thread())
    }

    fn of_this_thread() -> Self {
        let thread = thread::current();
        match thread.name() {
            Some(name) => Self::new(name),
            None => Self::new(&format!("{:?}", thread.id())),
        }
    }

    /// Returns the lane's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.name(), f)
    }
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Serialize for Lane {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// One stage of one partition, with its times since the timeline's epoch.
#[derive(Clone, Debug, Serialize)]
pub struct Span {
    /// The job's number, or none for background work of the engine.
    pub job: Option<u64>,
    /// The partition, or none for a stage that a job passes once.
    pub partition: Option<usize>,
    /// The device's index, or none for a stage that ran on no device.
    pub device: Option<usize>,
    /// The stage that ran.
    pub stage: Stage,
    /// The number of partitions that it served, or none for a stage that is its partition's
    /// alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub served: Option<usize>,
    /// The time in which at least one of its threads stood aside for the throttle, or none if
    /// none did.
    #[serde(
        rename = "stood_aside_us",
        skip_serializing_if = "Option::is_none",
        serialize_with = "as_micros_if_any"
    )]
    pub stood_aside: Option<Duration>,
    /// The thread on which it ended.
    pub lane: Lane,
    /// Its start, since the timeline's epoch.
    #[serde(rename = "start_us", serialize_with = "as_micros")]
    pub start: Duration,
    /// Its end, since the timeline's epoch.
    #[serde(rename = "end_us", serialize_with = "as_micros")]
    pub end: Duration,
}

pub(crate) fn as_micros<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
}

fn as_micros_if_any<S: Serializer>(
    time: &Option<Duration>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => as_micros(time, serializer),
        None => serializer.serialize_none(),
    }
}

impl Span {
    /// Returns the duration of the stage.
    #[must_use]
    pub fn length(&self) -> Duration {
        self.end.saturating_sub(self.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuzk_bounded::BoundedJoin;

    #[test]
    fn a_lane_is_the_threads_name_or_number() {
        let named = thread::Builder::new()
            .name("cuzk-synth-3".to_owned())
            .spawn(Lane::current)
            .unwrap();
        assert_eq!(named.join_bounded().unwrap(), Lane::new("cuzk-synth-3"));
        let unnamed = thread::spawn(|| (Lane::current(), thread::current().id()));
        let (lane, id) = unnamed.join_bounded().unwrap();
        assert_eq!(lane.name(), format!("{id:?}"));
    }

    #[test]
    fn json_names_the_unit() {
        let span = Span {
            job: Some(1),
            partition: None,
            device: Some(0),
            stage: Stage::BG2,
            served: None,
            stood_aside: None,
            lane: Lane::new("cuzk-dev0-1"),
            start: Duration::from_nanos(1_999),
            end: Duration::from_millis(2),
        };
        assert_eq!(
            serde_json::to_value(&span).unwrap(),
            serde_json::json!({
                "job": 1, "partition": null, "device": 0, "stage": "b_g2",
                "lane": "cuzk-dev0-1", "start_us": 1, "end_us": 2000,
            })
        );
        let of_several = Span {
            served: Some(10),
            stood_aside: Some(Duration::from_micros(7)),
            ..span
        };
        let value = serde_json::to_value(&of_several).unwrap();
        assert_eq!(value["served"], 10);
        assert_eq!(value["stood_aside_us"], 7);
    }
}
