//! Claims of the documents and of comments are no wider than the tests behind them. A test that
//! names an error passes for that one only.

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

/// Returns the value of a constant such as `const ROUNDS: usize = 6;` or `= 1 << 11;`, as the power of
/// two that is shifted, or as the number.
fn number_after(text: &str, start: &str) -> u32 {
    let (_, rest) = text.split_once(start).unwrap();
    let (number, _) = rest.split_once(';').unwrap();
    let number = number.rsplit("<< ").next().unwrap();
    number.trim().parse().unwrap()
}

/// The chance with which the subgroup check overlooks a point is that of its constants.
#[test]
fn the_bound_of_the_subgroup_check_is_that_of_its_constants() {
    let top = top();
    let text = top
        .text(Path::new("cuzk-kernels/src/msm/subgroup.rs"))
        .unwrap();
    let buckets = number_after(&text, "const BUCKETS: usize = 1 ");
    let rounds = number_after(&text, "const ROUNDS: usize = ");
    let bound = format!("at most 2^-{}", buckets * rounds);
    for page in ["docs/command-line.md", "cuzk-kernels/src/msm/subgroup.rs"] {
        let text = top.text(Path::new(page)).unwrap();
        assert!(text.contains(&bound), "{page}: say {bound:?}");
    }
}

/// The page counts the bugs that can be planted.
#[test]
fn as_many_bugs_can_be_planted_as_the_page_says() {
    let top = top();
    let text = top.text(Path::new("cuzk-core/src/planted.rs")).unwrap();
    let (_, rest) = text.split_once("pub(crate) enum Plant {\n").unwrap();
    let (bugs, _) = rest.split_once("\n}").unwrap();
    let bugs = bugs.lines().filter(|line| !line.trim().starts_with("//"));
    assert_eq!(bugs.count(), 15, "change the number of the page, too");
    let page = top.text(Path::new("ARCHITECTURE.md")).unwrap();
    assert!(page.contains("`planted.rs` has fifteen bugs"));
}

/// Returns how often the last arm of a `match` takes any error for the one that an arm before it
/// names: `other => assert!(other.is_err())`.
fn any_error_passes(text: &str) -> usize {
    let words: Vec<_> = text.split_whitespace().collect();
    let line = words.join(" ").replace("assert!( ", "assert!(");
    let arms = line.match_indices(" => assert!(");
    let passes = arms.filter(|(at, arrow)| {
        let name = line[..*at].rsplit([' ', '(']).next().unwrap_or_default();
        line[at + arrow.len()..].starts_with(&format!("{name}.is_err()"))
    });
    passes.count()
}

#[test]
fn an_arm_for_any_error_counts_and_one_for_a_result_does_not() {
    let asserted = "assert!(other.is_err(), \"{other:?}\")";
    assert_eq!(any_error_passes(&format!("other => {asserted},")), 1);
    let broken = asserted.replacen('(', "(\n    ", 1);
    assert_eq!(any_error_passes(&format!("    other => {broken},")), 1);
    assert_eq!(any_error_passes(&format!("Some(_) => {asserted},")), 0);
}

#[test]
fn a_named_error_is_the_only_one_that_passes() {
    let top = top();
    let mut found = Vec::new();
    for path in source_files(&top).unwrap() {
        if path.extension().is_some_and(|end| end == "rs") {
            let count = any_error_passes(&top.text(&path).unwrap());
            found.extend((count > 0).then(|| format!("{}: {count}", path.display())));
        }
    }
    assert!(found.is_empty(), "let another error fail: {found:?}");
}
