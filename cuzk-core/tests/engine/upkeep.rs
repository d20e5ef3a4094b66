//! Multiples of bases that are of something else, or not there, and are made meanwhile.

use std::fs;
use std::path::{Path, PathBuf};

use cuzk_core::config::Devices;
use cuzk_core::engine::serve_one_command;
use cuzk_core::scheduler::priority::Priority;
use cuzk_core::timeline::{Span, Stage};
use cuzk_core::{Config, Engine};
use cuzk_filecoin::ProofKind;
use cuzk_groth16::backend::footprint::{READING_BYTES, circuit_bytes, partition_bytes};
use cuzk_groth16::params::{MappedMultiples, Shapes, multiples_path};
use cuzk_kernels::Isa;
use tempfile::TempDir;

use crate::common::BoundedJob as _;
use crate::common::device::{Scripted, engine_on};
use crate::common::{self, urgent, wait_until};

const KIND: ProofKind = ProofKind::WindowPost;

/// A folder of parameters whose multiples are damaged; none on a machine without
/// instructions that use them.
fn damaged() -> Option<(TempDir, PathBuf)> {
    let folder = tempfile::tempdir().unwrap();
    common::copy_params(KIND, folder.path());
    if !common::prepare_params(KIND, folder.path()) {
        return None;
    }
    let files = cuzk_testing::files(KIND);
    let multiples = folder.path().join(files.params).with_extension("multiples");
    let mut bytes = fs::read(&multiples).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&multiples, bytes).unwrap();
    Some((folder, multiples))
}

/// Of a folder to which nobody adds multiples unasked.
fn engine(folder: &Path) -> Engine {
    engine_that_makes(folder, &[])
}

fn engine_that_makes(folder: &Path, multiples: &[ProofKind]) -> Engine {
    Engine::start(config(folder, multiples)).unwrap()
}

fn config(folder: &Path, multiples: &[ProofKind]) -> Config {
    let mut config = Config::default();
    config.srs.param_cache = folder.to_owned();
    config.srs.multiples = multiples.to_vec();
    config.gpus.devices = Devices::Cpu;
    config
}

fn prove(engine: &Engine) {
    let request = cuzk_testing::bundled_request(KIND);
    engine.submit(&request).unwrap().wait_bounded().unwrap();
}

/// Whether whoever opens the multiples of a folder could use them.
fn is_usable(folder: &Path) -> bool {
    let circuit = common::circuit_with_params(KIND);
    let params = cuzk_testing::params_of(KIND, &circuit, folder);
    let (program, densities) = (circuit.program(), circuit.densities());
    let opened = MappedMultiples::open(params.mapped(), program, densities, Isa::best());
    matches!(opened, Ok(Some(_)))
}

/// Asserts that the next proof charges an engine for the multiples that it has made in a
/// folder: it opens them before it gives back the memory for their making.
fn assert_they_come_into_use(engine: &Engine, folder: &Path) {
    wait_until("nothing runs", || engine.status().partitions_running == 0);
    let params = cuzk_testing::params_of(KIND, &common::circuit_with_params(KIND), folder);
    let multiples = multiples_path(params.mapped());
    let file_bytes = fs::metadata(multiples).unwrap().len();
    let charged_bytes = engine.status().memory.used_bytes;
    prove(engine);
    let more_bytes = engine.status().memory.used_bytes - charged_bytes;
    assert!(more_bytes >= file_bytes, "{more_bytes}: they are not used");
}

#[test]
fn multiples_that_are_damaged_are_made_anew_while_others_prove() {
    let Some((folder, multiples)) = damaged() else {
        return;
    };
    let file_bytes = fs::metadata(&multiples).unwrap().len();
    let engine = engine(folder.path());
    prove(&engine);
    wait_until("they are made anew", || is_usable(folder.path()));
    assert_eq!(fs::metadata(&multiples).unwrap().len(), file_bytes);
    assert_they_come_into_use(&engine, folder.path());
    engine.shutdown();
    let entries = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(entries, 4, "parameters, key, circuit and multiples");
}

#[test]
fn an_engine_that_is_to_make_none_leaves_damaged_multiples_alone() {
    let Some((folder, multiples)) = damaged() else {
        return;
    };
    let before = fs::read(&multiples).unwrap();
    let engine = engine_that_makes(folder.path(), &[KIND]);
    serve_one_command(&engine);
    prove(&engine);
    assert!(engine.status().making_multiples.is_empty());
    engine.shutdown();
    assert!(fs::read(&multiples).unwrap() == before);
}

