//! Pictures of sweeps: threads or another swept number on one axis, time on the other,
//! and a line for each arm of the sweep.

use std::fmt::Display;

use plotters::prelude::*;

/// The reason for which there is no picture.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlotError {
    /// No line has a point.
    #[error("plot: no point was measured; measure at least one and draw again")]
    Nothing,
    /// The drawing library failed.
    #[error("plot: {0}")]
    Drawing(String),
}

fn drawing(error: impl Display) -> PlotError {
    PlotError::Drawing(error.to_string())
}

/// The points of one arm.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Its name.
    pub name: String,
    /// The swept value and the measured value, as the axes name them.
    pub points: Vec<(f64, f64)>,
}

/// Draws lines, as the text of an SVG file.
///
/// # Errors
/// [`PlotError::Nothing`] without a point that can be drawn, [`PlotError::Drawing`] if
/// the drawing library fails.
pub fn svg(
    title: &str,
    [x_label, y_label]: [&str; 2],
    lines: &[Line],
) -> Result<String, PlotError> {
    let points = || lines.iter().flat_map(|line| &line.points);
    let x_max = points().map(|point| point.0).fold(f64::NAN, f64::max);
    let y_max = points().map(|point| point.1).fold(f64::NAN, f64::max);
    if !x_max.is_finite() || !y_max.is_finite() {
        return Err(PlotError::Nothing);
    }
    let mut svg = String::new();
    let area = SVGBackend::with_string(&mut svg, (900, 560)).into_drawing_area();
    area.fill(&WHITE).map_err(drawing)?;
    let mut chart = ChartBuilder::on(&area)
        .caption(title, ("sans-serif", 20))
        .margin(16)
        .x_label_area_size(48)
        .y_label_area_size(72)
        .build_cartesian_2d(0.0..x_max * 1.1, 0.0..y_max * 1.1)
        .map_err(drawing)?;
    let mut mesh = chart.configure_mesh();
    let mesh = mesh.x_desc(x_label).y_desc(y_label);
    mesh.draw().map_err(drawing)?;
    for (at, line) in lines.iter().enumerate() {
        let style = Palette99::pick(at).stroke_width(2);
        let series = LineSeries::new(line.points.iter().copied(), style).point_size(4);
        chart
            .draw_series(series)
            .map_err(drawing)?
            .label(&line.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], style));
    }
    let mut legend = chart.configure_series_labels();
    let legend = legend.background_style(WHITE).border_style(BLACK);
    legend.draw().map_err(drawing)?;
    area.present().map_err(drawing)?;
    // These borrow the text until they are dropped.
    drop(chart);
    drop(area);
    Ok(svg)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_every_line() {
        let lines = ["packed", "enum"].map(|name| Line {
            name: name.to_owned(),
            points: vec![(1.0, 2.0), (2.0, 1.0)],
        });
        let svg = svg("cells", ["threads", "seconds"], &lines).unwrap();
        assert!(svg.starts_with("<svg") && svg.contains("packed") && svg.contains("enum"));
        assert!(svg.matches("<polyline").count() >= 2);
        assert!(svg.trim_end().ends_with("</svg>"));
    }

    #[test]
    fn nothing_measured_is_nothing_drawn() {
        assert_eq!(
            svg("cells", ["threads", "seconds"], &[]),
            Err(PlotError::Nothing)
        );
    }
}
