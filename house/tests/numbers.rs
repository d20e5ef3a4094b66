//! Each figure of the documents has a command that prints it, in `docs/numbers.md`.

#![allow(clippy::unwrap_used, reason = "a failure in a test fails the test")]

use std::collections::BTreeSet;
use std::path::Path;

use house::sources::Sources;
use house::workspace::{source_files, top};

/// Units of figures, each with its size in seconds, bytes, bytes a second or ones. A number before
/// one of them is a figure.
const UNITS: [(&str, f64); 31] = [
    ("s", 1.0),
    ("seconds", 1.0),
    ("ms", 1e-3),
    ("µs", 1e-6),
    ("ns", 1e-9),
    ("min", 60.0),
    ("minutes", 60.0),
    ("h", 3600.0),
    ("hours", 3600.0),
    ("days", 86_400.0),
    ("bytes", 1.0),
    ("KB", 1e3),
    ("KiB", 1024.0),
    ("MB", 1e6),
    ("MiB", 1_048_576.0),
    ("GB", 1e9),
    ("GiB", 1_073_741_824.0),
    ("Gbit/s", 1.25e8),
    ("%", 0.01),
    ("times", 1.0),
    ("cycles", 1.0),
    ("threads", 1.0),
    ("lines", 1.0),
    ("proofs", 1.0),
    ("partitions", 1.0),
    ("PoSts", 1.0),
    ("PoReps", 1.0),
    ("connections", 1.0),
    ("jobs", 1.0),
    ("faults", 1.0),
    ("messages", 1.0),
];

/// Numbers in words, which count before these units.
const WORDS: [(&str, f64); 14] = [
    ("two", 2.0),
    ("three", 3.0),
    ("four", 4.0),
    ("five", 5.0),
    ("six", 6.0),
    ("seven", 7.0),
    ("eight", 8.0),
    ("nine", 9.0),
    ("ten", 10.0),
    ("twelve", 12.0),
    ("fifteen", 15.0),
    ("twenty", 20.0),
    ("thirty", 30.0),
    ("sixty", 60.0),
];
const UNITS_OF_WORDS: [&str; 4] = ["seconds", "minutes", "hours", "days"];

/// Sizes of sectors, of a number of the field and of a proof. They are names.
const NAMES: [&str; 7] = [
    "2 KiB",
    "8 MiB",
    "512 MiB",
    "32 GiB",
    "64 GiB",
    "32 bytes",
    "192 bytes",
];

/// Pages whose figures have their commands on the page itself, in a form of its own.
const OWN_COMMANDS: [&str; 2] = ["docs/nightly.md", "docs/numbers.md"];

