//! A peer in a bench has the memory that ours has.
//!
//! `spmv_parallel` allocates its result, and ours writes vectors that were lent. So no bench calls it,
//! and each calls `spmv_parallel_into`. The tests look at the text of the sources only: a peer that
//! allocates in another way is not found.

#![allow(clippy::unwrap_used, reason = "a failure in a test fails the test")]

use std::path::{Path, PathBuf};

use house::sources::Sources;
use house::workspace::{source_files, top};

/// A function that allocates its result.
const ALLOCATES: &str = "spmv_parallel(";

/// Folders of benches. The paths are those of the workspace.
const BENCHES: [&str; 2] = ["benches", "cuzk/src/bench"];

/// Returns the number of calls outside of comments.
fn count(text: &str) -> usize {
    let code = text.lines().map(|line| line.split("//").next().unwrap());
    code.map(|line| line.matches(ALLOCATES).count()).sum()
}

#[test]
fn a_call_that_allocates_counts_and_one_that_is_lent_does_not() {
    assert_eq!(count("spmv_parallel(a, w, None)?; // spmv_parallel(b)"), 1);
    assert_eq!(count("spmv_parallel_into(a, w, out, &gate, &stop)?;"), 0);
}

#[test]
fn no_peer_of_a_bench_allocates_its_rows() {
    let top = top();
    let is_bench = |path: &PathBuf| BENCHES.iter().any(|folder| path.starts_with(folder));
    let benches: Vec<_> = source_files(&top)
        .unwrap()
        .into_iter()
        .filter(is_bench)
        .collect();
    for looked_at in ["benches/benches/eval.rs", "cuzk/src/bench/eval.rs"] {
        let is_there = benches.iter().any(|path| path == Path::new(looked_at));
        assert!(is_there, "{looked_at} is not among {benches:?}");
    }
    for path in benches {
        let calls = count(&top.text(&path).unwrap());
        assert_eq!(calls, 0, "{}: lend the peer its vectors", path.display());
    }
}
