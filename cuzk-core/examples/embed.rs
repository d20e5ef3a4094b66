//! Proves a sector of this repository, as a program that embeds the engine would.
//! `cargo run --release --example embed -- PROOF` writes the proof to PROOF.

use cuzk_core::circuit::Circuit;
use cuzk_core::kinds::decode;
use cuzk_core::params::{GenerateOptions, ParamCache};
use cuzk_core::{Config, Engine, ProofRequest};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let proof_file = std::env::args_os().nth(1).ok_or("usage: embed PROOF")?;
    let json = include_bytes!("../../data/sector-2kib/winning-post.json");
    let request = ProofRequest::from_json(json)?;
    // Parameters are in FIL_PROOFS_PARAMETER_CACHE. Config::load() reads a file.
    let config = Config::default();

    // A storage provider has the network's parameters; a test makes insecure ones.
    let id = decode(&request)?.circuit();
    let circuit = Circuit::cached(id, &config.srs.param_cache)?;
    let (files, sector_bytes) = (id.parameter_files()?, id.sector_size.bytes());
    let (program, options) = (circuit.program(), GenerateOptions::default());
    let params = ParamCache::new(&config.srs.param_cache);
    params.ensure_generated(&files, sector_bytes, program, options, |_, _| ())?;

    let engine = Engine::start(config)?;
    let job = engine.submit(&request)?;
    // This blocks, and poll() does not. What it returns has been verified.
    let proof = job.wait()?;
    std::fs::write(proof_file, proof.as_bytes())?;
    for span in engine.timeline().of_job(job.number()) {
        println!("{:<12} {:.3} s", span.stage, span.length().as_secs_f64());
    }
    engine.shutdown();
    Ok(())
}
