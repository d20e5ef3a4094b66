//! Seeds of the tests that prove one thing in several ways and compare the bytes.
//!
//! The invariants:
//!
//! * Without [`CASES`] each run has the same seeds, and their number is fixed.
//! * A seed is printed before it is used, so the last one of a test that failed is known.

use std::ops::Range;

use rand::RngCore;

/// The variable that says the number of cases of each test.
pub const CASES: &str = "CUZK_TEST_DIFFERENTIAL";

/// The variable that says the first seed.
pub const SEED: &str = "CUZK_TEST_DIFFERENTIAL_SEED";

fn number(name: &str) -> Option<u64> {
    let number = std::env::var(name).ok()?;
    Some(number.parse().unwrap())
}

/// Returns true if [`CASES`] asks for the long form of the tests.
#[must_use]
pub fn is_long() -> bool {
    number(CASES).is_some()
}

/// Returns the seeds of a test that has so many in an ordinary run.
///
/// A run of the long form begins elsewhere each time, so that nightly runs add up.
///
/// # Panics
/// If a variable is not a number.
#[must_use]
pub fn seeds(ordinary: u64) -> Range<u64> {
    let cases = number(CASES);
    let drawn = || cases.map_or(0, |_| rand::thread_rng().next_u64() >> 1);
    let first = number(SEED).unwrap_or_else(drawn);
    first..first + cases.unwrap_or(ordinary)
}

/// Says how a seed is run again.
#[must_use]
pub fn again(seed: u64, test: &str) -> String {
    format!(
        "run it again with {SEED}={seed} {CASES}=1 cargo test --release --workspace {test} -- \
         --nocapture"
    )
}
