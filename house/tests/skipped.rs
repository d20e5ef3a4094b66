//! A test that needs instructions asks `cuzk_kernels::testing` for them, which names each test that is
//! skipped. No test looks by itself and ends in silence.

#![allow(clippy::unwrap_used, reason = "a failure in a test fails the test")]

use std::collections::BTreeMap;
use std::path::Path;

use house::sources::Sources;
use house::workspace::{source_files, top};

/// The ways past `cuzk_kernels::testing`. The test harness keeps back the lines of `eprintln!`.
const WAYS: [&str; 7] = [
    "Isa::ifma()",
    "Isa::avx2()",
    "Ifma::detect()",
    "Avx2::detect()",
    "row_bytes(Isa::best()",
    "is_x86_feature_detected!",
    "println!(\"skipped",
];

/// Tests that expect another result without the instructions, or have one case more with them: the
/// number of their questions, and the reason.
const EXCEPTIONS: [(&str, usize, &str); 5] = [
    ("benches/src/bound.rs", 2, "one bound more for each"),
    (
        "cuzk-core/src/engine/workers/simulation/cases/assets.rs",
        1,
        "expects that multiples are not asked for",
    ),
    (
        "cuzk-core/src/engine/workers/simulation/cases/multiples.rs",
        1,
        "expects that no multiples are made",
    ),
    (
        "cuzk-kernels/src/ntt/domain.rs",
        1,
        "a larger size for fast kernels",
    ),
    (
        "cuzk/src/commands/doctor/instructions.rs",
        1,
        "expects another finding",
    ),
];

/// Returns the part of a source that belongs to tests.
fn of_tests<'a>(path: &Path, text: &'a str) -> &'a str {
    let mut parts = path.components().map(|part| part.as_os_str());
    let is_of_tests =
        parts.any(|part| part == "tests" || part == "tests.rs" || part == "simulation");
    if is_of_tests || path.starts_with("cuzk-testing") {
        return text;
    }
    let at = text.find("#[cfg(test)]\nmod tests {");
    at.map_or("", |at| &text[at..])
}

fn count(path: &Path, text: &str) -> usize {
    let text = of_tests(path, text);
    WAYS.iter().map(|way| text.matches(way).count()).sum()
}

#[test]
fn tests_ask_for_instructions_where_a_skip_is_told() {
    let top = top();
    let mut counts = BTreeMap::new();
    for path in source_files(&top).unwrap() {
        let is_rust = path.extension().is_some_and(|extension| extension == "rs");
        if is_rust && path != Path::new("house/tests/skipped.rs") {
            let count = count(&path, &top.text(&path).unwrap());
            counts.insert(path.to_str().unwrap().to_owned(), count);
        }
    }
    for (path, expected, reason) in EXCEPTIONS {
        let count = counts.remove(path);
        assert_eq!(count, Some(expected), "{path}: {reason}");
    }
    counts.retain(|_, count| *count > 0);
    assert!(counts.is_empty(), "ask cuzk_kernels::testing: {counts:?}");
}

#[test]
fn a_question_of_a_test_counts_and_one_of_the_engine_does_not() {
    let engine = "fn f() { Isa::ifma(); }\n";
    let inline = format!("{engine}#[cfg(test)]\nmod tests {{ eprintln!(\"skipped\"); }}");
    let count = |path: &str, text: &str| count(Path::new(path), text);
    assert_eq!(count("a/src/lib.rs", engine), 0);
    assert_eq!(count("a/src/lib.rs", &inline), 1);
    assert_eq!(count("a/tests/b.rs", engine), 1);
    assert_eq!(count("a/src/b/tests.rs", engine), 1);
}
