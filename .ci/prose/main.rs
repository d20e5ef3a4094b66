//! Counts hard sentences in the repository's text and holds the counts to a budget.
//!
//! `prose` prints the counts. It ends with 1 if a count is above `.ci/prose-budget`.
//! `prose --list` also prints each place; `prose --write` lowers the budget to the counts.
//! `docs/contributing.md` lists the rules with an example for each.

mod rules;
mod source;
mod text;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::process::{Command, ExitCode};
use std::{env, fs};

use rules::Rule;
use text::{Class, Passage};

const BUDGET: &str = ".ci/prose-budget";

/// How often each rule is broken in each class of text.
type Counts = BTreeMap<(Class, Rule), usize>;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let is_asked = |name: &str| arguments.iter().any(|argument| argument == name);
    match run(is_asked("--list"), is_asked("--write")) {
        Ok(verdict) => {
            // A reader such as `head` may close the pipe early.
            let _ = writeln!(io::stdout(), "{}", verdict.lines.join("\n"));
            match verdict.is_within {
                true => ExitCode::SUCCESS,
                false => ExitCode::FAILURE,
            }
        }
        Err(problem) => {
            eprintln!("prose: {problem}");
            ExitCode::from(2)
        }
    }
}

/// Checks the repository in the current folder.
fn run(list: bool, write: bool) -> Result<Verdict, String> {
    let mut counts = empty_counts();
    let mut places = Vec::new();
    for path in tracked_files()? {
        // A file that was deleted and not yet committed is still listed.
        let Ok(content) = fs::read_to_string(&path) else {
            continue;
        };
        for passage in source::passages(&path, &content) {
            for (rule, words) in rules::broken(&passage) {
                *counts.entry((passage.class, rule)).or_default() += 1;
                if list {
                    places.push(place(&path, &passage, rule, &words));
                }
            }
        }
    }
    let budget = fs::read_to_string(BUDGET).map_err(|error| format!("{BUDGET}: {error}"))?;
    let budget = parse_budget(&budget)?;
    let mut verdict = compare(&counts, &budget);
    places.append(&mut verdict.lines);
    verdict.lines = places;
    if write && verdict.is_within {
        fs::write(BUDGET, budget_text(&counts)).map_err(|error| format!("{BUDGET}: {error}"))?;
    }
    Ok(verdict)
}

fn place(path: &str, passage: &Passage, rule: Rule, words: &str) -> String {
    let (line, class) = (passage.line, passage.class.name());
    format!("{path}:{line}: {class} {}: {words}", rule.name())
}

/// Lists the files that git tracks or would track.
fn tracked_files() -> Result<Vec<String>, String> {
    let output = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .output()
        .map_err(|error| format!("git ls-files: {error}"))?;
    if !output.status.success() {
        return Err("git ls-files failed; run this in the repository's root".to_owned());
    }
    let names = String::from_utf8_lossy(&output.stdout);
    let mut names: Vec<String> = names.lines().map(str::to_owned).collect();
    names.sort();
    names.dedup();
    Ok(names)
}

fn empty_counts() -> Counts {
    let classes = Class::ALL.into_iter();
    let pairs = classes.flat_map(|class| Rule::ALL.map(|rule| (class, rule)));
    pairs.map(|pair| (pair, 0)).collect()
}

/// Reads lines of the form `class rule count`. A `#` begins a comment.
fn parse_budget(text: &str) -> Result<Counts, String> {
    let mut counts = empty_counts();
    let lines = text.lines().enumerate();
    for (at, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        let entry = parse_entry(line).ok_or_else(|| {
            let at = at + 1;
            format!("{BUDGET}, line {at}: expected `class rule count`, got {line:?}")
        })?;
        counts.insert(entry.0, entry.1);
    }
    Ok(counts)
}

