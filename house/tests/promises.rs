//! The tests that ARCHITECTURE.md names exist, and invariants of the sources that no other test holds.
//!
//! Not what the named tests do. The invariant: a named test is run without being asked for.

#![allow(clippy::unwrap_used, reason = "a failure in a test fails the test")]

use std::path::Path;

use house::sources::Sources;
use house::workspace::{source_files, top};

const PAGE: &str = "ARCHITECTURE.md";

/// The heading of the table of invariants that the simulation does not check.
const INVARIANTS: &str = "| invariant | tests |";

/// Crates of the engine, with all that it is made of.
const ENGINE: [&str; 12] = [
    "cuzk-core",
    "cuzk-filecoin",
    "cuzk-files",
    "cuzk-groth16",
    "cuzk-journal",
    "cuzk-kernels",
    "cuzk-memory",
    "cuzk-pce",
    "cuzk-scheduler",
    "cuzk-timeline",
    "cuzk-witness",
    "supraseal-sys",
];

/// Sources of these crates that read environment variables: the engine's, those of the proofs
/// libraries, and two that serve tests only.
const READERS: [&str; 4] = [
    "cuzk-core/src/config/host.rs",
    "cuzk-core/src/engine/workers/simulation/mod.rs",
    "cuzk-filecoin/src/library_settings.rs",
    "cuzk-kernels/src/testing.rs",
];

/// Calls that read environment variables, in Rust and in C++.
const READS: [&str; 3] = ["env::var", "env::{", "getenv("];

/// Returns true if a source has a test of this name that is run without being asked for.
fn has_test(source: &str, name: &str) -> bool {
    let lines: Vec<_> = source.lines().map(str::trim).collect();
    let is_it = |line: &&str| {
        let line = line.strip_prefix("async ").unwrap_or(line);
        let name_on = line
            .strip_prefix("fn ")
            .and_then(|on| on.strip_prefix(name));
        name_on.is_some_and(|rest| rest.starts_with('('))
    };
    let Some(at) = lines.iter().position(is_it) else {
        return false;
    };
    let attributes = lines[..at].iter().rev();
    let mut attributes = attributes.take_while(|line| line.starts_with("#["));
    let is_test = |line: &&str| *line == "#[test]" || line.starts_with("#[tokio::");
    attributes.clone().any(is_test) && !attributes.any(|line| line.starts_with("#[ignore"))
}

/// Returns the tests that a line names: `path.rs::name` in backquotes.
fn named(line: &str) -> Vec<(&str, &str)> {
    let quoted = line.split('`').skip(1).step_by(2);
    let pairs = quoted.filter_map(|text| text.split_once("::"));
    pairs.filter(|(path, _)| path.ends_with(".rs")).collect()
}

/// Returns the names of a page whose test is not there.
fn missing(page: &str, sources: &dyn Sources) -> Vec<String> {
    let all = page.lines().flat_map(named);
    let is_missing = |(path, name): &(&str, &str)| {
        let source = sources.text(Path::new(path));
        !source.is_ok_and(|source| has_test(&source, name))
    };
    let missing = all.filter(is_missing);
    missing
        .map(|(path, name)| format!("{path}::{name}"))
        .collect()
}

/// Returns the rows of a table, without its heading.
fn rows(page: &str, is_heading: impl Fn(&str) -> bool) -> Vec<&str> {
    let lines = page.lines().skip_while(|line| !is_heading(line));
    let table = lines.skip(2).take_while(|line| line.starts_with("| "));
    table.collect()
}

#[test]
fn the_tests_that_the_page_names_exist() {
    let top = top();
    let page = top.text(Path::new(PAGE)).unwrap();
    let missing = missing(&page, &top);
    assert!(missing.is_empty(), "no such tests: {missing:#?}");
    let failures = rows(&page, |line| line.starts_with("| failure |"));
    assert!(failures.len() >= 14, "{failures:#?}");
    for row in failures {
        assert!(!named(row).is_empty(), "no test is named: {row}");
    }
}

/// The simulation asserts the other invariants at each step.
#[test]
fn each_invariant_of_sources_and_files_names_its_tests() {
    let page = top().text(Path::new(PAGE)).unwrap();
    let rows = rows(&page, |line| line == INVARIANTS);
    for invariant in 5..=9 {
        let number = format!("| {invariant}");
        let mut of_it = rows.iter().filter(|row| row.starts_with(&number));
        let is_named = of_it.any(|row| !named(row).is_empty());
        assert!(is_named, "invariant {invariant} names no test");
    }
    for row in rows {
        assert!(!named(row).is_empty(), "no test is named: {row}");
    }
}

#[test]
fn a_test_that_is_missing_or_ignored_is_found() {
    let source = "#[test]\nfn one() {}\n#[test]\n#[ignore]\nfn two() {}\nfn three() {}\n";
    let sources = [(Path::new("a/b.rs").to_owned(), source.to_owned())];
    let sources = sources
        .into_iter()
        .collect::<std::collections::BTreeMap<_, _>>();
    assert!(missing("By `a/b.rs::one`, and `Type::of`.", &sources).is_empty());
    for wrong in ["a/b.rs::two", "a/b.rs::three", "a/b.rs::on", "a/c.rs::one"] {
        assert_eq!(missing(&format!("`{wrong}`"), &sources), [wrong]);
    }
}

#[test]
fn the_engine_reads_the_environment_in_listed_files() {
    let top = top();
    let mut readers = Vec::new();
    for path in source_files(&top).unwrap() {
        let of_engine = ENGINE.iter().any(|name| path.starts_with(name));
        let is_source = path.components().all(|part| {
            let name = part.as_os_str();
            !["tests", "benches", "examples", "build.rs"]
                .iter()
                .any(|other| name == *other)
        });
        if of_engine && is_source {
            let text = top.text(&path).unwrap();
            if READS.iter().any(|read| text.contains(read)) {
                readers.push(path.to_str().unwrap().to_owned());
            }
        }
    }
    readers.sort();
    assert_eq!(readers, READERS, "the engine reads no variable elsewhere");
}
