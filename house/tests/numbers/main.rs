//! Each figure of the documents has a command that prints it, in `docs/numbers.md`.

#![allow(clippy::unwrap_used, reason = "a failure in a test fails the test")]

mod commands;
mod figures;
mod pages;
mod table;

use std::collections::BTreeSet;
use std::path::Path;

use house::sources::Sources;
use house::workspace::{source_files, top};

use commands::{is_commands_only, printed, problem_of_cargo};
use figures::says;
use pages::{page_figures, pages};
use table::rows;

#[test]
fn each_figure_of_a_document_has_a_command() {
    let top = top();
    let rows = rows(&top.text(Path::new("docs/numbers.md")).unwrap());
    let all: Vec<_> = pages()
        .iter()
        .flat_map(|page| page_figures(page, &top.text(Path::new(page)).unwrap()))
        .collect();
    let missing: BTreeSet<_> = all
        .iter()
        .filter(|figure| !rows.iter().any(|row| row.has(figure)))
        .collect();
    assert!(missing.is_empty(), "add to docs/numbers.md: {missing:#?}");
    for row in &rows {
        let here: Vec<_> = all.iter().filter(|figure| row.is_about(figure)).collect();
        assert!(!here.is_empty(), "{row:?} has no figures on its page");
        let listed = row.figures.iter().flatten();
        for figure in listed {
            let is_there = here.iter().any(|other| other.text == *figure);
            assert!(is_there, "{}: {figure:?} is gone from the page", row.page);
        }
    }
}

/// Lines of the sources that a command prints have the figure. Scripts, their steps, targets and
/// tests that are named are there.
#[test]
fn each_command_of_a_figure_can_be_run() {
    let top = top();
    let nightly = top.text(Path::new(".ci/nightly")).unwrap();
    let paths = source_files(&top).unwrap();
    let rust = paths
        .iter()
        .filter(|path| path.extension().is_some_and(|end| end == "rs"));
    let files: Vec<_> = rust
        .map(|path| (path.to_str().unwrap().to_owned(), top.text(path).unwrap()))
        .collect();
    for row in rows(&top.text(Path::new("docs/numbers.md")).unwrap()) {
        let commands: Vec<_> = row.commands.split('`').skip(1).step_by(2).collect();
        assert!(
            !commands.is_empty() || row.commands.starts_with("the commands "),
            "{row:?}"
        );
        let all: Option<Vec<_>> = commands
            .iter()
            .map(|command| printed(command, &top))
            .collect();
        if let Some(all) = all.filter(|_| is_commands_only(&row.commands)) {
            for figure in row.figures.iter().flatten() {
                let text = all.join("\n");
                assert!(
                    says(&text, figure),
                    "{}: {figure} is not in: {text}",
                    row.page
                );
            }
        }
        for command in commands {
            let words: Vec<_> = command.split_whitespace().collect();
            let said = printed(command, &top);
            assert!(
                said.is_none_or(|text| !text.is_empty()),
                "{command}: prints nothing"
            );
            if words[0] == "cargo" {
                assert_eq!(problem_of_cargo(command, &files), None, "{command}");
            }
            if words[0].starts_with(".ci/") || words[0].ends_with(".sh") {
                assert!(top.has(Path::new(words[0])), "{command}: no such script");
            }
            if let [".ci/nightly", step] = words[..] {
                let is_there = nightly.contains(&format!("\n        {step})"));
                assert!(is_there, "{command}: no such step");
            }
        }
    }
}
