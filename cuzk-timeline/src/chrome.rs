//! Spans as a trace that Perfetto and Chrome open.
//!
//! Source: the Trace Event Format, JSON object form. A process of the format stands for
//! a group of rows: devices, threads or queues. A thread of the format is one track of
//! a row. A span is a complete event.
//!
//! The invariants are required by the viewers. On a thread, two events are apart or one
//! holds the other. No number belongs to two threads.

use serde::Serialize;
use serde::ser::{SerializeSeq, SerializeStruct, Serializer};

use crate::rows::{Bar, Group, Row, rows};
use crate::{Names, Span};

/// The first number of a thread. Viewers treat a thread as the main one if its number
/// is its process' number; these numbers are above those of all processes.
const FIRST_TID: usize = 16;

/// Returns `spans` in the Trace Event Format, to be serialized as JSON.
#[must_use]
pub fn chrome_trace<'a>(spans: &'a [Span], names: &Names) -> ChromeTrace<'a> {
    let rows = rows(spans, names);
    ChromeTrace { rows }
}

/// A trace in the Trace Event Format; see [`chrome_trace`].
#[derive(Debug)]
pub struct ChromeTrace<'a> {
    rows: Vec<Row<'a>>,
}

impl Serialize for ChromeTrace<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut trace = serializer.serialize_struct("ChromeTrace", 2)?;
        trace.serialize_field("displayTimeUnit", "ms")?;
        trace.serialize_field("traceEvents", &Events(&self.rows))?;
        trace.end()
    }
}

struct Events<'a>(&'a [Row<'a>]);

impl Serialize for Events<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut events = serializer.serialize_seq(None)?;
        for group in Group::ALL {
            events.serialize_element(&name("process_name", group, 0, group.name()))?;
            events.serialize_element(&order("process_sort_index", group, 0, pid(group)))?;
        }
        let tracks = self.0.iter().flat_map(|row| {
            let tracks = row.tracks.iter();
            tracks.map(move |track| (row, track))
        });
        for (at, (row, track)) in tracks.enumerate() {
            let tid = FIRST_TID + at;
            events.serialize_element(&name("thread_name", row.group, tid, &row.name))?;
            events.serialize_element(&order("thread_sort_index", row.group, tid, tid))?;
            for bar in track {
                events.serialize_element(&complete(row.group, tid, bar))?;
            }
        }
        events.end()
    }
}

fn pid(group: Group) -> usize {
    1 + group as usize
}

/// An event that names or orders a process or a thread.
#[derive(Serialize)]
struct Metadata<T> {
    ph: char,
    name: &'static str,
    pid: usize,
    tid: usize,
    args: T,
}

fn metadata<T>(name: &'static str, group: Group, tid: usize, args: T) -> Metadata<T> {
    Metadata {
        ph: 'M',
        name,
        pid: pid(group),
        tid,
        args,
    }
}

#[derive(Serialize)]
struct Name<'a> {
    name: &'a str,
}

fn name<'a>(what: &'static str, group: Group, tid: usize, name: &'a str) -> Metadata<Name<'a>> {
    metadata(what, group, tid, Name { name })
}

#[derive(Serialize)]
struct Order {
    sort_index: usize,
}

fn order(what: &'static str, group: Group, tid: usize, sort_index: usize) -> Metadata<Order> {
    metadata(what, group, tid, Order { sort_index })
}

/// An event with a start and a length, in microseconds with three decimals.
#[derive(Serialize)]
struct Complete {
    ph: char,
    name: &'static str,
    cat: &'static str,
    pid: usize,
    tid: usize,
    ts: f64,
    dur: f64,
    args: Args,
}

#[derive(Serialize)]
struct Args {
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    partition: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    served: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stood_aside_us: Option<f64>,
}

