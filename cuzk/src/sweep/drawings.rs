//! The pictures of a sweep: throughput over the proofs in flight, and the stages of a
//! partition on top of one another.

use std::fmt::Write;

use cuzk_tune::plot::{self, Line};

use super::row::Row;
use crate::failure::{Failure, failed};

/// Draws proofs an hour over proofs in flight, a line for each arm.
pub(super) fn throughput(title: &str, rows: &[Row]) -> Result<String, Failure> {
    let mut lines: Vec<Line> = Vec::new();
    for row in rows {
        let setting = row.setting;
        let (pipeline, arm, c) = (setting.pipeline, setting.arm, setting.c);
        let name = format!("{pipeline} {arm}, c={c}");
        let point = (setting.j as f64, 3600.0 / row.s_per_proof);
        match lines.iter_mut().find(|line| line.name == name) {
            Some(line) => line.points.push(point),
            None => lines.push(Line {
                name,
                points: vec![point],
            }),
        }
    }
    plot::svg(title, ["proofs in flight", "proofs an hour"], &lines).map_err(failed)
}

/// The stages that are stacked, in order, with their colours. Together they are the way of a
/// partition; waits and parts of stages are left out.
const STACKED: [(&str, &str); 7] = [
    ("witness", "#4e79a7"),
    ("circuit_witness", "#86bcb6"),
    ("columns", "#8cd17d"),
    ("evaluate", "#f28e2b"),
    ("prepare", "#bab0ac"),
    ("device", "#59a14f"),
    ("finish", "#e15759"),
];

const ROW_HEIGHT: f64 = 26.0;
const NAMES_WIDTH: f64 = 230.0;
const BARS_WIDTH: f64 = 760.0;

/// Draws a bar for each row: the seconds of each stage of a partition, one after the other.
pub(super) fn stages(title: &str, rows: &[Row]) -> String {
    let seconds = |row: &Row, stage: &str| row.stages.get(stage).map_or(0.0, |stage| stage.s);
    let total = |row: &Row| {
        STACKED
            .iter()
            .map(|(stage, _)| seconds(row, stage))
            .sum::<f64>()
    };
    let most = rows.iter().map(total).fold(f64::MIN_POSITIVE, f64::max);
    let height = ROW_HEIGHT * (rows.len() as f64 + 3.0);
    let width = NAMES_WIDTH + BARS_WIDTH + 100.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" \
         fill=\"white\"/>\n"
    );
    text(&mut svg, (8.0, 18.0), title);
    for (at, (stage, colour)) in STACKED.iter().enumerate() {
        let x = NAMES_WIDTH + at as f64 * 130.0;
        bar(&mut svg, (x, ROW_HEIGHT + 4.0), 12.0, colour);
        text(&mut svg, (x + 18.0, ROW_HEIGHT + 16.0), stage);
    }
    for (at, row) in rows.iter().enumerate() {
        let y = ROW_HEIGHT * (at as f64 + 2.5);
        text(&mut svg, (8.0, y + 14.0), &row.setting.to_string());
        let mut x = NAMES_WIDTH;
        for (stage, colour) in STACKED {
            let length = seconds(row, stage) / most * BARS_WIDTH;
            bar(&mut svg, (x, y), length, colour);
            x += length;
        }
        text(
            &mut svg,
            (x + 6.0, y + 14.0),
            &format!("{:.3} s", total(row)),
        );
    }
    svg.push_str("</svg>\n");
    svg
}

// Writing into a string does not fail.
fn bar(svg: &mut String, (x, y): (f64, f64), length: f64, colour: &str) {
    let height = ROW_HEIGHT - 8.0;
    let _ = writeln!(
        svg,
        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{length:.1}\" height=\"{height}\" fill=\"{colour}\"/>"
    );
}

/// Writes words that have no characters of XML.
fn text(svg: &mut String, (x, y): (f64, f64), words: &str) {
    let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\">{words}</text>");
}
