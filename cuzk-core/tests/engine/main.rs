//! The engine under more than one job, on good devices and on bad ones.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what fails in a test fails the test"
)]

mod aggregate;
mod batch;
#[path = "../common/mod.rs"]
mod common;
mod daemon;
mod digests;
mod elsewhere;
mod faults;
mod jobs;
mod journal;
mod lines;
mod metrics;
#[cfg(unix)]
mod pipe;
mod replaced;
mod settings;
mod threads;
mod upkeep;
mod urgent;
mod waits;

use std::path::Path;
use std::sync::Arc;

use cuzk_core::circuits;
use cuzk_core::scheduler::priority::Priority;
use cuzk_core::timeline::Stage;
use cuzk_core::{Config, Engine, Error, ProofRequest};
use cuzk_filecoin::ProofKind;
use cuzk_groth16::CircuitForm;
use cuzk_groth16::backend::footprint::{READING_BYTES, circuit_bytes, partition_bytes};
use cuzk_groth16::evaluate::form_bytes_of_circuit;
use cuzk_groth16::params::Shapes;
use cuzk_memory::{Dealloc, ThrottleManner};

use common::BoundedJob as _;
use common::device::{Scripted, cores, engine_on, pool};
use common::tiny;

fn request() -> ProofRequest {
    cuzk_testing::bundled_request(ProofKind::WindowPost)
}

fn engine() -> Engine {
    common::circuit_with_params(ProofKind::WindowPost);
    Engine::start(common::config()).unwrap()
}

#[test]
fn many_jobs_end_with_proofs_and_a_whole_timeline() {
    let engine = engine();
    let jobs: Vec<_> = (0..5).map(|_| engine.submit(&request()).unwrap()).collect();
    for job in &jobs {
        let proof = job.wait_bounded().unwrap();
        assert_eq!(proof.as_bytes().len(), 192);
        assert_eq!(job.progress().partitions_done, 1);
        let stages: Vec<_> = engine
            .timeline()
            .of_job(job.number())
            .iter()
            .map(|span| span.stage)
            .collect();
        for stage in [
            Stage::DecodeWait,
            Stage::Decode,
            Stage::QueueWait,
            Stage::Circuit,
            Stage::Params,
            Stage::Witness,
            Stage::Evaluate,
            Stage::ReadyWait,
            Stage::Prepare,
            Stage::LockWait,
            Stage::Quotient,
            Stage::Msm,
            Stage::Device,
            Stage::FinishWait,
            Stage::BG2,
            Stage::Assemble,
            Stage::Verify,
            Stage::Finish,
        ] {
            assert!(stages.contains(&stage), "{stage} is not in {stages:?}");
        }
    }
    let proofs: Vec<_> = jobs.iter().map(|job| job.wait_bounded().unwrap()).collect();
    assert_ne!(proofs[0], proofs[1], "each proof has randomness of its own");
}

#[test]
fn shutting_down_finishes_what_was_accepted() {
    let engine = engine();
    let jobs: Vec<_> = (0..3).map(|_| engine.submit(&request()).unwrap()).collect();
    engine.shutdown();
    for job in jobs {
        assert!(job.poll().unwrap().is_ok());
    }
}

#[test]
fn dropping_ends_every_job_one_way_or_the_other() {
    let engine = engine();
    let jobs: Vec<_> = (0..20)
        .map(|_| engine.submit(&request()).unwrap())
        .collect();
    drop(engine);
    let outcomes: Vec<_> = jobs.iter().map(|job| job.poll().unwrap()).collect();
    let ended_early = |outcome: &cuzk_core::job::Outcome| matches!(outcome, Err(error) if matches!(**error, Error::ShuttingDown));
    assert!(
        outcomes
            .iter()
            .all(|outcome| outcome.is_ok() || ended_early(outcome))
    );
    assert!(
        outcomes.iter().any(ended_early),
        "twenty proofs do not fit into the time of a drop"
    );
}