#[test]
fn an_engine_that_ends_leaves_the_file_as_it_was() {
    let Some((folder, multiples)) = damaged() else {
        return;
    };
    let before = fs::read(&multiples).unwrap();
    let entries = || fs::read_dir(folder.path()).unwrap().count();
    let engine = engine(folder.path());
    let request = cuzk_testing::bundled_request(KIND);
    let handle = engine.submit(&request).unwrap();
    // A file that has no name yet: it is in the making, which begins beside the proof.
    wait_until("the making has begun", || entries() == 5);
    drop((engine, handle));
    assert!(fs::read(&multiples).unwrap() == before);
    assert_eq!(entries(), 4, "parameters, key, circuit and multiples");
}

#[test]
fn multiples_that_come_while_the_engine_runs_are_used() {
    let Some((folder, multiples)) = damaged() else {
        return;
    };
    let kept = multiples.with_extension("kept");
    common::prepare_params(KIND, folder.path());
    fs::rename(&multiples, &kept).unwrap();
    let engine = engine(folder.path());
    prove(&engine);
    let charged_bytes = engine.status().memory.used_bytes;
    fs::rename(&kept, &multiples).unwrap();
    wait_until("they are used", || {
        prove(&engine);
        engine.status().memory.used_bytes > charged_bytes
    });
    engine.shutdown();
}

/// Without anybody's preparing: later proofs use what the first one had made.
#[test]
fn multiples_are_made_of_kinds_that_are_to_have_them() {
    if cuzk_kernels::testing::ifma().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    common::copy_params(KIND, folder.path());
    let engine = engine_that_makes(folder.path(), &[KIND]);
    let making = || engine.status().making_multiples;
    let request = cuzk_testing::bundled_request(KIND);
    let first = engine.submit(&request).unwrap();
    wait_until("they are asked for", || making() == ["window-post-2KiB"]);
    first.wait_bounded().unwrap();
    wait_until("they are made", || making().is_empty());
    assert!(is_usable(folder.path()));
    let spans = engine.timeline().spans();
    let making = |span: &&Span| span.stage == Stage::Multiples;
    let span = spans.iter().find(making).expect("the making has a span");
    assert_eq!((span.job, span.partition), (None, None));
    assert_they_come_into_use(&engine, folder.path());
    engine.shutdown();
}

/// They are given up, not waited for, where only critical work may use so much memory: with
/// more of it the same engine makes them.
#[test]
fn multiples_without_room_are_not_waited_for() {
    const KEPT_BYTES: u64 = 1 << 30;
    let Some((folder, multiples)) = damaged() else {
        return;
    };
    let before = fs::read(&multiples).unwrap();
    let mut config = config(folder.path(), &[]);
    let circuit = common::circuit_with_params(KIND);
    let proving = partition_bytes(
        &circuit.sizes(),
        &config.cpu_workspace(),
        &Shapes::default(),
    );
    let least_bytes = KEPT_BYTES + READING_BYTES.max(proving + circuit_bytes(&circuit.sizes()));
    // The reserve is half of it at most.
    assert!(least_bytes < 2 * KEPT_BYTES);
    config.memory.safety_margin_bytes = 1;
    config.memory.total_budget_bytes = least_bytes + 1;
    config.memory.critical_reserve_bytes = least_bytes;
    let prove_and_wait = |config: &Config| {
        let engine = engine_on(config, &[&Scripted::keeping(config, KEPT_BYTES)]);
        let request = cuzk_testing::bundled_request(KIND);
        let job = engine.submit_with(&request, urgent(Priority::Critical));
        job.unwrap().wait_bounded().unwrap();
        // They are asked for before the proof is begun.
        let making = || engine.status().making_multiples;
        wait_until("they are made or given up", || making().is_empty());
        engine.shutdown();
    };
    prove_and_wait(&config);
    assert!(fs::read(&multiples).unwrap() == before);
    config.memory.total_budget_bytes = 3 * KEPT_BYTES;
    config.memory.critical_reserve_bytes = 0;
    prove_and_wait(&config);
    assert!(is_usable(folder.path()));
}

/// Nor is anything left of an attempt.
#[test]
fn multiples_of_other_kinds_are_not_made() {
    let folder = tempfile::tempdir().unwrap();
    common::copy_params(KIND, folder.path());
    let engine = engine_that_makes(folder.path(), &[ProofKind::WinningPost]);
    prove(&engine);
    assert!(engine.status().making_multiples.is_empty());
    engine.shutdown();
    let entries = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(entries, 3, "parameters, key and circuit");
}
