//! Which tests are skipped because the processor lacks instructions.
//!
//! For tests of this workspace only. The invariant: a test that is skipped says so on the
//! standard error, by name, where the test harness does not keep it back.

use std::io::Write;
use std::panic::Location;

use crate::Isa;

/// The variable of the environment that makes a missing instruction a failure. Its value is
/// `required`.
const VARIABLE: &str = "CUZK_TEST_IFMA";

/// Returns AVX-512 IFMA for a test that needs it. Without it, writes the name of the test and
/// returns none, and the test ends.
///
/// # Panics
///
/// If the processor lacks the instructions and `CUZK_TEST_IFMA` is `required`.
#[must_use]
#[track_caller]
pub fn ifma() -> Option<Isa> {
    let isa = Isa::ifma();
    report(isa.is_some(), Location::caller());
    isa
}

/// Like [`ifma`], for tests of the kernels themselves.
#[cfg(all(test, target_arch = "x86_64"))]
#[track_caller]
pub(crate) fn token() -> Option<crate::token::Ifma> {
    let token = crate::token::Ifma::detect();
    report(token.is_some(), Location::caller());
    token
}

fn report(is_there: bool, place: &Location<'_>) {
    let is_required = std::env::var_os(VARIABLE).is_some_and(|value| value == "required");
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    if let Some(line) = skipped(is_there, is_required, test, place) {
        // The harness keeps back what `eprintln!` writes, and not what is written to the stream.
        let written = std::io::stderr().write_all(line.as_bytes());
        drop(written);
    }
}

/// Returns the line that reports a test as skipped.
fn skipped(is_there: bool, is_required: bool, test: &str, place: &Location<'_>) -> Option<String> {
    assert!(
        is_there || !is_required,
        "{test} needs AVX-512 IFMA, which this processor lacks, and {VARIABLE} is `required`"
    );
    (!is_there).then(|| format!("skipped, it needs AVX-512 IFMA: {test} ({place})\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_without_its_instructions_is_reported() {
        let place = Location::caller();
        assert_eq!(skipped(true, true, "sums", place), None);
        assert_eq!(skipped(true, false, "sums", place), None);
        let line = skipped(false, false, "sums", place).unwrap();
        assert!(
            line.starts_with("skipped, it needs AVX-512 IFMA: sums ("),
            "{line}"
        );
        assert!(line.contains("testing.rs"), "{line}");
    }

    #[test]
    #[should_panic(expected = "sums needs AVX-512 IFMA")]
    fn where_they_are_required_the_test_fails() {
        let _ = skipped(false, true, "sums", Location::caller());
    }
}