#[test]
fn a_full_queue_says_so_and_takes_nothing_in() {
    let engine = engine();
    let request = request();
    let mut jobs = Vec::new();
    let error = loop {
        match engine.submit(&request) {
            Ok(job) => jobs.push(job),
            Err(error) => break error,
        }
        assert!(jobs.len() < 5000, "the queue has no end");
    };
    let Error::Busy { capacity } = error else {
        panic!("{error}")
    };
    assert!(jobs.len() >= capacity);
    drop(engine);
    assert!(jobs.iter().all(|job| job.poll().is_some()));
}

#[test]
fn a_partition_larger_than_the_budget_is_an_error_at_once() {
    let circuit = common::circuit_with_params(ProofKind::WinningPost);
    let mut config = common::config();
    let partition_bytes = partition_bytes(
        &circuit.sizes(),
        &config.cpu_workspace(),
        &Shapes::default(),
    );
    let need_bytes = partition_bytes + circuit_bytes(&circuit.sizes());
    assert!(need_bytes > READING_BYTES, "the circuit can be read");
    config.memory.total_budget_bytes = need_bytes;
    config.memory.safety_margin_bytes = 1;
    let engine = Engine::start(config).unwrap();
    let request = cuzk_testing::bundled_request(ProofKind::WinningPost);
    let error = engine.submit(&request).unwrap().wait_bounded().unwrap_err();
    assert!(matches!(*error, Error::OverBudget(_)), "{error}");
    assert!(error.is_input());
}

/// A partition of a device pays for what it holds on the host there, and not for the
/// workspace of the CPU, which only a dedicated worker takes.
#[test]
fn a_partition_is_charged_what_its_device_says() {
    const HELD_BYTES: u64 = 1 << 20;
    let kind = ProofKind::WinningPost;
    let circuit = common::circuit_with_params(kind);
    let mut config = common::config();
    let workspace = config.cpu_workspace();
    let on_cpu = partition_bytes(&circuit.sizes(), &workspace, &Shapes::default());
    // Enough for the circuit and a device's partition, and not for one of the CPU's.
    let budget = circuit_bytes(&circuit.sizes()) + READING_BYTES + HELD_BYTES;
    assert!(on_cpu > READING_BYTES + HELD_BYTES, "{on_cpu}");
    config.memory.total_budget_bytes = budget;
    config.memory.safety_margin_bytes = 1;
    config.memory.critical_reserve_bytes = 0;
    let request = cuzk_testing::bundled_request(kind);
    let prove = |device: &Arc<Scripted>, priority| {
        let engine = engine_on(&config, &[device]);
        let options = common::urgent(priority);
        engine
            .submit_with(&request, options)
            .unwrap()
            .wait_bounded()
    };
    let holds_little = || Scripted::holding(&config, HELD_BYTES);
    prove(&holds_little(), Priority::Normal).unwrap();
    for (device, priority) in [
        (Scripted::good(&config), Priority::Normal),
        // The critical worker may have to prove the partition itself.
        (holds_little(), Priority::Critical),
    ] {
        let error = prove(&device, priority).unwrap_err();
        assert!(matches!(*error, Error::OverBudget(_)), "{error}");
    }
}

/// Where it is known what a partition needs, the submission is told.
#[test]
fn a_job_larger_than_the_budget_is_refused_where_that_is_known() {
    const KEPT_BYTES: u64 = 4 * READING_BYTES;
    let directory = tempfile::tempdir().unwrap();
    let mut config = tiny::config(directory.path());
    config.memory.total_budget_bytes = 6 * READING_BYTES;
    config.memory.safety_margin_bytes = 1;
    config.memory.critical_reserve_bytes = 3 * READING_BYTES;
    let engine = engine_on(&config, &[&Scripted::keeping(&config, KEPT_BYTES)]);
    let submit = |priority| {
        let job = tiny::job(ProofKind::Porep, 1);
        engine.submit_job(job, common::urgent(priority))
    };
    submit(Priority::Critical).unwrap().wait_bounded().unwrap();
    let error = submit(Priority::Normal).unwrap_err();
    assert!(matches!(error, Error::OverBudget(_)), "{error}");
    // The files may be others by now, so the next is told after they were read.
    let error = submit(Priority::Normal)
        .unwrap()
        .wait_bounded()
        .unwrap_err();
    assert!(matches!(*error, Error::OverBudget(_)), "{error}");
    submit(Priority::Critical).unwrap().wait_bounded().unwrap();
}

