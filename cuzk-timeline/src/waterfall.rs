//! Spans as a picture: a waterfall, as the text of an SVG file.
//!
//! One row a device, a thread and a queue, all over one axis in seconds from the
//! first span. What lies inside another span is drawn inside it. A device's gaps
//! are marked in its row, and the longest are listed below.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::time::Duration;

use svg::node::element::{Line, Rectangle, Text, Title};
use svg::{Document, Node};

use crate::rows::{Bar, Group, Row, rows};
use crate::{DeviceUse, Span, Stage, device_use};

const MARGIN: f64 = 14.0;
const FONT_SIZE: f64 = 11.0;
/// The width of a character, on average and a little more.
const CHAR_WIDTH: f64 = 6.6;
const LINE_HEIGHT: f64 = 16.0;
const BAR_HEIGHT: f64 = 16.0;
const QUEUED_HEIGHT: f64 = 3.0;
/// How much smaller a bar is, above and below, than the one that holds it.
const INSET: f64 = 3.0;
const ROW_GAP: f64 = 5.0;
/// What is shorter is drawn as wide as this, to be seen at all.
const BAR_WIDTH_MIN: f64 = 0.4;
/// What is wider is told apart from its neighbours by a thin line.
const STROKED_WIDTH_MIN: f64 = 4.0;
const TICKS_MAX: u32 = 12;
const IDLE: &str = "#f4978e";
const INK: &str = "#263238";
const GRID: &str = "#e0e4e8";

/// What a waterfall looks like.
#[derive(Clone, Debug)]
pub struct WaterfallOptions {
    /// The line above it.
    pub title: String,
    /// Its width in pixels.
    pub width: u32,
    /// How many of a device's gaps are listed.
    pub gaps_listed: usize,
    /// How many of those that wait at the same time are drawn in a queue's row.
    pub queued_drawn: usize,
}

impl Default for WaterfallOptions {
    fn default() -> Self {
        Self {
            title: "cuzk".to_owned(),
            width: 1400,
            gaps_listed: 12,
            queued_drawn: 32,
        }
    }
}

/// A waterfall of `spans`, as the text of an SVG file.
#[must_use]
pub fn waterfall_svg(spans: &[Span], options: &WaterfallOptions) -> String {
    let rows = rows(spans);
    let uses = device_use(spans);
    let mut picture = Picture::new(spans, &rows, options);
    picture.heading(spans, options);
    let top = picture.y;
    for row in &rows {
        let y = picture.y;
        picture.row(row, options);
        let used = uses.iter().find(|used| Some(used.device) == row.device);
        if let Some(used) = used {
            picture.gaps(used, y);
        }
    }
    picture.axis(top);
    picture.legend(spans, !uses.is_empty());
    for used in &uses {
        picture.list_gaps(used, options.gaps_listed);
    }
    picture.finish()
}

/// A picture that grows downwards.
struct Picture {
    document: Document,
    width: f64,
    /// Where the next thing goes.
    y: f64,
    /// Where the axis begins.
    left: f64,
    start: Duration,
    length_s: f64,
}

