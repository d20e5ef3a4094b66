//! Tests that cannot run on a machine: each is named, where the test harness does not keep it back.

use std::io::Write;

/// Writes that a test is skipped, and what the machine lacks, on the standard error. `.ci/run` counts
/// these lines. The harness keeps back what `eprintln!` writes, and not what is written to the stream.
pub fn skipped(needs: &str, test: &str) {
    let line = format!("skipped, it needs {needs}: {test}\n");
    drop(std::io::stderr().write_all(line.as_bytes()));
}
