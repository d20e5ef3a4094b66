//! Tables and times, as people read them.
//!
//! It knows nothing of their content. The invariant: a table without rows is left out.

use comfy_table::{Table, presets};

/// Returns a table, unless it has no rows.
pub(super) fn table(header: &[&str], rows: impl Iterator<Item = Vec<String>>) -> Option<String> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    // The first column begins where the lines around the table begin.
    if let Some(first) = table.column_mut(0) {
        first.set_padding((0, 1));
    }
    table.add_rows(rows);
    (table.row_count() > 0).then(|| table.trim_fmt())
}

/// Returns a time in its two largest units.
pub(super) fn time(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, ..) => format!("{hours} h {} min", minutes % 60),
        _ => format!("{days} d {} h", hours % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::time;

    #[test]
    fn times_have_two_units() {
        for (seconds, text) in [
            (0, "0 s"),
            (59, "59 s"),
            (60, "1 min 0 s"),
            (3_599, "59 min 59 s"),
            (7_260, "2 h 1 min"),
            (90_000, "1 d 1 h"),
        ] {
            assert_eq!(time(seconds), text);
        }
    }
}
