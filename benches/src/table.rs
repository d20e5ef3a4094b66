//! Tables at the end of a run, and how figures are written in them.
//!
//! The invariant: the machine of the figures stands before the first table.

use std::path::Path;
use std::sync::Once;

use comfy_table::{CellAlignment, Table, presets::ASCII_MARKDOWN};
use cuzk_kernels::Isa;
use cuzk_tune::machine::Host;

static MACHINE: Once = Once::new();

/// Prints a table with a title; the first column is text, the others figures. The first table of a
/// process comes after a line that says the machine: processor, instructions, caches, huge pages
/// and system.
pub fn print(title: &str, header: &[&str], rows: &[Vec<String>]) {
    MACHINE.call_once(|| println!("\n{}", Host::read(Path::new("/"), Isa::best().name())));
    println!("\n{title}\n{}", render(header, rows));
}

fn render(header: &[&str], rows: &[Vec<String>]) -> Table {
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN);
    table.set_header(header);
    table.add_rows(rows);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// The text for a figure that was not measured or cannot be counted.
pub const NOT_AVAILABLE: &str = "n/a";

/// A figure, or [`NOT_AVAILABLE`].
pub fn figure(value: Option<f64>, write: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| NOT_AVAILABLE.to_owned(), write)
}

/// Seconds, in the unit that leaves three digits or so.
pub fn seconds(value: f64) -> String {
    match value.abs() {
        s if s >= 1.0 => format!("{value:.3} s"),
        s if s >= 1e-3 => format!("{:.1} ms", value * 1e3),
        s if s >= 1e-6 => format!("{:.1} µs", value * 1e6),
        _ => format!("{:.2} ns", value * 1e9),
    }
}

/// How much more than 1 a ratio is, in percent.
pub fn percent_over(ratio: f64) -> String {
    format!("{:+.1} %", (ratio - 1.0) * 100.0)
}

/// A ratio.
pub fn times(ratio: f64) -> String {
    format!("{ratio:.2}")
}

/// A count.
pub fn count(value: f64) -> String {
    format!("{value:.0}")
}

/// Bytes, in MiB.
pub fn mebibytes(bytes: f64) -> String {
    format!("{:.1} MiB", bytes / f64::from(1 << 20))
}

/// Bytes, in MB.
pub fn megabytes(bytes: f64) -> String {
    format!("{:.1} MB", bytes / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_units() {
        assert_eq!(seconds(1.5), "1.500 s");
        assert_eq!(seconds(0.0015), "1.5 ms");
        assert_eq!(seconds(0.0000015), "1.5 µs");
        assert_eq!(seconds(0.0000000015), "1.50 ns");
        assert_eq!(percent_over(1.25), "+25.0 %");
        assert_eq!(percent_over(0.9), "-10.0 %");
        assert_eq!(mebibytes(1_572_864.0), "1.5 MiB");
        assert_eq!(megabytes(1_500_000.0), "1.5 MB");
        assert_eq!(figure(None, seconds), "n/a");
        assert_eq!(figure(Some(2.0), times), "2.00");
    }

    #[test]
    fn every_row_is_a_line() {
        let rows = [
            vec!["arm".to_owned(), "1".to_owned()],
            vec!["b".to_owned(), "22".to_owned()],
        ];
        let text = render(&["name", "figure"], &rows).to_string();
        for word in ["name", "figure", "arm", "22"] {
            assert!(text.contains(word), "{text}");
        }
    }
}