fn complete(group: Group, tid: usize, bar: &Bar<'_>) -> Complete {
    let span = bar.span;
    Complete {
        ph: 'X',
        name: span.stage.name(),
        cat: if span.stage.is_wait() { "wait" } else { "work" },
        pid: pid(group),
        tid,
        ts: span.start.as_nanos() as f64 / 1e3,
        dur: span.length().as_nanos() as f64 / 1e3,
        args: Args {
            job: span.job,
            partition: span.partition,
            device: span.device,
            served: span.served,
            stood_aside_us: span.stood_aside.map(|time| time.as_nanos() as f64 / 1e3),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use serde_json::Value;

    use super::*;
    use crate::testing::pipeline;

    fn events(spans: &[Span]) -> Vec<Value> {
        let trace = serde_json::to_value(chrome_trace(spans, &Names::default())).unwrap();
        assert_eq!(trace["displayTimeUnit"], "ms");
        trace["traceEvents"].as_array().unwrap().clone()
    }

    fn track(event: &Value) -> (u64, u64) {
        let number = |key: &str| event[key].as_u64().unwrap();
        (number("pid"), number("tid"))
    }

    /// Returns a time in nanoseconds, rounded as viewers round it; a number below 2^53
    /// stays exact.
    fn nanos(event: &Value, key: &str) -> u64 {
        let nanos = format!("{:.0}", event[key].as_f64().unwrap() * 1e3);
        nanos.parse().unwrap()
    }

    #[test]
    fn events_have_the_shape_of_the_format() {
        for event in events(&pipeline(2, 3)) {
            let phase = event["ph"].as_str().unwrap();
            let keys: Vec<_> = event
                .as_object()
                .unwrap()
                .keys()
                .map(String::as_str)
                .collect();
            let expected: &[&str] = match phase {
                "X" => &["args", "cat", "dur", "name", "ph", "pid", "tid", "ts"],
                "M" => &["args", "name", "ph", "pid", "tid"],
                other => panic!("{other}"),
            };
            assert_eq!(keys, expected);
            assert!(event["name"].is_string() && event["args"].is_object());
            if phase == "M" {
                let (value, of) = match event["name"].as_str().unwrap() {
                    "process_name" | "thread_name" => (
                        &event["args"]["name"],
                        Value::is_string as fn(&Value) -> bool,
                    ),
                    "process_sort_index" | "thread_sort_index" => {
                        (&event["args"]["sort_index"], Value::is_u64 as _)
                    }
                    other => panic!("{other}"),
                };
                assert!(of(value), "{event}");
            }
        }
    }

    #[test]
    fn every_track_is_named_before_it_is_used_and_belongs_to_one_process() {
        let mut named = BTreeSet::new();
        let mut tids = BTreeSet::new();
        for event in events(&pipeline(2, 3)) {
            if event["name"] == "thread_name" {
                named.insert(track(&event));
                assert!(tids.insert(track(&event).1), "{event}");
            }
            if event["ph"] == "X" {
                assert!(named.contains(&track(&event)), "{event}");
            }
        }
        let pids: BTreeSet<_> = named.iter().map(|(pid, _)| *pid).collect();
        assert_eq!(pids, BTreeSet::from([1, 2, 3]));
        assert!(tids.is_disjoint(&pids));
    }

    #[test]
    fn on_a_track_events_are_apart_or_nested() {
        let mut tracks: BTreeMap<_, Vec<(u64, u64)>> = BTreeMap::new();
        for event in events(&pipeline(3, 4)) {
            if event["ph"] == "X" {
                let start = nanos(&event, "ts");
                let times = (start, start + nanos(&event, "dur"));
                tracks.entry(track(&event)).or_default().push(times);
            }
        }
        for times in tracks.values() {
            for (at, a) in times.iter().enumerate() {
                for b in &times[at + 1..] {
                    assert!(a.1 <= b.0 || (a.0 <= b.0 && b.1 <= a.1), "{a:?} {b:?}");
                }
            }
        }
    }

    #[test]
    fn times_are_exact_to_the_nanosecond() {
        let mut span = pipeline(1, 1)[0].clone();
        span.start = std::time::Duration::from_nanos(3_600_000_000_001);
        span.end = span.start + std::time::Duration::from_nanos(1_999);
        let events = events(&[span]);
        let event = events.iter().find(|event| event["ph"] == "X").unwrap();
        assert_eq!(nanos(event, "ts"), 3_600_000_000_001);
        assert_eq!(nanos(event, "dur"), 1_999);
    }
}
