//! Spans as a picture: a waterfall, as the text of an SVG file.
//!
//! There is one row for each device, thread and queue, all over one axis in seconds
//! from the first span. A span that lies inside another is drawn inside it. A device's
//! gaps are marked in its row, and the longest are listed below.

mod colours;
mod ticks;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::time::Duration;

use svg::node::element::{Line, Rectangle, Text, Title};
use svg::{Document, Node};

use self::colours::{GRID, IDLE, INK, colour};
use self::ticks::Ticks;
use crate::rows::{Bar, Group, Row, rows};
use crate::{DeviceUse, Names, Span, Stage, device_use};

const MARGIN: f64 = 14.0;
const FONT_SIZE: f64 = 11.0;
/// The average width of a character, plus a little.
const CHAR_WIDTH: f64 = 6.6;
const LINE_HEIGHT: f64 = 16.0;
const BAR_HEIGHT: f64 = 16.0;
const QUEUED_HEIGHT: f64 = 3.0;
/// The difference in height, above and below, between a bar and the bar that holds it.
const INSET: f64 = 3.0;
const ROW_GAP: f64 = 5.0;
/// The least width of a bar, so that a short span can be seen at all.
const BAR_WIDTH_MIN: f64 = 0.4;
/// The width above which a thin line separates a bar from its neighbours.
const STROKED_WIDTH_MIN: f64 = 4.0;

/// Options of a waterfall.
#[derive(Clone, Debug)]
pub struct WaterfallOptions {
    /// The line above the picture.
    pub title: String,
    /// The picture's width in pixels.
    pub width: u32,
    /// The number of a device's gaps that are listed.
    pub gaps_listed: usize,
    /// The most spans that are drawn above one another in a queue's row.
    pub queued_drawn: usize,
    /// The names of devices and jobs.
    pub names: Names,
}

impl Default for WaterfallOptions {
    fn default() -> Self {
        Self {
            title: "cuzk".to_owned(),
            width: 1400,
            gaps_listed: 12,
            queued_drawn: 32,
            names: Names::default(),
        }
    }
}

/// Draws a waterfall of `spans`, as the text of an SVG file.
#[must_use]
pub fn waterfall_svg(spans: &[Span], options: &WaterfallOptions) -> String {
    let rows = rows(spans, &options.names);
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
        picture.list_gaps(used, options);
    }
    picture.finish()
}

/// A picture that grows downwards.
struct Picture {
    document: Document,
    width: f64,
    /// The position of the next element.
    y: f64,
    /// The position at which the axis begins.
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
            // A picture narrower than this has no room for an axis.
            width: f64::from(options.width).max(2.0 * left),
            y: MARGIN,
            left,
            start,
            // At least a microsecond, so that spans of no length can be drawn.
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

    /// Adds a line of text.
    fn line(&mut self, text: impl Into<String>) {
        self.y += LINE_HEIGHT;
        self.text(MARGIN, self.y, "start", text);
    }

    fn heading(&mut self, spans: &[Span], options: &WaterfallOptions) {
        let jobs: BTreeSet<_> = spans.iter().filter_map(|span| span.job).collect();
        let partitions: BTreeSet<_> = spans
            .iter()
            .filter_map(|span| Some((span.job?, span.partition?)))
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
                self.bar(bar, y, height, &options.names);
            }
            // Labels come after all bars, so that no inner bar covers them.
            for bar in track.iter().filter(|bar| !queued && bar.depth == 0) {
                self.label(bar.span, y, &options.names);
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

    fn bar(&mut self, bar: &Bar<'_>, y: f64, height: f64, names: &Names) {
        let span = bar.span;
        let (x, end) = (self.x(span.start), self.x(span.end));
        let width = (end - x).max(BAR_WIDTH_MIN);
        // Limited, so that a deep bar does not vanish in the one that holds it.
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
            .add(Title::new(self.tooltip(span, names)));
        self.add(rectangle);
    }

    /// Writes the job and the partition into a bar, with as many words as it has room for.
    fn label(&mut self, span: &Span, y: f64, names: &Names) {
        let x = self.x(span.start);
        let room = self.x(span.end) - x;
        let fits = |label: &String| room > CHAR_WIDTH * (label.chars().count() + 1) as f64;
        if let Some(label) = labels(span, names).into_iter().find(fits) {
            self.text(x + 3.0, y + FONT_SIZE + 1.0, "start", label);
        }
    }

    fn tooltip(&self, span: &Span, names: &Names) -> String {
        let owner = match span.job {
            Some(job) => names.job(job),
            None => "in the background".to_owned(),
        };
        let mut text = format!("{}, {owner}", span.stage);
        // Writing to a string cannot fail.
        if let Some(partition) = span.partition {
            let _ = write!(text, ", partition {partition}");
        }
        if let Some(device) = span.device {
            let _ = write!(text, ", {}", names.device(device));
        }
        let _ = write!(
            text,
            ", {}: {}",
            span.lane,
            self.at(span.start, span.length())
        );
        if let Some(time) = span.stood_aside {
            let _ = write!(text, ", stood aside for {:.4} s", time.as_secs_f64());
        }
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

    /// Draws the legend: each stage with its colour, its count and its mean duration.
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

    /// Draws an entry at `x`, or on the next line. Returns the position of the next
    /// entry.
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

    fn list_gaps(&mut self, used: &DeviceUse, options: &WaterfallOptions) {
        let gaps = if used.gaps.is_empty() {
            ""
        } else {
            ", the longest:"
        };
        let name = options.names.device(used.device);
        self.line(format!("{}{gaps}", used.describe(&name)));
        let gaps = used.longest_gaps(options.gaps_listed);
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

/// Returns what a bar can be labelled with, the longest first.
fn labels(span: &Span, names: &Names) -> Vec<String> {
    let Some(job) = span.job else {
        return vec![span.stage.name().to_owned()];
    };
    let of_job = [names.job(job), format!("job {job}")];
    match span.partition {
        None => of_job.into(),
        Some(partition) => {
            let [long, short] = of_job;
            vec![
                format!("{long}, partition {partition}"),
                format!("{short}, partition {partition}"),
                format!("partition {partition}"),
            ]
        }
    }
}

/// Rounds to a hundredth of a pixel, which is precise enough.
fn round(pixels: f64) -> f64 {
    (pixels * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests;