/// What is charged once a proof was made with the parameters in `folder` under a budget of so
/// many bytes.
fn charged_after_a_proof(folder: &Path, total_budget_bytes: u64) -> u64 {
    let mut config = common::config();
    config.srs.param_cache = folder.to_owned();
    config.memory.total_budget_bytes = total_budget_bytes;
    config.memory.safety_margin_bytes = 1;
    config.memory.critical_reserve_bytes = 0;
    let engine = Engine::start(config).unwrap();
    let request = cuzk_testing::bundled_request(ProofKind::WinningPost);
    engine.submit(&request).unwrap().wait_bounded().unwrap();
    let memory = engine.status().memory;
    assert_eq!(memory.used_bytes, memory.idle_bytes);
    memory.used_bytes
}

#[test]
fn parameters_are_charged_where_they_fit_beside_a_partition() {
    let kind = ProofKind::WinningPost;
    // Files of its own: multiples beside them would be charged, too, and programs that run
    // beside this one may leave some in the folder that all tests share.
    let folder = tempfile::tempdir().unwrap();
    let circuit = common::circuit_with_params(kind);
    common::copy_params(kind, folder.path());
    let path = |folder| cuzk_testing::circuit_path(kind, folder);
    std::fs::copy(path(&common::param_cache()), path(folder.path())).unwrap();
    let charged = |budget| charged_after_a_proof(folder.path(), budget);
    let file = folder.path().join(cuzk_testing::files(kind).params);
    let file_bytes = file.metadata().unwrap().len();
    let circuit_bytes = circuit_bytes(&circuit.sizes());
    let sums = common::config().cpu_workspace();
    let least = partition_bytes(&circuit.sizes(), &sums, &Shapes::default()) + circuit_bytes + 1;
    assert_eq!(charged(least), circuit_bytes);
    assert_eq!(charged(least + file_bytes - 1), circuit_bytes);
    let with_file = circuit_bytes + file_bytes;
    assert_eq!(charged(least + file_bytes), with_file);
}

#[test]
fn what_a_device_keeps_for_a_circuit_is_charged() {
    const KEPT_BYTES: u64 = 12_345;
    let directory = tempfile::tempdir().unwrap();
    let config = common::tiny::config(directory.path());
    let idle = |kept_bytes| {
        let device = Scripted::keeping(&config, kept_bytes);
        let engine = engine_on(&config, &[&device]);
        let job = common::tiny::job(ProofKind::Porep, 2);
        common::submit(&engine, job).wait_bounded().unwrap();
        let memory = engine.status().memory;
        assert_eq!(memory.used_bytes, memory.idle_bytes);
        memory.idle_bytes
    };
    assert_eq!(idle(KEPT_BYTES), idle(0) + KEPT_BYTES);
}

/// The rows of a plain circuit are memory, too.
#[test]
fn a_plain_circuit_is_charged_and_gives_proofs() {
    let directory = tempfile::tempdir().unwrap();
    let idle = |form| {
        let mut config = tiny::config(directory.path());
        config.synthesis.circuit = form;
        config.pipeline.throttle = true;
        config.pipeline.throttle_manner = ThrottleManner::Yield;
        config.memory.dealloc = Dealloc::Unbounded;
        let engine = engine_on(&config, &[&Scripted::good(&config)]);
        let job = tiny::job(ProofKind::Porep, 2);
        common::submit(&engine, job).wait_bounded().unwrap();
        let memory = engine.status().memory;
        assert_eq!(memory.used_bytes, memory.idle_bytes);
        memory.idle_bytes
    };
    let compiled = idle(CircuitForm::Compiled);
    let circuit = circuits::cached(tiny::id(ProofKind::Porep), directory.path()).unwrap();
    let rows_bytes = form_bytes_of_circuit(&circuit, CircuitForm::Plain);
    assert!(rows_bytes > 0);
    assert_eq!(idle(CircuitForm::Plain), compiled + rows_bytes);
}

