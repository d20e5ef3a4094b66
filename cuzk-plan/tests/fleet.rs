//! Loads on one machine and on many.
#![allow(clippy::unwrap_used, reason = "a failure in a test fails the test")]

use std::fs;
use std::path::Path;
use std::time::Instant;

use cuzk_plan::fleet::simulate_load;
use cuzk_plan::load::Load;
use cuzk_plan::machine::Machine;
use cuzk_plan::report::Report;

fn shipped(name: &str) -> String {
    let configs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs");
    fs::read_to_string(configs.join(name)).unwrap()
}

fn machine(name: &str) -> Machine {
    Machine::parse(name, &shipped(&format!("machines/{name}"))).unwrap()
}

fn load(name: &str) -> Load {
    Load::parse(name, &shipped(&format!("loads/{name}"))).unwrap()
}

#[test]
fn every_shipped_machine_and_load_is_valid() {
    let configs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs");
    let names = |folder: &str| {
        let entries = fs::read_dir(configs.join(folder)).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect::<Vec<_>>()
    };
    for name in names("machines") {
        let machine = machine(&name);
        let report = Report::new(&machine, None).unwrap();
        assert!(!report.capacity.is_empty(), "{name}: {report:?}");
    }
    for name in names("loads") {
        assert!(load(&name).kinds().count() > 0, "{name}");
    }
}

/// The time is printed and not asserted: other programs may have the machine.
#[test]
fn a_day_of_a_thousand_machines_is_simulated() {
    let machine = machine("server-64c-512gib-1gpu.toml");
    let mut load = load("thousand-machines.toml");
    load.days = 1.0;
    let started = Instant::now();
    let outcome = simulate_load(&machine, &load).unwrap();
    let elapsed_s = started.elapsed().as_secs_f64();
    println!("{} proofs in {elapsed_s:.1} s", outcome.proofs.len());
    assert!(outcome.proofs.len() > 1_000_000);
}

#[test]
fn a_load_is_repeatable_and_its_seed_matters() {
    let machine = machine("server-64c-512gib-1gpu.toml");
    let mut load = load("provider.toml");
    let first = simulate_load(&machine, &load).unwrap();
    assert_eq!(first, simulate_load(&machine, &load).unwrap());
    load.seed += 1;
    assert_ne!(first, simulate_load(&machine, &load).unwrap());
}
