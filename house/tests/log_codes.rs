//! Lines of the log that tell an error have its stable code, so that an operator can look it up
//! in `docs/troubleshooting.md`.
//!
//! The rule holds for the crates that know the codes. There, each `tracing::error!` has the field
//! `code`, and so has each `tracing::warn!` of the engine that has the field `error`.

#![allow(clippy::unwrap_used, reason = "a failure in a test fails the test")]

use std::path::Path;

use house::sources::Sources;
use house::workspace::{source_files, top};
use proc_macro2::{Group, TokenStream, TokenTree};

/// The folders whose lines are looked at.
const ENGINE: &str = "cuzk-core/src";
const DAEMON: &str = "cuzk-server/src";

/// Files with a line of an error that no operator can look up.
const EXCEPTIONS: [(&str, &str); 1] = [(
    "cuzk-core/src/job/outcome_cell.rs",
    "the waker that panicked is that of the program that embeds the engine",
)];

/// A call of `tracing::error!` or `tracing::warn!`.
struct Line {
    is_error: bool,
    arguments: Group,
}

/// Finds the calls, also inside of other calls and blocks.
fn lines(tokens: TokenStream, found: &mut Vec<Line>) {
    let mut last = [const { String::new() }; 4];
    for token in tokens {
        if let TokenTree::Group(group) = &token {
            let level = match &last {
                [colon, first, level, bang] if colon == ":" && first == ":" && bang == "!" => {
                    level.as_str()
                }
                _ => "",
            };
            if matches!(level, "error" | "warn") {
                found.push(Line {
                    is_error: level == "error",
                    arguments: group.clone(),
                });
            }
            lines(group.stream(), found);
        }
        last.rotate_left(1);
        last[3] = token.to_string();
    }
}

impl Line {
    /// Returns true if a field has this name. Texts do not count.
    fn has(&self, field: &str) -> bool {
        let is_it = |token: TokenTree| matches!(token, TokenTree::Ident(name) if name == field);
        self.arguments.stream().into_iter().any(is_it)
    }

    fn needs_code(&self, path: &Path) -> bool {
        self.is_error || path.starts_with(ENGINE) && self.has("error")
    }
}

/// Returns the number of lines without a code in a source.
fn without_code(path: &Path, text: &str) -> usize {
    let mut found = Vec::new();
    lines(text.parse().unwrap(), &mut found);
    let missing = |line: &&Line| line.needs_code(path) && !line.has("code");
    found.iter().filter(missing).count()
}

#[test]
fn a_line_needs_a_code_if_it_tells_an_error() {
    let of = |path: &str, line: &str| without_code(Path::new(path), line);
    assert_eq!(of(ENGINE, "tracing::error!(\"code\")"), 1);
    assert_eq!(of(ENGINE, "f(|| { tracing::warn!(%error, \"x\") })"), 1);
    assert_eq!(of(DAEMON, "tracing::error!(%error, \"x\")"), 1);
    assert_eq!(of(DAEMON, "tracing::warn!(%error, \"x\")"), 0);
    assert_eq!(of(ENGINE, "tracing::error!(%code, %error, \"x\")"), 0);
    assert_eq!(of(ENGINE, "tracing::info!(%error, \"x\")"), 0);
    assert_eq!(of(ENGINE, "tracing::warn!(\"error\")"), 0);
}

#[test]
fn every_line_that_tells_an_error_has_its_code() {
    let top = top();
    let mut wrong = Vec::new();
    for path in source_files(&top).unwrap() {
        let is_of = |folder| path.starts_with(folder);
        let is_rust = path.extension().is_some_and(|extension| extension == "rs");
        if is_rust && (is_of(ENGINE) || is_of(DAEMON)) {
            let name = path.to_str().unwrap();
            let expected = EXCEPTIONS.iter().filter(|(file, _)| *file == name).count();
            let count = without_code(&path, &top.text(&path).unwrap());
            if count != expected {
                wrong.push(format!("{name}: {count} without a code"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