/// The beginnings of commands.
const PROGRAMS: [&str; 11] = [
    "cuzk ",
    "cargo ",
    ".ci/",
    "benches/",
    "grep ",
    "head ",
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

/// Returns the value of a number in words.
fn value_of(word: &str) -> Option<f64> {
    let mut words = WORDS.iter();
    words
        .find(|(name, _)| *name == word)
        .map(|(_, value)| *value)
}

fn is_number(word: &str) -> bool {
    let digits = |byte: u8| byte.is_ascii_digit() || byte == b',' || byte == b'.';
    word.starts_with(|first: char| first.is_ascii_digit()) && word.bytes().all(digits)
}

/// Returns the size of a unit.
fn size_of(unit: &str) -> Option<f64> {
    let mut units = UNITS.iter();
    units.find(|(name, _)| *name == unit).map(|(_, size)| *size)
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
        let before = &words[at - 1];
        let is_word = UNITS_OF_WORDS.contains(&unit.as_str()) && value_of(before).is_some();
        let is_number_before =
            (is_number(before) || is_word) && !raw[at - 1].ends_with([',', ';', ')']);
        if size_of(unit).is_none() || !is_number_before {
            continue;
        }
        let is_range = at >= 3 && words[at - 2] == "to" && is_number(&words[at - 3]);
        let first = if is_range { at - 3 } else { at - 1 };
        let figure = words[first..=at].join(" ");
        if !NAMES.contains(&figure.as_str()) {
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

/// Returns what `grep -n [-A LINES] PATTERN FILE` or `head -n LINES FILE...` prints, and none for
/// another command.
fn printed(command: &str, sources: &dyn Sources) -> Option<String> {
    let words: Vec<_> = command.split_whitespace().collect();
    let (pattern, count, files) = match words[..] {
        ["grep", "-n", "-A", after, pattern, file] => (pattern, after, vec![file]),
        ["grep", "-n", pattern, file] => (pattern, "0", vec![file]),
        ["head", "-n", count, ..] => ("", count, words[3..].to_vec()),
        _ => return None,
    };
    let count: usize = count.parse().unwrap();
    let mut lines = Vec::new();
    for file in files {
        let text = sources.text(Path::new(file)).unwrap();
        let mut left = if pattern.is_empty() { count } else { 0 };
        for line in text.lines() {
            if !pattern.is_empty() && line.contains(pattern) {
                left = count + 1;
            }
            if left > 0 {
                left -= 1;
                lines.push(line.to_owned());
            }
        }
    }
    Some(lines.join("\n"))
}

/// Returns the numbers of a text, and the values of shifts such as `4 << 10`.
fn values(text: &str) -> Vec<f64> {
    let is_of_number = |letter: char| letter.is_ascii_digit() || "._".contains(letter);
    let number = |word: &str| {
        let word = word.trim_matches(|letter| !is_of_number(letter));
        word.replace('_', "").trim_end_matches('.').parse().ok()
    };
    let words: Vec<_> = text.split_whitespace().collect();
    let shifts = words.windows(3).filter_map(|shift| match shift {
        [value, "<<", bits] => {
            let bits: f64 = number(bits)?;
            Some(number(value)? * bits.exp2())
        }
        _ => None,
    });
    let separate = text.split(|letter| !is_of_number(letter));
    separate.filter_map(number).chain(shifts).collect()
}

/// Returns true if a text says each number of a figure, as it is written or in the unit of a source.
fn says(text: &str, figure: &str) -> bool {
    let (numbers, unit) = figure.rsplit_once(' ').unwrap();
    let size = size_of(unit).unwrap();
    let values = values(text);
    let is_said = |number: &str| {
        let parsed = || number.replace(',', "").parse().unwrap();
        let number: f64 = value_of(number).unwrap_or_else(parsed);
        let is_it = |value: &f64| (value / (number * size) - 1.0).abs() < 1e-9;
        values.iter().any(is_it)
    };
    text.contains(figure) || numbers.split(" to ").all(is_said)
}

/// Returns true if a cell has commands only. Other words say what follows from what they print.
fn is_commands_only(cell: &str) -> bool {
    let mut outside = cell.split('`').step_by(2);
    outside.all(|between| matches!(between.trim(), "" | "," | "and"))
}

/// Returns what is wrong with a command of Cargo: it names a target or a test that is not there.
fn problem_of_cargo(command: &str, files: &[(String, String)]) -> Option<String> {
    let words: Vec<_> = command.split_whitespace().collect();
    let folders = [
        ("--test", "tests"),
        ("--bench", "benches"),
        ("--example", "examples"),
    ];
    for pair in words.windows(2) {
        let Some((_, folder)) = folders.iter().find(|(option, _)| *option == pair[0]) else {
            continue;
        };
        let ends = [
            format!("{folder}/{}.rs", pair[1]),
            format!("{folder}/{}/main.rs", pair[1]),
        ];
        let is_it = |path: &str| ends.iter().any(|end| path.ends_with(end.as_str()));
        if !files.iter().any(|(path, _)| is_it(path)) {
            return Some(format!("no {} {}", pair[0], pair[1]));
        }
    }
    // The last word of a run of tests is a part of the names of tests.
    let name = words.last()?;
    if words[1] != "test" || !words.contains(&"--") || !name.contains('_') {
        return None;
    }
    let functions = files.iter().flat_map(|(_, text)| text.split("fn ").skip(1));
    let is_it = |rest: &&str| {
        let named = rest.split('(').next();
        named.is_some_and(|of| of.contains(name))
    };
    let bodies: Vec<_> = functions.filter(is_it).collect();
    let is_silent =
        words.contains(&"--nocapture") && !bodies.iter().any(|body| body.contains("println!"));
    match (bodies.is_empty(), is_silent) {
        (true, _) => Some(format!("no test {name}")),
        (false, true) => Some(format!("the test {name} prints nothing")),
        (false, false) => None,
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

#[test]
fn a_figure_that_a_source_does_not_say_is_found() {
    for (text, right, wrong) in [
        (
            "const LEASE: Duration = Duration::from_secs(30);",
            "30 s",
            "60 s",
        ),
        ("const PEEK_BYTES: usize = 4 << 10;", "4 KiB", "4 MiB"),
        ("const CHANCE_MAX: f64 = 0.05;", "5 %", "50 %"),
        ("    0.001, 1_200.0,", "1 ms", "1.2 s"),
        ("    0.001, 1_200.0,", "20 minutes", "12 minutes"),
        ("# with 24 GiB of memory", "24 GiB", "24 GB"),
        ("Duration::from_secs(300)", "five minutes", "five seconds"),
        (
            "pub const PROOFS_MAX: usize = 1 << 14;",
            "16,384 proofs",
            "16 proofs",
        ),
    ] {
        assert!(says(text, right), "{text}: {right}");
        assert!(!says(text, wrong), "{text}: {wrong}");
    }
}

#[test]
fn a_command_of_cargo_with_a_mistake_is_found() {
    let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
    let files = [
        file(
            "a/tests/kinds/main.rs",
            "#[test]\nfn one_partition() { println!(); }\nfn in_silence() {}",
        ),
        file("a/benches/b.rs", ""),
    ];
    let problem = |command| problem_of_cargo(command, &files);
    assert_eq!(
        problem("cargo test --workspace --test kinds -- --nocapture one_part"),
        None
    );
    assert_eq!(problem("cargo bench -p a --bench b"), None);
    assert!(problem("cargo test --workspace --test kind -- one_part").is_some());
    assert!(problem("cargo test --workspace --test kinds -- two_part").is_some());
    assert!(problem("cargo test --workspace --test kinds -- --nocapture in_silence").is_some());
    assert!(problem("cargo bench --bench c").is_some());
}

#[test]
fn figures_are_found_in_prose_and_tables() {
    let found = |line| figures(line);
    assert_eq!(
        found("It took 5 s, or 2 to 3.5 MB (7 %)."),
        ["5 s", "2 to 3.5 MB", "7 %"]
    );
    assert_eq!(found("| witness | 0.16 s and 95 MB |"), ["0.16 s", "95 MB"]);
    assert_eq!(
        found("A sector of 32 GiB has 10 partitions, of s 2."),
        ["10 partitions"]
    );
    assert_eq!(
        found("It waits for five seconds, in two lines."),
        ["five seconds"]
    );
    let page = "# T\n\n## A b, c\n5 s\n```\n6 s\n```\n7 s by `cuzk bench x`\n";
    let figures = page_figures("p", page);
    assert_eq!(figures.len(), 1);
    assert_eq!((&*figures[0].section, &*figures[0].text), ("a-b-c", "5 s"));
}
