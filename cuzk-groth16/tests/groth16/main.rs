//! Files of circuits, parameters and multiples: what is opened is what was written, and
//! nothing else is.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failure here fails the test"
)]

mod bad_multiples;
mod batch;
mod cache;
mod check;
mod circuit_cache;
mod file;
mod multiples;
mod mutated;
mod params;
#[cfg(unix)]
mod real_size;
mod relation;
mod waits;

use std::path::PathBuf;
use std::sync::Arc;

use cuzk_filecoin::ProofKind;
use cuzk_groth16::Circuit;

/// Shared by all test binaries, and kept between runs.
fn param_cache() -> PathBuf {
    cuzk_testing::param_cache(env!("CARGO_TARGET_TMPDIR"))
}

/// The circuit, with its parameters (seed 0) in the cache.
fn circuit_with_params(kind: ProofKind) -> Arc<Circuit> {
    cuzk_testing::circuit_with_params(kind, &param_cache())
}
