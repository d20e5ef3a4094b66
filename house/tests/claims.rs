//! Claims of the documents and of comments are no wider than the tests behind them.

#![allow(clippy::unwrap_used, reason = "a failure in a test fails the test")]

use std::path::Path;

use house::sources::Sources;
use house::workspace::{source_files, top};

/// The model of the scheduler, with its bound.
const MODEL: &str = "cuzk-scheduler/tests/model.rs";

/// Words that claim what only a bounded model shows.
const CLAIMS: [&str; 2] = ["nterleaving", "model-checked"];

/// The distance in which the bound has to stand, in letters.
const NEAR: usize = 240;

const NUMBERS: [&str; 7] = ["zero", "one", "two", "three", "four", "five", "six"];

/// Returns the words with which a text may claim something of the model.
fn bound(model: &str) -> String {
    let (_, rest) = model.split_once("preemption_bound = Some(").unwrap();
    let (number, _) = rest.split_once(')').unwrap();
    let number: usize = number.parse().unwrap();
    format!("at most {} preemptions", NUMBERS[number])
}

/// Returns the claims of a text near which the bound does not stand.
fn unbounded(text: &str, bound: &str) -> Vec<String> {
    let marks = |letter: char| "/!#*|".contains(letter);
    let words = text.split_whitespace().map(|word| word.trim_matches(marks));
    let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
    let line = words.join(" ");
    let near = |at: usize| {
        let from = (0..=at.saturating_sub(NEAR))
            .rev()
            .find(|at| line.is_char_boundary(*at));
        let to = (at + NEAR..).find(|at| *at >= line.len() || line.is_char_boundary(*at));
        line[from.unwrap()..to.unwrap().min(line.len())].to_owned()
    };
    let claims = CLAIMS.iter().flat_map(|claim| line.match_indices(claim));
    let around = claims.map(|(at, _)| near(at));
    around.filter(|around| !around.contains(bound)).collect()
}

#[test]
fn interleavings_are_claimed_with_the_bound_of_the_model() {
    let top = top();
    let bound = bound(&top.text(Path::new(MODEL)).unwrap());
    let docs = std::fs::read_dir(top.0.join("docs")).unwrap();
    let docs = docs.map(|entry| {
        entry
            .unwrap()
            .path()
            .strip_prefix(&top.0)
            .unwrap()
            .to_owned()
    });
    let docs = docs.filter(|path| path.extension().is_some_and(|end| end == "md"));
    let pages = [
        "README.md",
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "benches/README.md",
        ".ci/run",
    ];
    let pages = pages.into_iter().map(Into::into).chain(docs);
    let sources = source_files(&top).unwrap().into_iter();
    let sources = sources.filter(|path| path.starts_with("cuzk-scheduler"));
    let mut claims = 0;
    for path in pages.chain(sources) {
        let text = top.text(&path).unwrap();
        claims += CLAIMS
            .iter()
            .map(|claim| text.matches(claim).count())
            .sum::<usize>();
        let unbounded = unbounded(&text, &bound);
        assert!(
            unbounded.is_empty(),
            "{}: say {bound:?}: {unbounded:#?}",
            path.display()
        );
    }
    assert!(claims > 4, "only {claims} claims are found");
}

#[test]
fn a_claim_without_the_bound_is_found() {
    let bound = bound("builder.preemption_bound = Some(3);");
    assert_eq!(bound, "at most three preemptions");
    let good = "/// Every interleaving with at most\n/// three preemptions.";
    assert!(unbounded(good, &bound).is_empty());
    for wrong in [
        "Every interleaving is tried.",
        "interleavings with at most two preemptions",
    ] {
        assert_eq!(unbounded(wrong, &bound).len(), 1, "{wrong}");
    }
}

/// The documents say that unsafe code is where this list says.
#[test]
fn the_documents_name_the_list_of_unsafe_files() {
    let top = top();
    for page in ["ARCHITECTURE.md", "docs/contributing.md"] {
        let text = top.text(Path::new(page)).unwrap();
        assert!(text.contains("house/unsafe-files.txt"), "{page}");
        assert!(
            !text.contains("few, named files"),
            "{page}: the list is not short"
        );
    }
}
