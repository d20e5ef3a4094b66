//! The tests of the package, which are Python's, with the library that was just built.
//! `CUZK_TEST_PYTHON` is a Python that has the package installed, such as that of a wheel. Then
//! the tests are run with the installed one.

#![allow(clippy::unwrap_used, reason = "a failure in a test fails the test")]

use std::path::Path;
use std::process::Command;

use cuzk_bounded::BoundedCommand;
use cuzk_core::aggregate::{memory_bytes, srs_path};
use cuzk_core::config::{Config, Host};
use cuzk_filecoin::{AggregateRequest, ProofKind};
use cuzk_groth16::aggregate::keys_bytes;
use cuzk_testing::python::{has_python, with_package};

const KIND: ProofKind = ProofKind::WindowPost;

/// Returns the configuration with memory for one aggregation of two sectors at a time.
fn with_memory_for_one(config: String) -> String {
    let parsed = Config::parse(&config, "the test", &Host::detect()).unwrap();
    let one_bytes = memory_bytes(&parsed, &cuzk_testing::aggregate_request(2)).unwrap();
    let total_bytes = keys_bytes(AggregateRequest::PROOFS_MAX) + one_bytes + 1;
    let memory = "safety_margin = \"1B\"\ncritical_reserve = \"0B\"\n";
    format!("{config}[memory]\ntotal_budget = \"{total_bytes}B\"\n{memory}")
}

#[test]
fn the_package_passes_its_tests() {
    let installed = std::env::var_os("CUZK_TEST_PYTHON");
    if installed.is_none() && !has_python() {
        return cuzk_testing::skipped("Python 3.9", "the_package_passes_its_tests");
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    let mut python = match installed {
        Some(installed) => Command::new(installed),
        None => with_package(root, folder.path()),
    };
    let cache = cuzk_testing::param_cache(env!("CARGO_TARGET_TMPDIR"));
    let _in_the_cache = cuzk_testing::circuit_with_params(KIND, &cache);
    let keys = cuzk_testing::folder_with_porep_key(&cache);
    cuzk_testing::put_srs(keys.path(), 3, 2);
    let sectors = folder.path().join("sectors.json");
    std::fs::write(&sectors, cuzk_testing::aggregate_request(2).to_json()).unwrap();
    let config = |cache: &Path| format!("[srs]\nparam_cache = {cache:?}\nmultiples = []\n");
    let piped = cuzk_testing::folder_with_porep_key(&cache);
    let pipe = srs_path(piped.path());
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let output = python
        .arg(root.join("tests/test_cuzk.py"))
        .env(
            "CUZK_TEST_REQUEST",
            cuzk_testing::data(&format!("{KIND}.json")),
        )
        .env("CUZK_TEST_CONFIG", config(&cache))
        .env("CUZK_TEST_SRS_CONFIG", config(keys.path()))
        .env("CUZK_TEST_SECTORS", &sectors)
        .env("CUZK_TEST_PIPE", &pipe)
        .env(
            "CUZK_TEST_PIPE_CONFIG",
            with_memory_for_one(config(piped.path())),
        )
        .env("CUZK_TEST_PAGE", root.join("../docs/embedding.md"))
        .env("FIL_PROOFS_PARAMETER_CACHE", &cache)
        .output_bounded()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("\nOK"), "{text}");
}
