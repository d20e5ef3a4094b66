//! A thread that cannot be started is an error. So no source starts one by a function that panics.

#![allow(clippy::unwrap_used, reason = "a failure in a test fails the test")]

use std::collections::BTreeMap;
use std::path::Path;

use house::sources::Sources;
use house::workspace::{source_files, top};

/// Functions that panic where the system has no thread left. The last one is a bar's, which no test
/// sees without a terminal.
const PANICS: [&str; 4] = [
    "thread::spawn(",
    "scope.spawn(",
    "spawn_blocking(",
    "enable_steady_tick(",
];

/// Returns the number of threads that a source starts so, outside of its tests and comments.
fn count(text: &str) -> usize {
    let text = text.split("\nmod tests {").next().unwrap();
    let code = text.lines().map(|line| line.split("//").next().unwrap());
    let count = |line: &str| PANICS.iter().filter(|call| line.contains(*call)).count();
    code.map(count).sum()
}

/// Returns true for sources of the programs and libraries. Tests have files of their own, too.
fn is_shipped(path: &Path) -> bool {
    let is_of_tests = |part: &str| ["tests", "tests.rs", "simulation", "examples"].contains(&part);
    let mut parts = path
        .components()
        .filter_map(|part| part.as_os_str().to_str());
    let is_for_development = [
        "benches",
        "cuzk-bounded",
        "cuzk-testing",
        "cuzk-fuzz",
        "cuzk-mutants",
        "house",
    ];
    parts.clone().any(|part| part == "src")
        && !parts.any(is_of_tests)
        && !is_for_development
            .iter()
            .any(|folder| path.starts_with(folder))
        && path.extension().is_some_and(|extension| extension == "rs")
}

#[test]
fn a_thread_that_panics_counts_and_one_of_a_test_does_not() {
    assert_eq!(count("fn f() { std::thread::spawn(g); }"), 1);
    assert_eq!(count("scope.spawn(g) // scope.spawn(g)"), 1);
    assert_eq!(count("thread::Builder::new().spawn_scoped(scope, g)"), 0);
    assert_eq!(count("#[cfg(test)]\nmod tests {\nthread::spawn(g);\n}"), 0);
}

#[test]
fn threads_that_cannot_be_started_are_errors() {
    let top = top();
    let mut counts = BTreeMap::new();
    for path in source_files(&top)
        .unwrap()
        .into_iter()
        .filter(|path| is_shipped(path))
    {
        let count = count(&top.text(&path).unwrap());
        counts.insert(path.to_str().unwrap().to_owned(), count);
    }
    assert!(counts.len() > 100, "{}", counts.len());
    counts.retain(|_, count| *count > 0);
    assert!(counts.is_empty(), "use thread::Builder: {counts:?}");
}