/// Whether a file is mapped into this process.
#[cfg(target_os = "linux")]
fn is_mapped(file: &Path) -> bool {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines()
        .any(|line| line.ends_with(file.to_str().unwrap()))
}

/// There is room for what one circuit shares beside a partition, and not for two.
#[test]
#[cfg(target_os = "linux")]
fn a_circuit_that_nobody_uses_makes_room_with_its_parameters() {
    const KEPT_BYTES: u64 = 4 * READING_BYTES;
    let directory = tempfile::tempdir().unwrap();
    let mut config = tiny::config(directory.path());
    config.memory.critical_reserve_bytes = 0;
    config.memory.safety_margin_bytes = 1;
    let engine = |config: &Config| engine_on(config, &[&Scripted::keeping(config, KEPT_BYTES)]);
    let prove = |engine: &Engine, kind| {
        common::submit(engine, tiny::job(kind, 1))
            .wait_bounded()
            .unwrap();
        let memory = engine.status().memory;
        assert_eq!(memory.used_bytes, memory.idle_bytes);
        memory.idle_bytes
    };
    let kinds = [ProofKind::Porep, ProofKind::SnapDeals];
    let [params, others] = kinds.map(|kind| {
        let files = cuzk_testing::files(kind);
        directory.path().join(files.params)
    });
    let shared_bytes = prove(&engine(&config), kinds[0]);
    let id = tiny::id(kinds[0]);
    let circuit = circuits::cached(id, directory.path()).unwrap();
    let own_bytes = partition_bytes(
        &circuit.sizes(),
        &config.cpu_workspace(),
        &Shapes::default(),
    );
    config.memory.total_budget_bytes = own_bytes + shared_bytes + shared_bytes / 2 + 1;
    let engine = engine(&config);
    assert_eq!(prove(&engine, kinds[0]), shared_bytes);
    assert!(is_mapped(&params) && !is_mapped(&others));
    assert_eq!(prove(&engine, kinds[1]), shared_bytes);
    assert!(!is_mapped(&params) && is_mapped(&others));
    // And it comes back.
    prove(&engine, kinds[0]);
}

/// The rows of this circuit, which has a real one's name, are nowhere else.
#[test]
fn what_is_proved_is_the_compiled_circuit_of_the_cache() {
    let directory = tempfile::tempdir().unwrap();
    let config = tiny::config(directory.path());
    let engine = Engine::start(config).unwrap();
    let job = common::submit(&engine, tiny::job(ProofKind::Porep, 1));
    assert_eq!(job.wait_bounded().unwrap().partitions(), 1);
    let real = circuits::compile(tiny::id(ProofKind::Porep)).unwrap();
    let compiled = circuits::cached(tiny::id(ProofKind::Porep), directory.path()).unwrap();
    assert_ne!(compiled.fingerprint(), real.fingerprint());
}

#[test]
fn evaluation_stands_aside_while_the_throttle_is_raised() {
    let kind = ProofKind::WinningPost;
    let circuit = common::circuit_with_params(kind);
    let wait_max = cuzk_memory::wait_max(circuit.program().rows());
    let request = cuzk_testing::bundled_request(kind);
    // A critical job does not stand aside.
    let options = common::urgent(Priority::Normal);
    let evaluate = |throttle: bool| {
        let mut config = common::config();
        config.pipeline.throttle = throttle;
        let pool = pool(&config);
        let device = cores(&pool);
        let resources = Arc::clone(&device.resources);
        let engine = Engine::start_on(config, pool, vec![device]).unwrap();
        // As a b_g2_msm of another partition that does not end would.
        let _raised = resources.raise_throttle();
        let job = engine.submit_with(&request, options.clone()).unwrap();
        job.wait_bounded().unwrap();
        let spans = engine.timeline().of_job(job.number());
        let span = spans.iter().find(|span| span.stage == Stage::Evaluate);
        span.unwrap().stood_aside
    };
    assert!(evaluate(true).unwrap() >= wait_max);
    assert_eq!(evaluate(false), None);
}
