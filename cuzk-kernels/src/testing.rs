//! Which tests are skipped because the processor lacks instructions.
//!
//! For tests of this workspace only. The invariant: a test that is skipped says so on the
//! standard error, by name, where the test harness does not keep it back.

use std::collections::BTreeSet;
use std::io::Write;
use std::panic::Location;
use std::sync::{Mutex, PoisonError};

use crate::Isa;

/// The variable of the environment that makes a missing instruction a failure. Its value is
/// `required`.
const VARIABLE: &str = "CUZK_TEST_IFMA";

/// The instructions of each kind, by the words of a report.
const IFMA: &str = "AVX-512 IFMA";
#[cfg(test)]
const AVX2: &str = "AVX2 with FMA";

/// The tests that were reported.
static TOLD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

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
    report(IFMA, isa.is_some(), Location::caller());
    isa
}

/// Like [`ifma`], for tests of the kernels themselves.
#[cfg(all(test, target_arch = "x86_64"))]
#[track_caller]
pub(crate) fn token() -> Option<crate::token::Ifma> {
    let token = crate::token::Ifma::detect();
    report(IFMA, token.is_some(), Location::caller());
    token
}

/// Like [`token`], for tests of the kernels for AVX2. A processor with AVX-512 IFMA has these
/// instructions, too.
#[cfg(all(test, target_arch = "x86_64"))]
#[track_caller]
pub(crate) fn avx2() -> Option<crate::token::Avx2> {
    let token = crate::token::Avx2::detect();
    report(AVX2, token.is_some(), Location::caller());
    token
}

fn report(instructions: &str, is_there: bool, place: &Location<'_>) {
    let is_required = std::env::var_os(VARIABLE).is_some_and(|value| value == "required");
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    let line = skipped(instructions, is_there, is_required, test, place);
    // A test of random inputs asks for each of them.
    let is_new = |_: &String| {
        let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
        told.insert(test.to_owned())
    };
    if let Some(line) = line.filter(is_new) {
        // The harness keeps back what `eprintln!` writes, and not what is written to the stream.
        let written = std::io::stderr().write_all(line.as_bytes());
        drop(written);
    }
}

/// Returns the line that reports a test as skipped.
fn skipped(
    instructions: &str,
    is_there: bool,
    is_required: bool,
    test: &str,
    place: &Location<'_>,
) -> Option<String> {
    assert!(
        is_there || !is_required,
        "{test} needs {instructions}, which this processor lacks, and {VARIABLE} is `required`"
    );
    (!is_there).then(|| format!("skipped, it needs {instructions}: {test} ({place})\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_without_its_instructions_is_reported() {
        let place = Location::caller();
        for instructions in [IFMA, AVX2] {
            assert_eq!(skipped(instructions, true, true, "sums", place), None);
            assert_eq!(skipped(instructions, true, false, "sums", place), None);
            let line = skipped(instructions, false, false, "sums", place).unwrap();
            let expected = format!("skipped, it needs {instructions}: sums (");
            assert!(line.starts_with(&expected), "{line}");
            assert!(line.contains("testing.rs"), "{line}");
        }
    }

    #[test]
    #[should_panic(expected = "sums needs AVX-512 IFMA")]
    fn where_they_are_required_the_test_fails() {
        let _ = skipped(IFMA, false, true, "sums", Location::caller());
    }
}
