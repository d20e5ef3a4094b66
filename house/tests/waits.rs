//! A thread that holds a lock waits for rayon by `cuzk_groth16::apart` only. So no other source of
//! the provers and of the engine calls `ThreadPool::install`: nobody has to know who holds what.

#![allow(clippy::unwrap_used, reason = "a failure in a test fails the test")]

use std::collections::BTreeMap;

use house::sources::Sources;
use house::workspace::{source_files, top};
use proc_macro2::{TokenStream, TokenTree};

/// The folders that the rule holds for.
const FOLDERS: [&str; 2] = ["cuzk-core/src", "cuzk-groth16/src"];

/// The source that calls it for all others.
const APART: &str = "cuzk-groth16/src/apart.rs";

/// Counts the calls of a method `install`. Comments and strings do not count.
fn count_installs(tokens: TokenStream) -> usize {
    let (mut count, mut is_after_dot) = (0, false);
    for token in tokens {
        match &token {
            TokenTree::Group(group) => count += count_installs(group.stream()),
            TokenTree::Ident(ident) if is_after_dot && ident == "install" => count += 1,
            _ => {}
        }
        is_after_dot = matches!(&token, TokenTree::Punct(punct) if punct.as_char() == '.');
    }
    count
}

#[test]
fn a_call_of_the_method_counts_and_its_mention_does_not() {
    let text = "// pool.install(\nfn f() { apart::install(&pool, || self.pool.install(|| ())); }";
    assert_eq!(count_installs(text.parse().unwrap()), 1);
    assert_eq!(count_installs("let install = 1;".parse().unwrap()), 0);
}

#[test]
fn threads_wait_for_pools_in_one_source() {
    let top = top();
    let mut calls = BTreeMap::new();
    for path in source_files(&top).unwrap() {
        let is_of_a_folder = FOLDERS.iter().any(|folder| path.starts_with(folder));
        if is_of_a_folder && path.extension().is_some_and(|end| end == "rs") {
            let count = count_installs(top.text(&path).unwrap().parse().unwrap());
            calls.insert(path.to_str().unwrap().to_owned(), count);
        }
    }
    assert!(calls.remove(APART).is_some_and(|count| count > 0));
    calls.retain(|_, count| *count > 0);
    assert!(calls.is_empty(), "call apart::install there: {calls:?}");
}
