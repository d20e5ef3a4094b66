//! The place of each span in a drawing.
//!
//! A row is a device, a thread, or a queue. A row has one or more tracks. One track is
//! enough as long as spans lie side by side or inside one another; spans that overlap
//! take more. The invariant: on a track, two spans are apart or one holds the other. On
//! a track of a queue, two spans are apart.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::{Names, Span, Stage};

/// The kind of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Group {
    Devices,
    Threads,
    Queues,
}

impl Group {
    pub(crate) const ALL: [Self; 3] = [Self::Devices, Self::Threads, Self::Queues];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Devices => "devices",
            Self::Threads => "threads",
            Self::Queues => "queues",
        }
    }
}

/// A span on a track, with the number of other spans that hold it there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bar<'a> {
    pub(crate) span: &'a Span,
    pub(crate) depth: usize,
}

/// A row of a waterfall.
#[derive(Debug)]
pub(crate) struct Row<'a> {
    pub(crate) group: Group,
    pub(crate) name: String,
    /// The device's index, in [`Group::Devices`].
    pub(crate) device: Option<usize>,
    pub(crate) tracks: Vec<Vec<Bar<'a>>>,
}

/// The order of rows: by group first. Devices follow by index. Threads follow by the
/// earliest stage that they ran, then by name. Queues follow in the order of the
/// pipeline.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Key<'a> {
    Device(usize),
    Thread(Stage, Vec<(&'a str, u64)>, &'a str),
    Queue(Stage),
}

/// Returns the rows of `spans`, the devices under their names. A span that ran on a device
/// stands in the device's row and in its thread's row.
pub(crate) fn rows<'a>(spans: &'a [Span], names: &Names) -> Vec<Row<'a>> {
    let mut first_stages: BTreeMap<&str, Stage> = BTreeMap::new();
    for span in spans.iter().filter(|span| !span.stage.is_queued()) {
        let first = first_stages.entry(span.lane.name()).or_insert(span.stage);
        *first = span.stage.min(*first);
    }
    let mut rows: BTreeMap<Key<'_>, Vec<&Span>> = BTreeMap::new();
    for span in spans {
        let is_in_row = span.stage.is_busy() || matches!(span.stage, Stage::Quotient | Stage::Msm);
        if let Some(device) = span.device.filter(|_| is_in_row) {
            rows.entry(Key::Device(device)).or_default().push(span);
        }
        let lane = span.lane.name();
        let key = match first_stages.get(lane) {
            Some(first) if !span.stage.is_queued() => {
                Key::Thread(*first, in_numbers_order(lane), lane)
            }
            _ => Key::Queue(span.stage),
        };
        rows.entry(key).or_default().push(span);
    }
    rows.into_iter()
        .map(|(key, spans)| row(&key, spans, names))
        .collect()
}

fn row<'a>(key: &Key<'_>, spans: Vec<&'a Span>, names: &Names) -> Row<'a> {
    let (group, name, device) = match key {
        Key::Device(device) => (Group::Devices, names.device(*device), Some(*device)),
        Key::Thread(_, _, name) => (Group::Threads, (*name).to_owned(), None),
        Key::Queue(stage) => (Group::Queues, stage.name().to_owned(), None),
    };
    Row {
        group,
        name,
        device,
        tracks: tracks(spans, group != Group::Queues),
    }
}

/// Returns a sort key by which "synth-2" comes before "synth-10".
fn in_numbers_order(name: &str) -> Vec<(&str, u64)> {
    let is_digit = |c: char| c.is_ascii_digit();
    let mut rest = name;
    let mut parts = Vec::new();
    while !rest.is_empty() {
        let (text, after) = rest.split_at(rest.find(is_digit).unwrap_or(rest.len()));
        let digits = after.find(|c| !is_digit(c)).unwrap_or(after.len());
        let (number, after) = after.split_at(digits);
        parts.push((text, number.parse().unwrap_or(u64::MAX)));
        rest = after;
    }
    parts
}

/// A track that is being filled.
#[derive(Default)]
struct Filling<'a> {
    bars: Vec<Bar<'a>>,
    /// The ends of the spans that hold the next one, outermost first.
    open: Vec<Duration>,
}

