//! Each table of times, rates or ratios says on which machine it was read. No range is one over
//! machines.
//!
//! Not the truth of that name. The invariant: a name holds for its own section only, so that a new
//! section between two others cannot change the machine of a table.

#![allow(clippy::unwrap_used, reason = "a failure in a test fails the test")]

mod blocks;
mod measured;

use std::path::Path;

use house::sources::Sources;
use house::workspace::top;

use blocks::{Block, Kind, blocks};
use measured::{has_measured, is_row_measured, machines, not_recorded};

/// Pages on which paragraphs and items with a time or a rate need a machine, too.
const PAGES_OF_FIGURES: [&str; 2] = ["README.md", "docs/measured.md"];

/// Tables without a measurement of this project: the beginning of the heading, and the reason.
const NOT_MEASURED: [(&str, &str, &str); 9] = [
    ("benches/README.md", "| stage | bytes moved", "arithmetic"),
    (
        "benches/README.md",
        "| arm | action while",
        "settings of arms",
    ),
    ("docs/cluster.md", "| what happens | effect |", "limits"),
    ("docs/command-line.md", "| key |", "names and limits"),
    ("docs/contributing.md", "| command | use |", "limits"),
    ("docs/nightly.md", "| step | command |", "limits"),
    ("docs/nightly.md", "| decoder |", "hours and counts"),
    (
        "docs/nightly.md",
        "| step | date |",
        "parts, each with its processor",
    ),
    ("docs/plan.md", "| machine | proofs a day", "a model"),
];

/// How often a page says that a model was not recorded. None may be added: `.ci/machine` and the
/// commands print it.
const NOT_RECORDED: [(&str, usize); 2] = [("benches/README.md", 8), ("docs/plan.md", 1)];

/// Pages without measurements of this project: commands of figures, and published figures of another
/// engine.
const NO_MEASUREMENTS: [&str; 2] = ["docs/numbers.md", "docs/seed.md"];

fn pages() -> Vec<String> {
    let docs = std::fs::read_dir(top().0.join("docs")).unwrap();
    let names = docs.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let docs = names
        .filter(|name| name.ends_with(".md"))
        .map(|name| format!("docs/{name}"))
        .filter(|name| !NO_MEASUREMENTS.contains(&name.as_str()));
    let others = ["README.md", "ARCHITECTURE.md", "benches/README.md"];
    let mut pages: Vec<_> = others.map(str::to_owned).into_iter().chain(docs).collect();
    pages.sort();
    pages
}

/// Returns the rows of a table that have a figure and no machine, or more than one. `before` are
/// the machines of the last paragraph of the section that names any.
fn rows_without(table: &Block, before: &[String]) -> Vec<String> {
    let heading = &table.rows[0];
    let in_heading = machines(heading);
    let mut last = match in_heading.len() {
        1 => 1,
        _ => before.len(),
    };
    let mut found = Vec::new();
    for row in &table.rows[1..] {
        let own = machines(row).len();
        // "The same" stands for the machine of the row before. Without a paragraph's machine each
        // row has to say one of both.
        let count = match own {
            0 if before.len() == 1 || in_heading.len() == 1 => 1,
            0 if row.contains("the same") => last,
            _ => own,
        };
        last = count;
        if count != 1 && is_row_measured(heading, row) {
            found.push(format!("line {}: {count} machines: {row}", table.line));
        }
    }
    found
}

/// Returns the rows, and of a page of figures also the texts, whose machine is not said.
fn without_machine(page: &str, text: &str) -> Vec<String> {
    let are_texts_read = PAGES_OF_FIGURES.contains(&page);
    let (mut section, mut before) = (0, Vec::new());
    let mut found = Vec::new();
    for block in blocks(text) {
        if block.section != section {
            (section, before) = (block.section, Vec::new());
        }
        let text = &block.rows[0];
        let own: Vec<_> = machines(text).into_iter().collect();
        match block.kind {
            Kind::Table => {
                let of_page = NOT_MEASURED.iter().filter(|(of, ..)| *of == page);
                if !of_page
                    .into_iter()
                    .any(|(_, start, _)| text.starts_with(start))
                {
                    found.extend(rows_without(&block, &before));
                }
                continue;
            }
            Kind::Paragraph if !own.is_empty() => before.clone_from(&own),
            Kind::Paragraph | Kind::Item => {}
        }
        let known = match block.kind {
            Kind::Item => &own,
            _ => &before,
        };
        if are_texts_read && known.is_empty() && has_measured(text) {
            found.push(format!("line {}: {text}", block.line));
        }
    }
    found
}

#[test]
fn each_table_of_figures_names_its_machine() {
    let top = top();
    let mut found = Vec::new();
    for page in pages() {
        let text = top.text(Path::new(&page)).unwrap();
        let without = without_machine(&page, &text);
        found.extend(without.into_iter().map(|row| format!("{page}, {row}")));
        for (of, start, reason) in NOT_MEASURED {
            let is_there = text.lines().any(|line| line.starts_with(start));
            assert!(
                of != page || is_there,
                "{page}: {start:?} ({reason}) is gone"
            );
        }
        let allowed = NOT_RECORDED.iter().find(|(of, _)| *of == page);
        let allowed = allowed.map_or(0, |(_, count)| *count);
        assert_eq!(not_recorded(&text), allowed, "{page}: models not recorded");
    }
    assert!(found.is_empty(), "say family and model: {found:#?}");
}

#[test]
fn a_table_without_its_machine_is_found() {
    let xeon = "A Xeon (family 6, model 207).\n\n";
    let table = "| a | time |\n|---|---|\n| x | 5 s |\n";
    let count = |text: &str| without_machine("docs/x.md", text).len();
    assert_eq!(count(&format!("{xeon}{table}")), 0);
    assert_eq!(count(table), 1);
    // Neither the section before nor an item of a list says it.
    assert_eq!(count(&format!("{xeon}## B\n\n{table}")), 1);
    assert_eq!(count(&format!("* {xeon}{table}")), 1);
    // Two machines pool the figures.
    let two = "A Xeon (family 6, model 207), then family 25, model 17.\n\n";
    assert_eq!(count(&format!("{two}{table}")), 1);
    let own = "| y; family 25, model 17 | 6 s |\n| the same again | 7 s |\n| z | 8 s |\n";
    assert_eq!(count(&format!("{table}{own}")), 2);
    assert_eq!(count(&format!("{xeon}{table}{own}")), 0);
    let pooled = "| family 25, model 17 and family 6, model 207 | 5 to 6 s |\n";
    assert_eq!(count(&format!("{xeon}{table}{pooled}")), 1);
    assert_eq!(count("| a | b |\n|---|---|\n| x | 5 MB |\n"), 0);
}

#[test]
fn a_text_of_a_page_of_figures_without_its_machine_is_found() {
    let count = |text: &str| without_machine("docs/measured.md", text).len();
    assert_eq!(count("It took 5 s.\n"), 1);
    assert_eq!(
        count("On family 6, model 207 it took 5 s.\n\nThen 6 s.\n"),
        0
    );
    assert_eq!(count("* family 6, model 207: 5 s.\n* 6 s.\n"), 1);
    assert_eq!(count("It has 5 MB.\n"), 0);
}
