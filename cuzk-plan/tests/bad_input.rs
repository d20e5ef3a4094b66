//! Bad descriptions and loads are errors that name the file and the key.
#![allow(clippy::unwrap_used, reason = "a failure in a test fails the test")]

use std::path::Path;

use cuzk_fuzz::Corpus;
use cuzk_plan::PlanError;
use cuzk_plan::load::Load;
use cuzk_plan::machine::{Instructions, Machine};
use cuzk_plan::report::Report;
use cuzk_plan::seed::MACHINE;

const LOAD: &str = include_str!("load.toml");

/// A line of the good file, its replacement, and what the error must name.
const MACHINES: [(&str, &str, &str); 26] = [
    ("[cpu]", "others_share = 1.01\n[cpu]", "others_share"),
    (
        "hardware_threads = 192",
        "hardware_threads = 0",
        "cpu.hardware_threads",
    ),
    (
        "hardware_threads = 192",
        "hardware_threads = -2",
        "cpu.hardware_threads",
    ),
    (
        "hardware_threads = 192",
        "hardware_threads = 9223372036854775807",
        "cpu.hardware_threads",
    ),
    (
        "hardware_threads = 192",
        "hardware_threads = 5000",
        "cpu.hardware_threads",
    ),
    (
        "hardware_threads = 192",
        "hardware_threads = \"many\"",
        "hardware_threads",
    ),
    ("hardware_threads = 192", "cores = 192", "cores"),
    ("l3_mib = 384", "l3_mib = nan", "cpu.l3_mib"),
    ("l3_mib = 384", "l3_mib = inf", "cpu.l3_mib"),
    ("l3_mib = 384", "l3_mib = -1", "cpu.l3_mib"),
    (
        "isa = \"scalar\"",
        "isa = \"sse\"",
        "`ifma`, `avx2`, `scalar`",
    ),
    ("isa = \"scalar\"", "isa = true", "isa"),
    ("isa = \"scalar\"", "", "isa"),
    // The key of earlier files, alone and beside the new one.
    ("isa = \"scalar\"", "ifma = true", "cpu.isa in its place"),
    ("isa = \"scalar\"", "ifma = false", "cpu.ifma"),
    (
        "isa = \"scalar\"",
        "isa = \"ifma\"\nifma = true",
        "cpu.ifma",
    ),
    ("total_gib = 755", "total_gib = 1e308", "memory.total_gib"),
    (
        "bandwidth_gb_per_s = 333",
        "bandwidth_gb_per_s = 0",
        "memory.bandwidth_gb_per_s",
    ),
    ("count = 1", "count = 100000", "gpus.count"),
    (
        "pcie_gb_per_s = 55",
        "pcie_gb_per_s = 0",
        "gpus.pcie_gb_per_s",
    ),
    (
        "partition_workers = 10",
        "partition_workers = 0",
        "engine.partition_workers",
    ),
    ("budget_gib = 700", "budget_gib = 7000", "engine.budget_gib"),
    ("dealloc = \"serial\"", "dealloc = \"lazy\"", "lazy"),
    (
        "memory_wait_share = 0.425",
        "memory_wait_share = 2",
        "contention.memory_wait_share",
    ),
    ("[costs.porep]", "[costs.proof]", "proof"),
    ("\"memory.dimm_gib\",", "\"memory.dimms\",", "memory.dimms"),
];

const LOADS: [(&str, &str, &str); 7] = [
    ("machines = 1", "machines = 0", "machines"),
    ("machines = 1", "machines = 4000000000", "machines"),
    ("days = 1", "days = nan", "days"),
    ("days = 1", "days = 0", "days"),
    (
        "proofs_per_day = 100",
        "proofs_per_day = 1e12",
        "proofs_per_day",
    ),
    (
        "proofs_per_day = 100",
        "proofs_per_day = -1",
        "porep.proofs_per_day",
    ),
    ("deadline_s = 43200", "deadline = 43200", "deadline"),
];

fn check<T>(
    good: &str,
    rows: &[(&str, &str, &str)],
    parse: fn(&str, &str) -> Result<T, PlanError>,
) {
    assert!(parse("good.toml", good).is_ok());
    for (line, bad, named) in rows {
        assert!(good.contains(line), "{line}");
        let error = parse("bad.toml", &good.replacen(line, bad, 1))
            .err()
            .unwrap();
        let text = error.to_string();
        assert!(
            text.contains(named) && text.contains("bad.toml"),
            "{bad}: {text}"
        );
    }
    // A file that ends too early is an error or a smaller description.
    for end in 0..good.len() {
        if let Some(part) = good.get(..end) {
            drop(parse("cut.toml", part));
        }
    }
}

