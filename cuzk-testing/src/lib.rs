//! The common part of the tests of several crates: the bundled requests, and one cache of
//! insecure parameters of the smallest circuits. They are made when they are first needed.
//! [`circuits`] are other circuits than Filecoin's. [`simulated`] has proofs that nobody had to
//! prove. [`fuzz`] tries decoders. [`differential`] has the seeds of the tests that compare
//! provers. [`heap`] counts what a test allocates. [`pairs`] compares two ways to make a call.
//! [`python`] has the package of Python. [`circuit_file`] changes the files of compiled circuits.
//! [`own_process`] runs a test in a process of its own. [`pools`] has jobs that share a thread.
//!
//! Not for anything but tests. The invariant: the parameters in a cache are those of seed 0.

#![allow(clippy::unwrap_used, reason = "a failure here fails the test")]

pub mod circuit_file;
pub mod circuits;
pub mod differential;
pub mod heap;
pub mod own_process;
pub mod pairs;
pub mod pools;
pub mod python;
pub mod simulated;
mod skipped;

pub use skipped::skipped;

pub use cuzk_fuzz as fuzz;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cuzk_filecoin::{
    AggregateRequest, CircuitId, ProofKind, ProofRequest, SectorSize, blank, srs_file_name,
};
use cuzk_groth16::Circuit;
use cuzk_groth16::aggregate::{InnerProductSrs, write_new_srs};
use cuzk_groth16::params::{
    GenerateOptions, LoadedParams, ParamCache, ParameterFiles, write_multiples,
};
use tempfile::TempDir;

/// A file of the bundled sector of 2 KiB.
#[must_use]
pub fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../data/sector-2kib")
        .join(name)
}

/// Returns a new folder with these files, such as a system's `proc/cpuinfo`: paths in the
/// folder, each with its text.
#[must_use]
pub fn folder_of(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    folder
}

/// The bundled request of a kind.
#[must_use]
pub fn bundled_request(kind: ProofKind) -> ProofRequest {
    let json = std::fs::read(data(&format!("{kind}.json"))).unwrap();
    ProofRequest::from_json(&json).unwrap()
}

/// bellperson's proof of the bundled request of each kind, in hexadecimal digits, by the
/// kind's name: JSON. The parameters are those of a [`param_cache`], the randomness is
/// fixed.
pub const KNOWN_ANSWERS: &str = include_str!("../data/known-answers.json");

