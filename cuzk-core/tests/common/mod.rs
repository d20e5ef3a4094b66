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
use std::time::{Duration, Instant};

use cuzk_core::circuit::Circuit;
use cuzk_core::job::{JobHandle, JobOptions};
use cuzk_core::kinds::{CircuitId, Job, ProofKind, SectorSize};
use cuzk_core::params::{
    GenerateOptions, LoadedParams, MappedMultiples, ParamCache, Shapes, write_multiples,
};
use cuzk_core::scheduler::priority::Priority;
use cuzk_core::{Config, Engine, ProofRequest};
use cuzk_kernels::Isa;

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
    // The folder is everybody's, and what is in it is part of what is measured.
    config.srs.multiples = Vec::new();
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
    let options = GenerateOptions::default();
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

/// The parameters of a circuit that are in a folder.
pub(crate) fn params_of(circuit: &Circuit, folder: &Path) -> Arc<LoadedParams> {
    let files = circuit.id().parameter_files().unwrap();
    let lengths = circuit.query_lengths();
    ParamCache::new(folder).load(&files, &lengths).unwrap()
}

/// Puts multiples of the bases of a circuit's parameters beside those in a folder.
/// Whether this machine has instructions that use them.
pub(crate) fn prepare_params(kind: ProofKind, folder: &Path) -> bool {
    let Some(isa) = Isa::ifma() else { return false };
    let circuit = circuit_with_params(kind);
    let params = params_of(&circuit, folder);
    let (program, densities) = (circuit.program(), circuit.densities());
    let limit = (2, 1 << 30);
    write_multiples(
        params.mapped(),
        program,
        densities,
        isa.into(),
        limit,
        |_| (),
    )
    .unwrap();
    true
}

/// In which shapes the multiples are that are beside the parameters in a folder.
pub(crate) fn shapes(kind: ProofKind, folder: &Path) -> Shapes {
    let circuit = circuit_with_params(kind);
    let params = params_of(&circuit, folder);
    let pool = config().synthesis.pool().unwrap();
    let multiples = params.mapped().multiples(&circuit, Isa::best(), &pool);
    let multiples = multiples.usable();
    multiples.map(MappedMultiples::shapes).unwrap_or_default()
}

/// A job of this id.
pub(crate) fn named(id: &str) -> JobOptions {
    JobOptions {
        id: Some(id.to_owned()),
        ..JobOptions::default()
    }
}

/// A job of this priority.
pub(crate) fn urgent(priority: Priority) -> JobOptions {
    JobOptions {
        priority: Some(priority),
        ..JobOptions::default()
    }
}

pub(crate) fn submit(engine: &Engine, job: Arc<dyn Job>) -> JobHandle {
    engine.submit_job(job, JobOptions::default()).unwrap()
}

/// For what takes moments, unless it never comes.
pub(crate) const MOMENTS: Duration = Duration::from_secs(60);

pub(crate) fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < MOMENTS, "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}