impl<'a> Filling<'a> {
    /// Takes `span` and returns true if it fits. Spans come in the order of their
    /// starts.
    fn take(&mut self, span: &'a Span, nests: bool) -> bool {
        while self.open.last().is_some_and(|&end| end <= span.start) {
            self.open.pop();
        }
        if self
            .open
            .last()
            .is_some_and(|&end| !nests || end < span.end)
        {
            return false;
        }
        let depth = self.open.len();
        self.bars.push(Bar { span, depth });
        self.open.push(span.end);
        true
    }
}

/// Places each span on the first track that takes it.
fn tracks<'a>(mut spans: Vec<&'a Span>, nests: bool) -> Vec<Vec<Bar<'a>>> {
    spans.sort_by_key(|span| (span.start, std::cmp::Reverse(span.end), span.stage));
    let mut tracks: Vec<Filling<'_>> = Vec::new();
    for span in spans {
        if !tracks.iter_mut().any(|track| track.take(span, nests)) {
            let mut track = Filling::default();
            track.take(span, nests);
            tracks.push(track);
        }
    }
    tracks.into_iter().map(|track| track.bars).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Lane;

    fn span(lane: &str, stage: Stage, start_ms: u64, end_ms: u64) -> Span {
        Span {
            job: Some(0),
            partition: Some(0),
            device: None,
            stage,
            served: None,
            stood_aside: None,
            lane: Lane::new(lane),
            start: Duration::from_millis(start_ms),
            end: Duration::from_millis(end_ms),
        }
    }

    fn names<'a>(rows: &'a [Row<'_>]) -> Vec<&'a str> {
        rows.iter().map(|row| row.name.as_str()).collect()
    }

    #[test]
    fn rows_come_as_devices_threads_and_queues_in_the_pipelines_order() {
        let mut on_device = span("w-10", Stage::Device, 0, 9);
        on_device.device = Some(1);
        let mut waits_for_it = span("w-10", Stage::LockWait, 0, 0);
        waits_for_it.device = Some(1);
        let spans = [
            span("w-2", Stage::QueueWait, 0, 3),
            span("w-2", Stage::DecodeWait, 0, 3),
            on_device,
            waits_for_it,
            span("w-2", Stage::Witness, 0, 3),
            span("z", Stage::Decode, 0, 3),
            span("w-02", Stage::Witness, 0, 3),
        ];
        let rows = rows(&spans, &Names::default());
        let expected = [
            "device 1",
            "z",
            "w-02",
            "w-2",
            "w-10",
            "decode_wait",
            "queue_wait",
        ];
        assert_eq!(names(&rows), expected);
        assert_eq!(rows[0].tracks[0].len(), 1, "a wait is not on the device");
        assert_eq!(rows[4].tracks[0].len(), 2);
    }

    #[test]
    fn a_part_lies_in_its_whole_and_the_next_one_beside() {
        let spans = [
            span("w", Stage::Msm, 4, 9),
            span("w", Stage::Quotient, 1, 4),
            span("w", Stage::Device, 1, 9),
            span("w", Stage::BG2, 9, 12),
        ];
        let rows = rows(&spans, &Names::default());
        assert_eq!(rows[0].tracks.len(), 1);
        let bars: Vec<_> = rows[0].tracks[0]
            .iter()
            .map(|bar| (bar.span.stage, bar.depth))
            .collect();
        let expected = [
            (Stage::Device, 0),
            (Stage::Quotient, 1),
            (Stage::Msm, 1),
            (Stage::BG2, 0),
        ];
        assert_eq!(bars, expected);
    }

    proptest! {
        #[test]
        fn every_span_is_on_one_track_and_none_cuts_another(
            times in prop::collection::vec((0u64..40, 0u64..15), 0..30),
            queued in any::<bool>(),
        ) {
            let stage = if queued { Stage::ReadyWait } else { Stage::Witness };
            let spans: Vec<_> = times.iter().map(|&(at, long)| span("w", stage, at, at + long)).collect();
            let rows = rows(&spans, &Names::default());
            let tracks: Vec<_> = rows.iter().flat_map(|row| &row.tracks).collect();
            prop_assert_eq!(tracks.iter().map(|track| track.len()).sum::<usize>(), spans.len());
            for track in tracks {
                for (at, a) in track.iter().enumerate() {
                    for b in &track[at + 1..] {
                        let apart = a.span.end <= b.span.start;
                        let holds = !queued && b.span.end <= a.span.end;
                        prop_assert!(a.span.start <= b.span.start && (apart || holds));
                    }
                    let holders = track[..at].iter().filter(|b| b.span.end > a.span.start).count();
                    prop_assert_eq!(a.depth, holders);
                }
            }
        }
    }
}
