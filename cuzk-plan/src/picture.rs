//! The throughput of a machine over its partition workers, as a drawing.
//!
//! The invariant: the drawing has the numbers of the model and no others.

use svg::Document;
use svg::node::element::{Line, Polyline, Text};

use crate::PlanError;
use crate::capacity::Capacity;
use crate::kind::{Kind, SectorSize};
use crate::machine::Machine;

/// The most partition workers of the drawing.
const WORKERS_MAX: u32 = 24;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 400.0;
const MARGIN: f64 = 60.0;

/// Returns an SVG of the proofs a day over the partition workers, for the first kind that
/// the machine can do.
///
/// # Errors
/// As [`Capacity::new`], if it can do none.
pub fn svg(machine: &Machine, size: SectorSize) -> Result<String, PlanError> {
    let can = |kind: &Kind| Capacity::new(machine, *kind, size).is_ok();
    let kind = Kind::ALL.into_iter().find(can).unwrap_or(Kind::Porep);
    let mut points = Vec::new();
    for workers in 1..=WORKERS_MAX {
        let mut tried = machine.clone();
        tried.engine.partition_workers = workers;
        let capacity = Capacity::new(&tried, kind, size)?;
        points.push((f64::from(workers), capacity.proofs_per_day));
    }
    let most = points.iter().map(|(_, y)| *y).fold(1e-9, f64::max);
    Ok(draw(machine, kind, &points, most))
}

fn draw(machine: &Machine, kind: Kind, points: &[(f64, f64)], most: f64) -> String {
    let x = |workers: f64| MARGIN + (WIDTH - 2.0 * MARGIN) * workers / f64::from(WORKERS_MAX);
    let y = |per_day: f64| HEIGHT - MARGIN - (HEIGHT - 2.0 * MARGIN) * per_day / most;
    let line: Vec<String> = points
        .iter()
        .map(|(workers, per_day)| format!("{:.1},{:.1}", x(*workers), y(*per_day)))
        .collect();
    let axis = |to_x: f64, to_y: f64| {
        Line::new()
            .set("x1", x(0.0))
            .set("y1", y(0.0))
            .set("x2", to_x)
            .set("y2", to_y)
            .set("stroke", "black")
    };
    let text = |content: String, at: (f64, f64)| {
        Text::new(content)
            .set("x", at.0)
            .set("y", at.1)
            .set("font-family", "sans-serif")
            .set("font-size", 13)
    };
    let title = format!("{}: {kind} proofs a day", machine.name);
    let curve = Polyline::new()
        .set("points", line.join(" "))
        .set("fill", "none")
        .set("stroke", "#1f77b4")
        .set("stroke-width", 2);
    Document::new()
        .set("viewBox", (0, 0, WIDTH, HEIGHT))
        .add(axis(x(f64::from(WORKERS_MAX)), y(0.0)))
        .add(axis(x(0.0), y(most)))
        .add(curve)
        .add(text(title, (MARGIN, MARGIN / 2.0)))
        .add(text(format!("{most:.1}"), (4.0, y(most))))
        .add(text("0".to_owned(), (MARGIN / 2.0, y(0.0))))
        .add(text("1".to_owned(), (x(1.0), HEIGHT - MARGIN / 2.0)))
        .add(text(
            format!("{WORKERS_MAX} partition workers"),
            (x(f64::from(WORKERS_MAX)) - 100.0, HEIGHT - MARGIN / 2.0),
        ))
        .to_string()
}