#[test]
fn bad_machines_are_told_by_file_and_key() {
    check(MACHINE, &MACHINES, Machine::parse);
}

/// Each name of instructions is read.
#[test]
fn a_machine_names_its_instructions() {
    for isa in Instructions::ALL {
        let line = format!("isa = {:?}", isa.name());
        let text = MACHINE.replacen("isa = \"scalar\"", &line, 1);
        let machine = Machine::parse("good.toml", &text).unwrap();
        assert_eq!(machine.cpu.isa, isa);
        assert_eq!(Instructions::of_name(isa.name()), Some(isa));
        assert!(machine.to_toml().unwrap().contains(&line));
        assert_eq!(Report::new(&machine, None).unwrap().isa, isa);
    }
    assert_eq!(Instructions::of_name("auto"), None);
}

#[test]
fn bad_loads_are_told_by_file_and_key() {
    check(LOAD, &LOADS, Load::parse);
}

/// Costs of nothing and of very much end in a report, not in a panic or a long run.
#[test]
fn extreme_costs_end() {
    for bad in ["0", "1e15"] {
        for key in [
            "synthesis_thread_ns_per_constraint",
            "gpu_kernels_ns_per_point",
        ] {
            let text: Vec<String> = MACHINE
                .lines()
                .map(|line| match line.starts_with(key) {
                    true => format!("{key} = {bad}"),
                    false => line.to_owned(),
                })
                .collect();
            let machine = Machine::parse("extreme.toml", &text.join("\n")).unwrap();
            let load = Load::parse("load.toml", LOAD).unwrap();
            assert!(Report::new(&machine, Some(&load)).is_ok(), "{key} = {bad}");
        }
    }
}

#[test]
fn work_without_memory_or_costs_is_told() {
    let small = MACHINE.replacen("budget_gib = 700", "budget_gib = 60", 1);
    let machine = Machine::parse("small.toml", &small).unwrap();
    let load = Load::parse("load.toml", LOAD).unwrap();
    let error = Report::new(&machine, Some(&load)).unwrap_err().to_string();
    assert!(error.contains("porep") && error.contains("60"), "{error}");
    let posts = LOAD.replacen("[porep]", "[winning-post]", 1);
    let load = Load::parse("load.toml", &posts).unwrap();
    let machine = Machine::parse("seed.toml", MACHINE).unwrap();
    let error = Report::new(&machine, Some(&load)).unwrap_err().to_string();
    assert!(error.contains("costs.winning-post"), "{error}");
}

/// Pieces of a description.
const WORDS: [&[u8]; 7] = [
    b"= nan",
    b"= -1",
    b"= 1e308",
    b"= [[",
    b"\n[cpu]\n",
    b"= true",
    b"= 9223372036854775807",
];

fn corpus(name: &str) -> Corpus {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    Corpus::read(folder.join(name)).with_words(&WORDS)
}

fn is_of_the_input(error: &PlanError) -> bool {
    matches!(error, PlanError::Syntax { .. } | PlanError::Value { .. })
}

/// A machine that is read can be written, and is read again.
#[test]
fn mutated_machines_are_read_or_errors_of_the_input() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/machines");
    let files = std::fs::read_dir(folder).unwrap();
    let mut paths: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    // The order decides which file is mutated when.
    paths.sort();
    let corpus = paths.iter().fold(corpus("machines"), |corpus, path| {
        corpus.with(std::fs::read(path).unwrap())
    });
    let decode = |input: &[u8]| {
        let text = String::from_utf8_lossy(input);
        Machine::parse("test", &text).map(|machine| {
            let written = machine.to_toml().unwrap();
            Machine::parse("test", &written).unwrap();
        })
    };
    corpus.fuzz_decoder("machines", 2_000, decode, is_of_the_input);
}

#[test]
fn mutated_loads_are_read_or_errors_of_the_input() {
    let corpus = corpus("loads").with(LOAD);
    let decode = |input: &[u8]| {
        let text = String::from_utf8_lossy(input);
        Load::parse("test", &text).map(|load| assert!(load.kinds().count() <= 4))
    };
    corpus.fuzz_decoder("loads", 2_000, decode, is_of_the_input);
}