fn parse_entry(line: &str) -> Option<((Class, Rule), usize)> {
    let mut words = line.split_whitespace();
    let (class, rule, count) = (words.next()?, words.next()?, words.next()?);
    let class = Class::ALL.into_iter().find(|known| known.name() == class)?;
    let rule = Rule::ALL.into_iter().find(|known| known.name() == rule)?;
    Some(((class, rule), count.parse().ok()?))
}

fn budget_text(counts: &Counts) -> String {
    let mut text = String::from(
        "# How many hard sentences the text may have: class, rule, count.\n\
         # `visible` is text for users. `code` is every other comment and message.\n\
         # A count may only fall: lower it with `.ci/prose-check --write`.\n",
    );
    for ((class, rule), count) in counts {
        text += &format!("{} {} {count}\n", class.name(), rule.name());
    }
    text
}

struct Verdict {
    /// True if every count is within its budget.
    is_within: bool,
    /// The places and the counts, to be printed.
    lines: Vec<String>,
}

/// Compares the counts with their budget.
fn compare(counts: &Counts, budget: &Counts) -> Verdict {
    let mut lines = Vec::new();
    let mut is_within = true;
    for (&(class, rule), &count) in counts {
        let allowed = budget.get(&(class, rule)).copied().unwrap_or(0);
        let advice = match count.cmp(&allowed) {
            std::cmp::Ordering::Equal => "",
            std::cmp::Ordering::Less => {
                "; it fell: lower the budget with `.ci/prose-check --write`"
            }
            std::cmp::Ordering::Greater => {
                is_within = false;
                "; TOO MANY: see the places with `.ci/prose-check --list`"
            }
        };
        let (class, name) = (class.name(), rule.name());
        lines.push(format!("{class} {name}: {count} of {allowed}{advice}"));
    }
    Verdict { is_within, lines }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(count: usize) -> Counts {
        let mut counts = empty_counts();
        counts.insert((Class::Visible, Rule::ClauseSubject), count);
        counts
    }

    #[test]
    fn a_count_above_its_budget_fails() {
        assert!(!compare(&counts(1), &counts(0)).is_within);
        assert!(compare(&counts(1), &counts(1)).is_within);
    }

    #[test]
    fn a_count_below_its_budget_asks_to_lower_it() {
        let verdict = compare(&counts(1), &counts(2));
        assert!(verdict.is_within);
        assert!(
            verdict
                .lines
                .iter()
                .any(|line| line.contains("lower the budget"))
        );
    }

    #[test]
    fn a_budget_reads_back_as_it_was_written() {
        assert_eq!(parse_budget(&budget_text(&counts(7))), Ok(counts(7)));
        assert!(parse_budget("visible no-such-rule 1").is_err());
        assert!(parse_budget("visible long-sentence many").is_err());
    }

    /// Each rule finds its mannerism in a made-up tree of files.
    #[test]
    fn every_rule_can_fail() {
        let long = "word ".repeat(26);
        let files = [
            (
                "README.md",
                "What is made is kept.\n".to_owned(),
                Rule::ClauseSubject,
            ),
            ("docs/a.md", format!("{long}.\n"), Rule::LongSentence),
            (
                "configs/a.toml",
                "# The sum in G2 is slow.\n".to_owned(),
                Rule::OldName,
            ),
            (
                "cuzk/src/args.rs",
                "/// Whether it is.\nfn f() {}\n".to_owned(),
                Rule::DocstringStart,
            ),
            (
                "a/src/b.rs",
                "#[error(\"who asks waits for it\")]\n".to_owned(),
                Rule::ClauseSubject,
            ),
        ];
        for (path, content, expected) in files {
            let passages = source::passages(path, &content);
            let found: Vec<_> = passages.iter().flat_map(rules::broken).collect();
            assert!(
                found.iter().any(|(rule, _)| *rule == expected),
                "{path}: {found:?}"
            );
            assert!(
                passages
                    .iter()
                    .all(|passage| passage.class == Class::Visible),
                "{path}"
            );
        }
    }
}