/// bellperson's proof of the bundled PoRep, of [`KNOWN_ANSWERS`].
#[must_use]
pub fn porep_proof() -> Vec<u8> {
    let (_, rest) = KNOWN_ANSWERS.split_once("\"porep\"").unwrap();
    let digits = rest.split('"').nth(1).unwrap().as_bytes();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// A request to aggregate the bundled sector with its [`porep_proof`], `count` times.
#[must_use]
pub fn aggregate_request(count: usize) -> AggregateRequest {
    let request = bundled_request(ProofKind::Porep);
    let mut sectors = AggregateRequest::of(&request, porep_proof()).unwrap();
    for _ in 1..count {
        sectors.push(&request, porep_proof()).unwrap();
    }
    sectors
}

/// Returns a new folder with PoRep's verifying key out of `cache`, and no parameters.
#[must_use]
pub fn folder_with_porep_key(cache: &Path) -> TempDir {
    let _in_the_cache = circuit_with_params(ProofKind::Porep, cache);
    let folder = tempfile::tempdir().unwrap();
    let key = files(ProofKind::Porep).vk;
    std::fs::copy(cache.join(&key), folder.path().join(&key)).unwrap();
    folder
}

/// Writes an insecure SRS for aggregates of up to `proofs` proofs into a folder. The file that
/// is there is replaced, as `cuzk params fetch` does it.
pub fn put_srs(folder: &Path, seed: u64, proofs: usize) {
    let (path, new) = (folder.join(srs_file_name()), folder.join("new.srs"));
    let srs = InnerProductSrs::insecure(seed, proofs).unwrap();
    write_new_srs(&srs, &new).unwrap();
    std::fs::rename(new, path).unwrap();
}

/// The keys of a configuration whose effect the tests of the engine see: `section.key`. The
/// tests of the daemon see that of each other key.
pub const KEYS_OF_THE_ENGINE: [&str; 24] = [
    "gpus.b_g2",
    "gpus.devices",
    "gpus.faults_max",
    "gpus.memory_limit",
    "gpus.rest_s",
    "gpus.stall_s",
    "jobs.journal",
    "jobs.low_patience_s",
    "jobs.normal_patience_s",
    "jobs.queued_partitions",
    "jobs.results_kept",
    "jobs.results_kept_s",
    "memory.critical_reserve",
    "memory.dealloc",
    "memory.safety_margin",
    "memory.total_budget",
    "pipeline.max_batch",
    "pipeline.synthesis_lookahead",
    "pipeline.throttle",
    "pipeline.throttle_manner",
    "srs.check_digests",
    "srs.multiples",
    "srs.param_cache",
    "synthesis.circuit",
];

/// A kind's smallest circuit.
#[must_use]
pub fn id(kind: ProofKind) -> CircuitId {
    CircuitId {
        kind,
        sector_size: SectorSize::KiB2,
    }
}

/// The files of the parameters of a kind's smallest circuit.
#[must_use]
pub fn files(kind: ProofKind) -> ParameterFiles {
    ParameterFiles {
        params: id(kind).params_file_name().unwrap(),
        vk: id(kind).vk_file_name().unwrap(),
    }
}

/// The file of a kind's smallest circuit in the folder `cache`.
#[must_use]
pub fn circuit_path(kind: ProofKind, cache: &Path) -> PathBuf {
    cache.join(id(kind).circuit_file_name().unwrap())
}

/// The cache that all test binaries share, and that is kept between runs. `target_tmpdir`
/// is Cargo's `CARGO_TARGET_TMPDIR`, which only tests are told.
#[must_use]
pub fn param_cache(target_tmpdir: &str) -> PathBuf {
    let directory = Path::new(target_tmpdir).join("parameters");
    std::fs::create_dir_all(&directory).unwrap();
    directory
}

/// A kind's smallest circuit, from the folder `cache` or put there.
#[must_use]
pub fn circuit(kind: ProofKind, cache: &Path) -> Circuit {
    let id = id(kind);
    let compile = || blank::compile(id);
    Circuit::cached(&id.to_string(), &circuit_path(kind, cache), compile).unwrap()
}

/// A kind's smallest circuit, with its parameters (seed 0) in the folder `cache`.
#[must_use]
pub fn circuit_with_params(kind: ProofKind, cache: &Path) -> Arc<Circuit> {
    let circuit = circuit(kind, cache);
    let options = GenerateOptions::default();
    ParamCache::new(cache)
        .ensure_generated(&files(kind), circuit.program(), options, |_, _| ())
        .unwrap();
    Arc::new(circuit)
}

/// Gives `folder` a copy of its own of the circuit's parameters.
pub fn copy_params(kind: ProofKind, cache: &Path, folder: &Path) {
    let _in_the_cache = circuit_with_params(kind, cache);
    let files = files(kind);
    for name in [&files.params, &files.vk] {
        std::fs::copy(cache.join(name), folder.join(name)).unwrap();
    }
}

/// The parameters of a circuit that are in a folder under a kind's name.
#[must_use]
pub fn params_of(kind: ProofKind, circuit: &Circuit, folder: &Path) -> Arc<LoadedParams> {
    let lengths = circuit.query_lengths();
    ParamCache::new(folder)
        .load(&files(kind), &lengths)
        .unwrap()
}

/// Puts multiples of the bases of a circuit's parameters beside those in `folder`. Returns
/// true if this machine has instructions that use them, and reports the test as skipped otherwise.
#[must_use]
#[track_caller]
pub fn prepare_params(kind: ProofKind, cache: &Path, folder: &Path) -> bool {
    let Some(isa) = cuzk_kernels::testing::ifma() else {
        return false;
    };
    let circuit = circuit_with_params(kind, cache);
    let params = params_of(kind, &circuit, folder);
    let (program, densities) = (circuit.program(), circuit.densities());
    let limit = (2, 1 << 30);
    let context = isa.into();
    write_multiples(params.mapped(), program, densities, context, limit, |_| ()).unwrap();
    true
}
