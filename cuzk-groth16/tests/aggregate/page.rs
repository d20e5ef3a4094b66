//! The program that the documentation of the module shows. It is compiled there, and is run here.

use std::error::Error;

use bellperson::groth16::Proof;
use blstrs::Bls12;
use cuzk_groth16::aggregate::{
    AggregateVersion, AggregationKey, Claim, open_srs, verify_bytes, write_new_srs,
};
use cuzk_testing::own_process::{given, run_in_own_process};

use crate::proofs::Proofs;
use crate::srs;

fn example(proofs: Vec<Proof<Bls12>>) -> Result<(), Box<dyn Error>> {
    use cuzk_groth16::aggregate::{AggregateVersion, AggregationKey, aggregate, open_srs};
    use cuzk_kernels::Isa;

    let srs = open_srs("v28-fil-inner-product-v1.srs".as_ref(), proofs.len())?;
    let key = AggregationKey::new(&srs, proofs.len())?;
    let aggregate = aggregate(Isa::best(), &key, AggregateVersion::V2, b"inputs", &proofs)?;
    std::fs::write("aggregate.bin", aggregate.to_bytes()?)?;
    Ok(())
}

/// Returns the lines of a text that a reader sees as a program, without indentation.
fn lines<'a>(text: &'a str, mark: &str) -> Vec<&'a str> {
    let lines = text.lines().map(|line| line.trim_start());
    let lines = lines.map(|line| line.strip_prefix(mark).unwrap_or(line).trim());
    lines
        .filter(|line| !line.is_empty() && !line.starts_with("# "))
        .collect()
}

#[test]
fn the_program_of_the_module_is_the_one_above() {
    let module = include_str!("../../src/aggregate/mod.rs");
    let (_, shown) = module.split_once("```no_run\n").unwrap();
    let (shown, _) = shown.split_once("//! ```").unwrap();
    let (_, here) = include_str!("page.rs")
        .split_once("Box<dyn Error>> {\n")
        .unwrap();
    let (here, _) = here.split_once("    Ok(())").unwrap();
    assert_eq!(lines(shown, "//!"), lines(here, "//!"));
}

#[test]
#[ignore = "it is run in a process of its own"]
fn in_its_own_process() {
    let Some(folder) = given() else { return };
    std::env::set_current_dir(folder).unwrap();
    let path = "v28-fil-inner-product-v1.srs".as_ref();
    write_new_srs(&srs(), path).unwrap();
    let proofs = Proofs::new(4);
    example(proofs.proofs.clone()).unwrap();
    let bytes = std::fs::read("aggregate.bin").unwrap();
    let key = AggregationKey::new(&open_srs(path, 4).unwrap(), 4).unwrap();
    let claim = Claim {
        verifying_key: &proofs.key,
        version: AggregateVersion::V2,
        included: b"inputs",
        inputs: &proofs.inputs,
    };
    verify_bytes(&key, claim, bytes).unwrap();
}

#[test]
fn the_program_of_the_module_aggregates() {
    let folder = tempfile::tempdir().unwrap();
    run_in_own_process("page::in_its_own_process", folder.path(), &[]);
}
