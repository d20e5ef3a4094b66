//! Unsafe code is in the files of a committed list, each with its reason.

#![allow(clippy::unwrap_used, reason = "a failure in a test fails the test")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use house::exceptions::Exceptions;
use house::sources::Sources;
use house::workspace::{source_files, top};
use proc_macro2::{TokenStream, TokenTree};

/// bindgen writes it.
const GENERATED: &str = "supraseal-sys/src/bindings.rs";

/// Counts the keyword `unsafe`. Comments and strings do not count; the inside of a macro's call
/// does.
fn count_unsafe(tokens: TokenStream) -> usize {
    let count = |token| match token {
        TokenTree::Group(group) => count_unsafe(group.stream()),
        TokenTree::Ident(ident) => usize::from(ident == "unsafe"),
        TokenTree::Punct(_) | TokenTree::Literal(_) => 0,
    };
    tokens.into_iter().map(count).sum()
}

#[test]
fn the_keyword_counts_and_its_mention_does_not() {
    let text = "// unsafe\nfn f() { let s = \"unsafe\"; unsafe_name(); m! { unsafe { g() } } }";
    assert_eq!(count_unsafe(text.parse().unwrap()), 1);
    assert_eq!(
        count_unsafe("unsafe impl Send for T {}".parse().unwrap()),
        1
    );
}

#[test]
fn unsafe_code_is_in_listed_files() {
    let top = top();
    let mut counts = BTreeMap::new();
    for path in source_files(&top).unwrap() {
        let is_rust = path.extension().is_some_and(|extension| extension == "rs");
        if is_rust && path != Path::new(GENERATED) {
            let tokens = top.text(&path).unwrap().parse().unwrap();
            counts.insert(path.to_str().unwrap().to_owned(), count_unsafe(tokens));
        }
    }
    let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("unsafe-files.txt");
    let listed = Exceptions::parse("house/unsafe-files.txt", &fs::read_to_string(list).unwrap());
    let violations = listed.unwrap().violations(0, &counts);
    assert!(violations.is_empty(), "\n{}", violations.join("\n"));
}
