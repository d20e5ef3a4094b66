//! Each figure of the documents has a command that prints it, in `docs/numbers.md`.

#![allow(clippy::unwrap_used, reason = "a failure in a test fails the test")]

use std::collections::BTreeSet;
use std::path::Path;

use house::sources::Sources;
use house::workspace::top;

/// Units of figures. A number before one of them is a figure.
const UNITS: [&str; 15] = [
    "s", "ms", "µs", "GB", "GiB", "MB", "MiB", "KiB", "min", "%", "times", "minutes", "seconds",
    "hours", "days",
];

/// Sizes of sectors. They are names.
const SECTORS: [&str; 5] = ["2 KiB", "8 MiB", "512 MiB", "32 GiB", "64 GiB"];

/// Pages whose figures have their commands on the page itself, in a form of its own.
const OWN_COMMANDS: [&str; 2] = ["docs/nightly.md", "docs/numbers.md"];

/// The beginnings of commands.
const PROGRAMS: [&str; 10] = [
    "cuzk ",
    "cargo ",
    ".ci/",
    "benches/",
    "grep ",
    "supraseal-sys/",
    "CUZK_",
    "du ",
    "ls ",
    "/usr/bin/time ",
];

/// A figure of a page, in the section of this name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Figure {
    page: String,
    section: String,
    text: String,
}

/// A row of the page: figures of a page or of a section, with commands.
#[derive(Debug)]
struct Row {
    page: String,
    section: Option<String>,
    /// None stands for all.
    figures: Option<BTreeSet<String>>,
    commands: String,
}

impl Row {
    fn is_about(&self, figure: &Figure) -> bool {
        let section = self.section.as_ref();
        self.page == figure.page && section.is_none_or(|section| *section == figure.section)
    }

    fn has(&self, figure: &Figure) -> bool {
        let figures = self.figures.as_ref();
        self.is_about(figure) && figures.is_none_or(|figures| figures.contains(&figure.text))
    }
}

fn is_number(word: &str) -> bool {
    let digits = |byte: u8| byte.is_ascii_digit() || byte == b',' || byte == b'.';
    word.starts_with(|first: char| first.is_ascii_digit()) && word.bytes().all(digits)
}

/// Returns the figures of a line: `5 s`, or `2 to 5 s`.
fn figures(line: &str) -> Vec<String> {
    let clean = |word: &str| {
        let word = word.trim_start_matches(['(', '*', '"', '[', '+', '−']);
        word.trim_end_matches(['.', ',', ';', ':', ')', '*', '"', ']', '?'])
            .to_owned()
    };
    let words: Vec<_> = line.split_whitespace().map(clean).collect();
    let raw: Vec<_> = line.split_whitespace().collect();
    let mut found = Vec::new();
    for (at, unit) in words.iter().enumerate().skip(1) {
        // A number that ends a clause has no unit after it.
        let is_number_before = is_number(&words[at - 1]) && !raw[at - 1].ends_with([',', ';', ')']);
        if !UNITS.contains(&unit.as_str()) || !is_number_before {
            continue;
        }
        let is_range = at >= 3 && words[at - 2] == "to" && is_number(&words[at - 3]);
        let first = if is_range { at - 3 } else { at - 1 };
        let figure = words[first..=at].join(" ");
        if !SECTORS.contains(&figure.as_str()) {
            found.push(figure);
        }
    }
    found
}

/// Returns true if a line has a command for its figures. Most rows of tables have.
fn has_command(line: &str) -> bool {
    let mut quoted = line.split('`').skip(1).step_by(2);
    quoted.any(|text| PROGRAMS.iter().any(|program| text.starts_with(program)))
        || line.contains("| the same")
}

fn slug(heading: &str) -> String {
    let heading = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = heading
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Returns the figures of a page that have no command in their line. Blocks of code are
/// commands and what they print.
fn page_figures(page: &str, text: &str) -> Vec<Figure> {
    let (mut section, mut is_code) = (String::new(), false);
    let mut found = Vec::new();
    for line in text.lines() {
        let is_fence = line.starts_with("```");
        is_code ^= is_fence;
        if is_code || is_fence {
            continue;
        }
        if line.starts_with('#') {
            section = slug(line);
        } else if !has_command(line) {
            found.extend(figures(line).into_iter().map(|text| Figure {
                page: page.to_owned(),
                section: section.clone(),
                text,
            }));
        }
    }
    found
}

fn rows(text: &str) -> Vec<Row> {
    let table = text.lines().skip_while(|line| !line.starts_with("|---"));
    let lines = table.skip(1).take_while(|line| line.starts_with('|'));
    let row = |line: &str| {
        let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [place, figures, commands] = cells[..] else {
            unreachable!("{line}");
        };
        let (page, section) = match place.split_once('#') {
            Some((page, section)) => (page, Some(section.to_owned())),
            None => (place, None),
        };
        let list = || figures.split(", ").map(str::to_owned).collect();
        Row {
            page: page.to_owned(),
            section,
            figures: (figures != "all").then(list),
            commands: commands.to_owned(),
        }
    };
    lines.map(row).collect()
}

fn pages() -> Vec<String> {
    let docs = top().0.join("docs");
    let names = std::fs::read_dir(docs).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let docs = names.filter(|name| name.ends_with(".md"));
    let docs = docs.map(|name| format!("docs/{name}"));
    let mut pages: Vec<_> = ["README.md", "ARCHITECTURE.md"]
        .map(str::to_owned)
        .into_iter()
        .chain(docs)
        .filter(|page| !OWN_COMMANDS.contains(&page.as_str()))
        .collect();
    pages.sort();
    pages
}

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

/// A constant that is printed by `grep` is there, and a script that is named is there.
#[test]
fn each_command_of_a_figure_can_be_run() {
    let top = top();
    for row in rows(&top.text(Path::new("docs/numbers.md")).unwrap()) {
        let commands: Vec<_> = row.commands.split('`').skip(1).step_by(2).collect();
        assert!(
            !commands.is_empty() || row.commands.starts_with("the commands "),
            "{row:?}"
        );
        for command in commands {
            let words: Vec<_> = command.split_whitespace().collect();
            match words[..] {
                ["grep", "-n", pattern, file] => {
                    let text = top.text(Path::new(file)).unwrap();
                    assert!(text.contains(pattern), "{command}: prints nothing");
                }
                [script, ..] if script.starts_with(".ci/") || script.ends_with(".sh") => {
                    assert!(top.has(Path::new(script)), "{command}: no such script");
                }
                _ => {}
            }
        }
    }
}

#[test]
fn figures_are_found_in_prose_and_tables() {
    let found = |line| figures(line);
    assert_eq!(
        found("It took 5 s, or 2 to 3.5 MB (7 %)."),
        ["5 s", "2 to 3.5 MB", "7 %"]
    );
    assert_eq!(found("| witness | 0.16 s and 95 MB |"), ["0.16 s", "95 MB"]);
    assert!(found("A sector of 32 GiB has 10 partitions, of s 2.").is_empty());
    let page = "# T\n\n## A b, c\n5 s\n```\n6 s\n```\n7 s by `cuzk bench x`\n";
    let figures = page_figures("p", page);
    assert_eq!(figures.len(), 1);
    assert_eq!((&*figures[0].section, &*figures[0].text), ("a-b-c", "5 s"));
}
