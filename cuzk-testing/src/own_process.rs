//! Tests that need a process of their own, such as those of a library that reads its settings
//! from the environment once.

use std::ffi::OsStr;
use std::process::Command;

use cuzk_bounded::BoundedCommand;

/// Set where a test is run by [`run_in_own_process`]: the value that it is given.
const GIVEN: &str = "CUZK_TEST_GIVEN";

/// Runs a test of this program in a process of its own, which has these variables beside those
/// of this one. The test is ignored otherwise, and gets `given` from [`given`].
///
/// # Panics
/// If the test fails, or if there is none of this name.
pub fn run_in_own_process(test: &str, given: impl AsRef<OsStr>, variables: &[(&str, &OsStr)]) {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--nocapture"])
        .envs(variables.iter().copied())
        .env(GIVEN, given)
        .output_bounded()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{output:?}"
    );
}

/// Returns what a test was given by [`run_in_own_process`]; none if it was run by its name.
#[must_use]
pub fn given() -> Option<std::ffi::OsString> {
    std::env::var_os(GIVEN)
}