impl Picture {
    fn new(spans: &[Span], rows: &[Row<'_>], options: &WaterfallOptions) -> Self {
        let start = spans.iter().map(|span| span.start).min();
        let start = start.unwrap_or_default();
        let end = spans.iter().map(|span| span.end).max();
        let length = end.unwrap_or_default().saturating_sub(start);
        let longest = rows.iter().map(|row| row.name.chars().count()).max();
        let left = 2.0 * MARGIN + CHAR_WIDTH * longest.unwrap_or_default() as f64;
        Self {
            document: Document::new(),
            // Narrower than this there is no room for an axis.
            width: f64::from(options.width).max(2.0 * left),
            y: MARGIN,
            left,
            start,
            // So that spans of no length can be drawn, too.
            length_s: length.max(Duration::from_micros(1)).as_secs_f64(),
        }
    }

    fn x(&self, at: Duration) -> f64 {
        let at_s = at.saturating_sub(self.start).as_secs_f64();
        self.left + at_s / self.length_s * (self.width - self.left - MARGIN)
    }

    fn add(&mut self, node: impl Into<Box<dyn Node>>) {
        self.document.append(node);
    }

    fn text(&mut self, x: f64, y: f64, anchor: &str, text: impl Into<String>) {
        let text = Text::new(text)
            .set("x", round(x))
            .set("y", round(y))
            .set("fill", INK)
            .set("text-anchor", anchor);
        self.add(text);
    }

    /// A line of text of its own.
    fn line(&mut self, text: impl Into<String>) {
        self.y += LINE_HEIGHT;
        self.text(MARGIN, self.y, "start", text);
    }

    fn heading(&mut self, spans: &[Span], options: &WaterfallOptions) {
        let jobs: BTreeSet<_> = spans.iter().map(|span| span.job).collect();
        let partitions: BTreeSet<_> = spans
            .iter()
            .filter_map(|span| Some((span.job, span.partition?)))
            .collect();
        self.line(options.title.clone());
        self.line(format!(
            "{} job(s), {} partition(s), {:.3} s",
            jobs.len(),
            partitions.len(),
            if spans.is_empty() { 0.0 } else { self.length_s },
        ));
        self.y += LINE_HEIGHT;
    }

    fn row(&mut self, row: &Row<'_>, options: &WaterfallOptions) {
        let queued = row.group == Group::Queues;
        let (height, drawn) = if queued {
            (QUEUED_HEIGHT, options.queued_drawn.min(row.tracks.len()))
        } else {
            (BAR_HEIGHT, row.tracks.len())
        };
        self.text(MARGIN, self.y + FONT_SIZE, "start", row.name.clone());
        let top = self.y;
        for (at, track) in row.tracks.iter().take(drawn).enumerate() {
            let y = top + height * at as f64;
            for bar in track {
                self.bar(bar, y, height);
            }
            // Above what lies inside them.
            for bar in track.iter().filter(|bar| !queued && bar.depth == 0) {
                self.label(bar.span, y);
            }
        }
        self.y = top + (height * drawn as f64).max(BAR_HEIGHT) + ROW_GAP;
        let left_out = row.tracks.len() - drawn;
        if left_out > 0 {
            let note = format!("and up to {left_out} more at a time");
            self.text(self.left, self.y + FONT_SIZE, "start", note);
            self.y += LINE_HEIGHT;
        }
    }

    fn bar(&mut self, bar: &Bar<'_>, y: f64, height: f64) {
        let span = bar.span;
        let (x, end) = (self.x(span.start), self.x(span.end));
        let width = (end - x).max(BAR_WIDTH_MIN);
        // Never so small that it vanishes in what holds it.
        let inset = (INSET * bar.depth as f64).min(height / 2.0 - 1.0).max(0.0);
        let rectangle = Rectangle::new()
            .set("x", round(x))
            .set("y", round(y + inset))
            .set("width", round(width).max(BAR_WIDTH_MIN))
            .set("height", round(height - 2.0 * inset))
            .set("fill", colour(span.stage))
            .set("stroke", "white")
            .set(
                "stroke-width",
                if width > STROKED_WIDTH_MIN { 0.5 } else { 0.0 },
            )
            .add(Title::new(self.tooltip(span)));
        self.add(rectangle);
    }

    /// Which partition it is, where there is room.
    fn label(&mut self, span: &Span, y: f64) {
        let label = match span.partition {
            Some(partition) => format!("{}.{partition}", span.job),
            None => span.job.to_string(),
        };
        let x = self.x(span.start);
        if self.x(span.end) - x > CHAR_WIDTH * (label.len() + 1) as f64 {
            self.text(x + 3.0, y + FONT_SIZE + 1.0, "start", label);
        }
    }

    fn tooltip(&self, span: &Span) -> String {
        let mut text = format!("{}, job {}", span.stage, span.job);
        // Writing to a string cannot fail.
        if let Some(partition) = span.partition {
            let _ = write!(text, ", partition {partition}");
        }
        if let Some(device) = span.device {
            let _ = write!(text, ", device {device}");
        }
        let _ = write!(
            text,
            ", {}: {}",
            span.lane,
            self.at(span.start, span.length())
        );
        text
    }

    fn at(&self, start: Duration, length: Duration) -> String {
        let start_s = start.saturating_sub(self.start).as_secs_f64();
        format!("{:.4} s at {start_s:.4} s", length.as_secs_f64())
    }

    /// Marks the device's gaps in its row, which begins at `y`.
    fn gaps(&mut self, used: &DeviceUse, y: f64) {
        for gap in &used.gaps {
            let (x, end) = (self.x(gap.start), self.x(gap.start + gap.length));
            let mark = Rectangle::new()
                .set("x", round(x))
                .set("y", round(y))
                .set("width", round(end - x).max(BAR_WIDTH_MIN))
                .set("height", BAR_HEIGHT)
                .set("fill", IDLE)
                .add(Title::new(format!(
                    "idle: {}",
                    self.at(gap.start, gap.length)
                )));
            self.add(mark);
        }
    }

    fn axis(&mut self, top: f64) {
        let Ticks { step, decimals } = Ticks::over(Duration::from_secs_f64(self.length_s));
        let mut at = Duration::ZERO;
        while at.as_secs_f64() <= self.length_s {
            let x = self.x(self.start + at);
            let line = Line::new()
                .set("x1", round(x))
                .set("x2", round(x))
                .set("y1", round(top - 4.0))
                .set("y2", round(self.y))
                .set("stroke", GRID)
                .set("stroke-width", 0.6);
            self.add(line);
            let label = format!("{:.decimals$}", at.as_secs_f64());
            self.text(x, self.y + LINE_HEIGHT, "middle", label);
            at += step;
        }
        self.y += LINE_HEIGHT;
        self.text(MARGIN, self.y, "start", "seconds");
        self.y += LINE_HEIGHT;
    }

    /// What the colours stand for, with how often each stage ran and its mean.
    fn legend(&mut self, spans: &[Span], with_devices: bool) {
        let mut stages: BTreeMap<Stage, (u32, Duration)> = BTreeMap::new();
        for span in spans {
            let (count, total) = stages.entry(span.stage).or_default();
            *count += 1;
            *total += span.length();
        }
        let mut x = MARGIN;
        for (stage, (count, total)) in stages {
            let mean_ms = (total / count).as_secs_f64() * 1e3;
            let name = format!("{stage} {count} × {mean_ms:.1} ms");
            x = self.legend_entry(x, name, colour(stage));
        }
        if with_devices {
            self.legend_entry(x, "device idle".to_owned(), IDLE);
        }
        self.y += LINE_HEIGHT;
    }

    /// Draws an entry at `x`, or on the next line; returns where the next one goes.
    fn legend_entry(&mut self, mut x: f64, name: String, fill: &str) -> f64 {
        let width = 22.0 + CHAR_WIDTH * name.chars().count() as f64 + MARGIN;
        if x + width > self.width {
            x = MARGIN;
            self.y += LINE_HEIGHT;
        }
        let patch = Rectangle::new()
            .set("x", round(x))
            .set("y", round(self.y))
            .set("width", FONT_SIZE)
            .set("height", FONT_SIZE)
            .set("fill", fill);
        self.add(patch);
        self.text(x + 16.0, self.y + FONT_SIZE - 1.0, "start", name);
        x + width
    }

    fn list_gaps(&mut self, used: &DeviceUse, most: usize) {
        let gaps = if used.gaps.is_empty() {
            ""
        } else {
            ", the longest:"
        };
        self.line(format!("{used}{gaps}"));
        let gaps = used.longest_gaps(most);
        let gaps: Vec<_> = gaps
            .iter()
            .map(|gap| self.at(gap.start, gap.length))
            .collect();
        for line in gaps.chunks(6) {
            self.line(format!("    {}", line.join(", ")));
        }
    }

    fn finish(self) -> String {
        let (width, height) = (self.width.ceil(), (self.y + MARGIN).ceil());
        let document = self
            .document
            .set("width", width)
            .set("height", height)
            .set("viewBox", (0, 0, width, height))
            .set("font-family", "sans-serif")
            .set("font-size", FONT_SIZE)
            .set("style", "background: white");
        document.to_string()
    }
}

/// A hundredth of a pixel is enough.
fn round(pixels: f64) -> f64 {
    (pixels * 100.0).round() / 100.0
}

/// The marks of an axis.
#[derive(Debug, PartialEq)]
struct Ticks {
    step: Duration,
    /// How many a second's fraction has in a label.
    decimals: usize,
}

impl Ticks {
    /// The finest of 1, 2 and 5 times a power of ten of which no more than
    /// [`TICKS_MAX`] fit in `length`.
    fn over(length: Duration) -> Self {
        let mut decimals = 9;
        let mut power = Duration::from_nanos(1);
        loop {
            for factor in [1, 2, 5] {
                if power * factor * TICKS_MAX >= length {
                    let step = power * factor;
                    return Self { step, decimals };
                }
            }
            power *= 10;
            decimals = decimals.saturating_sub(1);
        }
    }
}

/// Waits are grey in queues and yellow on threads; witness and evaluation are
/// green, the device blue, what follows it violet.
fn colour(stage: Stage) -> &'static str {
    match stage {
        Stage::DecodeWait => "#dfe4ea",
        Stage::QueueWait => "#cbd3dc",
        Stage::ReadyWait => "#b4bfcb",
        Stage::FinishWait => "#9aa8b7",
        Stage::MemoryWait => "#d9cfc4",
        Stage::LockWait => "#fbd7a0",
        Stage::Decode => "#c9a27e",
        Stage::Circuit => "#e0c9a6",
        Stage::Params => "#d7b98e",
        Stage::Witness => "#66bb6a",
        Stage::CircuitWitness => "#43a047",
        Stage::Evaluate => "#aed581",
        Stage::Prepare => "#80cbc4",
        Stage::Device => "#5c9ee6",
        Stage::Quotient => "#90caf9",
        Stage::Msm => "#bbdefb",
        Stage::Finish => "#a877c9",
        Stage::BG2 => "#ce93d8",
        Stage::Assemble => "#e1bee7",
        Stage::Verify => "#7986cb",
        Stage::Dealloc => "#a1887f",
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use svg::parser::{Event, Parser};

    use super::*;
    use crate::testing::pipeline;

    /// The picture's elements of this name, and their attributes as numbers.
    fn elements(text: &str, name: &str, attributes: [&str; 2]) -> Vec<[f64; 2]> {
        let tags = Parser::new(text).filter_map(|event| match event {
            Event::Tag(tag, _, found) if tag == name => Some(found),
            Event::Error(error) => panic!("{error}"),
            _ => None,
        });
        let values = tags.filter_map(|found| {
            let value = |attribute| found.get(attribute)?.parse().ok();
            Some([value(attributes[0])?, value(attributes[1])?])
        });
        values.collect()
    }

    fn filled(text: &str, fill: &str) -> usize {
        text.matches(&format!("<rect fill=\"{fill}\"")).count()
    }

    #[test]
    fn every_span_is_drawn_and_every_gap_marked() {
        let spans = pipeline(3, 4);
        let text = waterfall_svg(&spans, &WaterfallOptions::default());
        assert!(text.starts_with("<svg") && text.ends_with("</svg>"));
        for stage in Stage::ALL {
            let found = spans.iter().filter(|span| span.stage == stage).count();
            // On the device's row as well as on the thread's.
            let rows = match stage {
                Stage::Device | Stage::Quotient | Stage::Msm => 2,
                _ => 1,
            };
            // One more in the legend.
            let expected = rows * found + usize::from(found > 0);
            assert_eq!(filled(&text, colour(stage)), expected, "{stage}");
        }
        let used = device_use(&spans);
        assert!(!used[0].gaps.is_empty());
        assert_eq!(filled(&text, IDLE), used[0].gaps.len() + 1);
        assert!(text.contains(&format!("{}, the longest:", used[0])));
        // As the test's pipeline has it.
        assert!(text.contains("witness 12 × 4.0 ms"));
    }

    fn is_inside(text: &str, options: &WaterfallOptions) {
        let width = f64::from(options.width);
        let height = elements(text, "svg", ["width", "height"])[0][1];
        for [x, wide] in elements(text, "rect", ["x", "width"]) {
            assert!(x >= 0.0 && wide > 0.0 && x + wide <= width, "{x} {wide}");
        }
        for [y, high] in elements(text, "rect", ["y", "height"]) {
            assert!(y >= 0.0 && high > 0.0 && y + high <= height, "{y} {high}");
        }
    }

    proptest! {
        #[test]
        fn whatever_ran_makes_a_picture_and_nothing_lies_outside(
            all in prop::collection::vec(
                (0..Stage::ALL.len(), 0u64..4, 0u64..2_000_000_000, 0u64..1_000_000_000),
                0..40,
            ),
            zoom in 0u32..9,
        ) {
            let unit = 10_u64.pow(zoom);
            let span = |&(stage, place, start, length): &(usize, u64, u64, u64)| Span {
                job: place,
                partition: (place > 0).then_some(7),
                device: usize::try_from(place).ok().filter(|device| *device < 3),
                stage: Stage::ALL[stage],
                lane: crate::Lane::new(&format!("w-{}", place % 2)),
                start: Duration::from_nanos(start / unit),
                end: Duration::from_nanos((start + length) / unit),
            };
            let spans: Vec<_> = all.iter().map(span).collect();
            let options = WaterfallOptions::default();
            is_inside(&waterfall_svg(&spans, &options), &options);
        }
    }

    #[test]
    fn no_spans_or_spans_of_no_length_make_a_picture() {
        let options = WaterfallOptions::default();
        assert!(waterfall_svg(&[], &options).contains("0 job(s), 0 partition(s), 0.000 s"));
        let mut span = pipeline(1, 1)[0].clone();
        span.end = span.start;
        let text = waterfall_svg(&[span], &options);
        assert_eq!(elements(&text, "rect", ["x", "width"]).len(), 2);
    }

    #[test]
    fn names_are_text_and_never_markup() {
        let mut spans = pipeline(1, 1);
        for span in &mut spans {
            span.lane = crate::Lane::new("<script>&\"");
        }
        let options = WaterfallOptions {
            title: "</svg>".to_owned(),
            ..WaterfallOptions::default()
        };
        let text = waterfall_svg(&spans, &options);
        assert!(!text.contains("<script"));
        assert!(text.contains("&lt;script&gt;&amp;"));
        assert_eq!(text.matches("</svg>").count(), 1);
    }

    #[test]
    fn a_long_queue_is_cut_and_says_so() {
        let mut spans = Vec::new();
        for job in 0..40 {
            let mut span = pipeline(1, 1)[0].clone();
            (span.job, span.stage) = (job, Stage::QueueWait);
            span.end = span.start + Duration::from_millis(1);
            spans.push(span);
        }
        let options = WaterfallOptions::default();
        let text = waterfall_svg(&spans, &options);
        assert_eq!(
            filled(&text, colour(Stage::QueueWait)),
            options.queued_drawn + 1
        );
        assert!(text.contains("and up to 8 more at a time"));
    }

    #[test]
    fn ticks_are_round_and_few() {
        for (length_ms, step_ms, decimals) in [
            (610, 100, 1),
            (1_000, 100, 1),
            (2_500, 500, 1),
            (12_000, 1_000, 0),
            (12_001, 2_000, 0),
            (760_000, 100_000, 0),
            (10, 1, 3),
        ] {
            let step = Duration::from_millis(step_ms);
            let ticks = Ticks::over(Duration::from_millis(length_ms));
            assert_eq!(ticks, Ticks { step, decimals }, "{length_ms}");
        }
    }
}
