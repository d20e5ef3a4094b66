//! The set-up that several tests of the command line share: the bundled requests, the cache of
//! insecure parameters, and the program.
//!
//! Not their checks. The invariant: the parameters in the cache are those of seed 0.

#![allow(dead_code, reason = "each test program uses some of it")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use cuzk_bounded::BoundedCommand;

/// The variable that names the folder of the parameters.
pub(crate) const CACHE: &str = "FIL_PROOFS_PARAMETER_CACHE";

/// Returns a file of the bundled sector of 2 KiB.
pub(crate) fn data(name: &str) -> PathBuf {
    cuzk_testing::data(name)
}

/// Returns the folder of parameters, which all tests that prove share and which stays between
/// runs.
pub(crate) fn param_cache() -> PathBuf {
    cuzk_testing::param_cache(env!("CARGO_TARGET_TMPDIR"))
}

/// Runs the program with the parameters in a folder.
pub(crate) fn cuzk_in(cache: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cuzk"))
        .args(arguments)
        .env(CACHE, cache)
        .output_bounded()
        .unwrap()
}

/// Makes the parameters of a kind, unless another test has.
pub(crate) fn generate(kind: &str) {
    let generate = ["params", "generate", "--kind", kind];
    let generate = [&generate[..], &["--sector-size", "2KiB"]].concat();
    let made = cuzk_in(&param_cache(), &generate);
    assert!(made.status.success(), "{made:?}");
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
