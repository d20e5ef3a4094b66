//! The rows of `[srs]`, of `[memory]`, and of the form of the rows that are in memory.

use cuzk_core::config::Devices;
use cuzk_core::scheduler::priority::Priority;
use cuzk_core::{Config, Engine, Error, circuits};
use cuzk_filecoin::ProofKind;
use cuzk_groth16::CircuitForm;
use cuzk_groth16::backend::footprint::READING_BYTES;
use cuzk_groth16::evaluate::form_bytes_of_circuit;

use super::{Case, KIND, Row, has_file, shown};
use crate::common::BoundedJob as _;
use crate::common::device::{Scripted, engine_on};
use crate::common::{self, submit, tiny, urgent, wait_until};
use crate::digests;

pub(super) fn rows() -> Vec<Row> {
    let budgets = ["\"256MiB\"", "\"512MiB\""];
    let margins = ["\"16MiB\"", "\"32MiB\""];
    let reserves = ["\"0B\"", "\"192MiB\""];
    vec![
        Row::does(
            "srs.param_cache",
            ["\"FOLDER/parameters\"", "\"FOLDER/none\""],
            parameters,
            ["found", "missing"],
        ),
        Row::does(
            "srs.multiples",
            ["[\"window-post\"]", "[]"],
            multiples,
            ["made", "not made"],
        ),
        Row::does(
            "srs.check_digests",
            ["true", "false"],
            compared,
            ["compared", "not compared"],
        ),
        Row::does(
            "synthesis.circuit",
            ["\"compiled\"", "\"plain\""],
            form,
            ["compiled", "plain"],
        ),
        Row::does(
            "memory.total_budget",
            budgets,
            budget,
            ["255 MiB", "511 MiB"],
        ),
        Row::does(
            "memory.safety_margin",
            margins,
            margin,
            ["240 MiB", "224 MiB"],
        ),
        Row::does(
            "memory.critical_reserve",
            reserves,
            normal_job,
            ["proved", "over the budget"],
        ),
        Row::does(
            "memory.dealloc",
            ["\"recycle\"", "\"serial\""],
            freed,
            ["kept", "given back"],
        ),
    ]
}

fn parameters(case: &Case) -> String {
    let engine = Engine::start(case.with_tiny()).unwrap();
    let loaded = engine.preload(tiny::id(KIND));
    shown(loaded.is_ok(), ["found", "missing"])
}

/// Tells if an engine has made multiples once it has proved and nothing is left to be made.
/// They are asked for before the proof is begun.
fn multiples(case: &Case) -> String {
    let kind = ProofKind::WindowPost;
    if cuzk_kernels::testing::ifma().is_none() {
        // No engine makes any there.
        let is_asked = !case.config.srs.multiples.is_empty();
        return shown(is_asked, ["made", "not made"]);
    }
    common::copy_params(kind, &case.params());
    let engine = Engine::start(case.config.clone()).unwrap();
    let request = cuzk_testing::bundled_request(kind);
    engine.submit(&request).unwrap().wait_bounded().unwrap();
    let making = || engine.status().making_multiples;
    wait_until("nothing is left to be made", || making().is_empty());
    engine.shutdown();
    let is_made = has_file(&case.params(), "multiples");
    shown(is_made, ["made", "not made"])
}

fn compared(case: &Case) -> String {
    digests::generate(&case.params(), 0);
    let engine = Engine::start(case.config.clone()).unwrap();
    digests::prove(&engine);
    let is_off = digests::state(&engine) == "not_compared";
    shown(!is_off, ["compared", "not compared"])
}

/// The form of the rows that are charged with a circuit and its parameters.
fn form(case: &Case) -> String {
    let config = case.with_tiny();
    let idle_bytes = |config: &Config| {
        let engine = engine_on(config, &[&Scripted::good(config)]);
        submit(&engine, tiny::job(KIND, 1)).wait_bounded().unwrap();
        engine.status().memory.idle_bytes
    };
    let circuit = circuits::cached(tiny::id(KIND), &case.params()).unwrap();
    let mut compiled = config.clone();
    compiled.synthesis.circuit = CircuitForm::Compiled;
    let more_bytes = idle_bytes(&config) - idle_bytes(&compiled);
    let mut forms = CircuitForm::ALL.into_iter();
    let form = forms.find(|form| form_bytes_of_circuit(&circuit, *form) == more_bytes);
    form.unwrap().as_str().to_owned()
}

fn total(config: Config) -> String {
    let engine = engine_on(&config, &[&Scripted::good(&config)]);
    format!("{} MiB", engine.status().memory.total_bytes >> 20)
}

fn budget(case: &Case) -> String {
    let mut config = case.with_tiny();
    config.memory.safety_margin_bytes = 1 << 20;
    total(config)
}

fn margin(case: &Case) -> String {
    let mut config = case.with_tiny();
    config.memory.total_budget_bytes = 256 << 20;
    total(config)
}

/// Tells what becomes of a normal job that fits into the budget, and not beside half of it.
fn normal_job(case: &Case) -> String {
    let mut config = case.with_tiny();
    config.memory.total_budget_bytes = 6 * READING_BYTES;
    config.memory.safety_margin_bytes = 1;
    let engine = engine_on(&config, &[&Scripted::keeping(&config, 4 * READING_BYTES)]);
    let submit = |priority| engine.submit_job(tiny::job(KIND, 1), urgent(priority));
    // Its need is known afterwards.
    submit(Priority::Critical).unwrap().wait_bounded().unwrap();
    match submit(Priority::Normal) {
        Ok(job) => {
            job.wait_bounded().unwrap();
            "proved".to_owned()
        }
        Err(error) => {
            assert!(matches!(error, Error::OverBudget(_)), "{error}");
            "over the budget".to_owned()
        }
    }
}

/// Tells what became of a partition's memory.
fn freed(case: &Case) -> String {
    let kind = ProofKind::WindowPost;
    common::circuit_with_params(kind);
    let mut config = case.config.clone();
    config.srs.param_cache = common::param_cache();
    config.gpus.devices = Devices::Cpu;
    let engine = Engine::start(config).unwrap();
    let request = cuzk_testing::bundled_request(kind);
    engine.submit(&request).unwrap().wait_bounded().unwrap();
    wait_until("it is over", || engine.status().partitions_running == 0);
    let is_kept = engine.status().memory.kept_bytes > 0;
    shown(is_kept, ["kept", "given back"])
}
