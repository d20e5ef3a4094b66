//! What the tests that prove share: the bundled requests, and one cache of
//! insecure parameters under the target directory, made when first needed.
#![allow(dead_code, reason = "each test binary uses some of it")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what fails in a test fails the test"
)]

pub(crate) mod device;
pub(crate) mod tiny;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cuzk_core::circuit::Circuit;
use cuzk_core::kinds::{CircuitId, ProofKind, SectorSize};
use cuzk_core::params::{GenerateOptions, ParamCache};
use cuzk_core::{Config, ProofRequest};

pub(crate) fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../data/sector-2kib")
        .join(name)
}

pub(crate) fn bundled_request(kind: ProofKind) -> ProofRequest {
    let json = std::fs::read(data(&format!("{kind}.json"))).unwrap();
    ProofRequest::from_json(&json).unwrap()
}

/// Shared by all test binaries, and kept between runs.
pub(crate) fn param_cache() -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("parameters");
    std::fs::create_dir_all(&directory).unwrap();
    directory
}

pub(crate) fn config() -> Config {
    let mut config = Config::default();
    config.srs.param_cache = param_cache();
    config
}

/// The circuit, with its parameters (seed 0) in the cache.
pub(crate) fn circuit_with_params(kind: ProofKind) -> Arc<Circuit> {
    let id = CircuitId {
        kind,
        sector_size: SectorSize::KiB2,
    };
    let circuit = Circuit::cached(id, &param_cache()).unwrap();
    let cache = ParamCache::new(param_cache());
    let options = GenerateOptions {
        seed: 0,
        acknowledge_insecure: false,
    };
    cache
        .ensure_generated(
            &id.parameter_files().unwrap(),
            id.sector_size.bytes(),
            circuit.program(),
            options,
            |_, _| (),
        )
        .unwrap();
    Arc::new(circuit)
}

/// A folder's own copy of the circuit's parameters.
pub(crate) fn copy_params(kind: ProofKind, folder: &Path) {
    let files = circuit_with_params(kind).id().parameter_files().unwrap();
    for name in [&files.params, &files.vk] {
        std::fs::copy(param_cache().join(name), folder.join(name)).unwrap();
    }
}
