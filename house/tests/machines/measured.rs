//! Figures that depend on the machine, and the machines that a text names.
//!
//! Not the pages that have them. The invariant: bytes, counts and names of sizes do not depend on
//! the machine, and do not count.

use std::collections::BTreeSet;

/// Units of time, of rates and of shares.
const UNITS: [&str; 13] = [
    "s", "ms", "µs", "ns", "min", "minutes", "hours", "cycles", "%", "GB/s", "MB/s", "times",
    "s/proof",
];

/// Words in the heading of a column whose cells are times or ratios without a unit.
const HEADINGS: [&str; 8] = [
    "ratio",
    "s/proof",
    "cycles",
    "combined",
    "new / old",
    "faster",
    "slow-down",
    "alone, s",
];

/// The words with which a text says that the model was not recorded.
const NOT_RECORDED: &str = "model not recorded";

fn clean(word: &str) -> &str {
    let word = word.trim_start_matches(['(', '*', '+', '−', '-', '[']);
    word.trim_end_matches(['.', ',', ';', ':', ')', '*', ']'])
}

fn is_number(word: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_digit() || byte == b',' || byte == b'.';
    word.starts_with(|first: char| first.is_ascii_digit()) && word.bytes().all(is_digit)
}

/// Returns a text without its commands and names in backticks.
fn without_code(text: &str) -> String {
    text.split('`').step_by(2).collect()
}

/// Returns true if a text has a number before a unit of time or of a rate.
pub(crate) fn has_measured(text: &str) -> bool {
    let text = without_code(text);
    let words: Vec<_> = text.split_whitespace().collect();
    let mut pairs = words.windows(2);
    pairs.any(|pair| {
        let ends = pair[0].ends_with([',', ';', ')']);
        is_number(clean(pair[0])) && !ends && UNITS.contains(&clean(pair[1]))
    })
}

fn cells(row: &str) -> Vec<String> {
    let row = without_code(row);
    row.trim_matches('|')
        .split('|')
        .map(|cell| cell.trim().to_owned())
        .collect()
}

/// Returns true if a row of a table has a time, a rate or a ratio. A ratio is a decimal at the
/// beginning of a cell, or a number below a heading that says so.
pub(crate) fn is_row_measured(heading: &str, row: &str) -> bool {
    let headings = cells(heading);
    let is_of_ratios = |at: usize| {
        let heading = headings.get(at);
        heading.is_some_and(|text| HEADINGS.iter().any(|word| text.contains(word)))
    };
    let mut all = cells(row).into_iter().enumerate();
    all.any(|(at, cell)| {
        let first = cell.split_whitespace().next().map(clean);
        let number = first.filter(|word| is_number(word));
        let is_ratio = number.is_some_and(|word| {
            is_of_ratios(at) || word.contains('.') && cell.split_whitespace().count() == 1
        });
        is_ratio || has_measured(&cell)
    })
}

/// Returns the machines that a text names: `family 6, model 207`, or `family 25, model not
/// recorded`.
pub(crate) fn machines(text: &str) -> BTreeSet<String> {
    let words: Vec<_> = text.split_whitespace().collect();
    let line = words.join(" ");
    let is_digit = |letter: char| letter.is_ascii_digit();
    let number = |text: &str| -> String { text.chars().take_while(|c| is_digit(*c)).collect() };
    let places = line.match_indices("family ");
    let named = places.filter_map(|(at, word)| {
        let rest = &line[at + word.len()..];
        let family = number(rest);
        let rest = rest[family.len()..].strip_prefix(", ")?;
        if family.is_empty() {
            return None;
        }
        if rest.starts_with(NOT_RECORDED) {
            return Some(format!("family {family}, {NOT_RECORDED}"));
        }
        let model = number(rest.strip_prefix("model ")?);
        (!model.is_empty()).then(|| format!("family {family}, model {model}"))
    });
    named.collect()
}

/// Returns how often a text says that the model was not recorded.
pub(crate) fn not_recorded(text: &str) -> usize {
    let words: Vec<_> = text.split_whitespace().collect();
    words.join(" ").matches(NOT_RECORDED).count()
}

#[test]
fn times_rates_and_ratios_count() {
    for text in ["took 5 s.", "(+7.2 %)", "3 to 4 µs", "at 276 GB/s"] {
        assert!(has_measured(text), "{text}");
    }
    for text in ["95 MB", "2 cores", "`--limit 5 s`", "in 2026, s is", "s 5"] {
        assert!(!has_measured(text), "{text}");
    }
    let row = |heading, row| is_row_measured(heading, row);
    assert!(row("| a | ratio |", "| x | 14.0 |"));
    assert!(row("| a | ratio |", "| x | 137 |"));
    assert!(row("| a | b |", "| x | **1.06** |"));
    assert!(!row("| a | b |", "| x | 137 |"));
    assert!(!row("| a | b |", "| x | 12.37 GiB |"));
}

#[test]
fn machines_are_found_over_lines() {
    let two =
        machines("Xeon (family\n6, model 207) or family 25, model not\nrecorded, of family 26");
    let two: Vec<_> = two.iter().map(String::as_str).collect();
    assert_eq!(
        two,
        ["family 25, model not recorded", "family 6, model 207"]
    );
}
