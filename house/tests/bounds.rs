//! A test that waits for what never comes fails, and does not hang: each wait has a bound.
//!
//! A call that waits for ever is made by its twin in `cuzk-bounded`, or in a call of `bounded`. Not
//! found is a loop without a deadline, and a call of the code under test that does not return.

#![allow(clippy::unwrap_used, reason = "a failure in a test fails the test")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use house::modules::Crate;
use house::sources::Sources;
use house::workspace::{members, source_files, top};
use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// Methods without an argument that may wait for ever.
const WAITS: [&str; 5] = ["join", "output", "recv", "wait", "wait_with_output"];

/// Methods that may wait for ever, with whatever argument.
const WAITS_FOR: [&str; 2] = ["block_on", "wait_while"];

/// Functions in whose arguments anything may wait.
const BOUNDS: [&str; 2] = ["bounded", "bounded_by"];

/// Files with as many calls that are no such wait.
const OTHERS: [(&str, usize, &str); 7] = [
    (
        "cuzk-scheduler/tests/model.rs",
        18,
        "loom ends a model in which all threads wait",
    ),
    (
        "cuzk-core/src/engine/workers/simulation/mod.rs",
        1,
        "a long run takes as long as its seeds",
    ),
    (
        "cuzk-groth16/tests/groth16/params.rs",
        1,
        "the output of a circuit",
    ),
    (
        "cuzk-core/tests/documents/programs.rs",
        1,
        "a program of a document, which another test runs",
    ),
    (
        "cuzk-server/src/server/tests.rs",
        1,
        "each mutated call, which takes less than a thread for its bound would",
    ),
    (
        "cuzk-server/tests/http/mutated.rs",
        2,
        "inputs are tried for as long as the run is told",
    ),
    (
        "cuzk/tests/calls/fake.rs",
        1,
        "a server, which serves until its test has ended",
    ),
];

/// Folders whose tests with futures have a bound in each call: `connect` sets it.
const CALLS: [&str; 1] = ["cuzk/tests"];

/// Returns the calls that may wait for ever, by their methods. Comments and strings do not count.
fn waits(tokens: TokenStream) -> Vec<String> {
    let tokens: Vec<_> = tokens.into_iter().collect();
    let is = |at: usize, text: &str| match tokens.get(at) {
        Some(TokenTree::Ident(ident)) => ident == text,
        Some(TokenTree::Punct(punct)) => punct.to_string() == text,
        _ => false,
    };
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let TokenTree::Group(group) = token else {
            continue;
        };
        let name = match at.checked_sub(1).map(|before| &tokens[before]) {
            Some(TokenTree::Ident(ident)) => ident.to_string(),
            _ => String::new(),
        };
        let is_method = at >= 2 && is(at - 2, ".") && group.delimiter() == Delimiter::Parenthesis;
        let is_future = is(at + 1, ".") && is(at + 2, "await");
        let has_no_argument = group.stream().is_empty() && WAITS.contains(&name.as_str());
        if is_method && !is_future && (has_no_argument || WAITS_FOR.contains(&name.as_str())) {
            found.push(name);
        } else if !BOUNDS.contains(&name.as_str()) {
            found.extend(waits(group.stream()));
        }
    }
    found
}

/// Returns what stands in the modules `tests` of a file.
fn tests_within(tokens: TokenStream) -> TokenStream {
    let tokens: Vec<_> = tokens.into_iter().collect();
    let is = |token: &TokenTree, text| token.to_string() == text;
    let bodies = tokens.windows(3).filter_map(|three| match three {
        [module, name, TokenTree::Group(body)] if is(module, "mod") && is(name, "tests") => {
            Some(body.stream())
        }
        _ => None,
    });
    bodies.collect()
}

/// Returns the files that are modules of tests as a whole.
fn files_of_tests() -> BTreeSet<PathBuf> {
    let top = top();
    let mut files = BTreeSet::new();
    for member in members(&top).unwrap() {
        for root in member.roots(&top) {
            let modules = Crate::read(&member.name, &root, &top).unwrap();
            let tests = modules.modules.iter().filter(|m| m.conditions.needs_test());
            let own = tests.filter(|m| modules.modules[m.parent].file != m.file);
            files.extend(own.map(|module| module.file.clone()));
        }
    }
    let is_of_tests = |path: &PathBuf| {
        path.starts_with("cuzk-testing") || path.iter().any(|part| part == "tests")
    };
    files.extend(source_files(&top).unwrap().into_iter().filter(is_of_tests));
    files
}

#[test]
fn waits_of_tests_have_bounds() {
    let (top, whole) = (top(), files_of_tests());
    let mut found = BTreeMap::new();
    for path in source_files(&top).unwrap() {
        if path.extension().is_none_or(|end| end != "rs") {
            continue;
        }
        let tokens: TokenStream = top.text(&path).unwrap().parse().unwrap();
        let tokens = match whole.contains(&path) {
            true => tokens,
            false => tests_within(tokens),
        };
        let calls = waits(tokens);
        if !calls.is_empty() {
            found.insert(path.to_str().unwrap().to_owned(), calls);
        }
    }
    for (path, count, reason) in OTHERS {
        let calls = found.remove(path).unwrap_or_default();
        assert_eq!(calls.len(), count, "{path}: {reason}: {calls:?}");
    }
    assert!(found.is_empty(), "use cuzk-bounded: {found:#?}");
}

#[test]
fn futures_of_tests_have_bounds() {
    let top = top();
    let mut count = 0;
    for path in source_files(&top).unwrap() {
        let is_bounded = CALLS.iter().any(|folder| path.starts_with(folder));
        if is_bounded || path == Path::new("house/tests/bounds.rs") {
            continue;
        }
        let text = top.text(&path).unwrap();
        let tests = text.matches("#[tokio::test").count();
        let bounds = text.matches("Bound::default()").count();
        assert!(tests <= bounds, "begin with cuzk_bounded::Bound: {path:?}");
        count += tests;
    }
    assert!(count > 10, "{count}");
}

#[test]
fn a_wait_without_a_bound_is_found() {
    let found = |text: &str| waits(text.parse().unwrap());
    assert_eq!(found("assert_eq!(x.recv().unwrap(), 1);"), ["recv"]);
    assert_eq!(found("fn f() { thread.join().unwrap() }"), ["join"]);
    assert_eq!(
        found("condition.wait_while(guard, |is| *is)"),
        ["wait_while"]
    );
    assert_eq!(found("on.block_on(async { x.send().await })"), ["block_on"]);
    assert_eq!(found("bounded(|| child.wait()).unwrap()"), [""; 0]);
    assert_eq!(
        found("x.recv().await; x.join(\", \"); // x.recv()"),
        [""; 0]
    );
    assert_eq!(found("x.recv_bounded(); x.wait(handle); wait()"), [""; 0]);
    let file = "fn f() { x.recv() } mod tests { fn g() { y.join() } }";
    assert_eq!(waits(tests_within(file.parse().unwrap())), ["join"]);
}
