//! Pictures of sweeps: threads on one axis, time on the other, an arm a line.

use crate::Result;
use plotters::prelude::*;
use std::{fs, path::Path};

/// One arm's points.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Its name.
    pub name: String,
    /// Threads, and seconds or what the axis says.
    pub points: Vec<(f64, f64)>,
}

/// Draws lines over threads into an SVG file.
///
/// # Errors
/// If there is nothing to draw, or the file cannot be written.
pub fn draw(path: &Path, title: &str, y_label: &str, lines: &[Line]) -> Result<()> {
    let points = || lines.iter().flat_map(|line| &line.points);
    let x_max = points().map(|point| point.0).fold(f64::NAN, f64::max);
    let y_max = points().map(|point| point.1).fold(f64::NAN, f64::max);
    if !x_max.is_finite() || !y_max.is_finite() {
        return Err(format!("{title}: nothing was measured, so there is nothing to draw").into());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let area = SVGBackend::new(path, (900, 560)).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption(title, ("sans-serif", 20))
        .margin(16)
        .x_label_area_size(48)
        .y_label_area_size(72)
        .build_cartesian_2d(0.0..x_max * 1.1, 0.0..y_max * 1.1)?;
    chart
        .configure_mesh()
        .x_desc("threads")
        .y_desc(y_label)
        .draw()?;
    for (at, line) in lines.iter().enumerate() {
        let style = Palette99::pick(at).stroke_width(2);
        chart
            .draw_series(LineSeries::new(line.points.iter().copied(), style).point_size(4))?
            .label(&line.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], style));
    }
    chart
        .configure_series_labels()
        .background_style(WHITE)
        .border_style(BLACK)
        .draw()?;
    area.present()?;
    println!("plot: {}", path.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(name: &str) -> std::path::PathBuf {
        std::env::temp_dir().join(format!("benches-plot-{}-{name}.svg", std::process::id()))
    }

    #[test]
    fn draws_every_line() {
        let lines = ["packed", "enum"].map(|name| Line {
            name: name.to_owned(),
            points: vec![(1.0, 2.0), (2.0, 1.0)],
        });
        let path = path("lines");
        draw(&path, "cells", "seconds", &lines).unwrap();
        let svg = fs::read_to_string(&path).unwrap();
        fs::remove_file(&path).unwrap();
        assert!(svg.starts_with("<svg") && svg.contains("packed") && svg.contains("enum"));
        assert!(svg.matches("<polyline").count() >= 2);
    }

    #[test]
    fn nothing_measured_is_nothing_drawn() {
        let path = path("nothing");
        assert!(draw(&path, "cells", "seconds", &[]).is_err());
        assert!(!path.exists());
    }
}
