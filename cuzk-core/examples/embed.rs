//! Proves a sector of this repository, as a program that embeds the engine would.
//! `cargo run --release --example embed -- PROOF` writes the proof to PROOF.

use std::time::Duration;

use cuzk_core::circuits;
use cuzk_core::{Config, Engine, JobHandle, JobOptions, ProofRequest};
use cuzk_filecoin::decode;
use cuzk_groth16::params::{GenerateOptions, ParamCache};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let proof_file = std::env::args_os().nth(1).ok_or("usage: embed PROOF")?;
    let json = include_bytes!("../../data/sector-2kib/winning-post.json");
    let request = ProofRequest::from_json(json)?;
    // Parameters are in FIL_PROOFS_PARAMETER_CACHE. Config::load() reads a file.
    let config = Config::default();
    make_parameters(&request, &config)?;

    let engine = Engine::start(config)?;
    let job = submit(&engine, &request)?;
    // `job.await` is the same in async code, on any executor. The job goes on without its
    // handle; `job.cancel()` ends it. What it returns has been verified.
    let proof = loop {
        if let Some(outcome) = job.wait_for(Duration::from_secs(1)) {
            break outcome?;
        }
        let progress = job.progress();
        let (done, all) = (progress.partitions_done, progress.partitions);
        println!("{done} of {all} partitions are proved");
    };
    std::fs::write(proof_file, proof.as_bytes())?;
    for span in engine.timeline().of_job(job.number()) {
        println!("{:<12} {:.3} s", span.stage, span.length().as_secs_f64());
    }
    // With a journal what is left goes on at the next start; shutdown() waits for all.
    for job in engine.shutdown_within(Duration::from_secs(60)) {
        println!("{} was not proved", job.circuit());
    }
    Ok(())
}

fn submit(engine: &Engine, request: &ProofRequest) -> Result<JobHandle> {
    let options = JobOptions {
        // Sent again it is the same job, and with [jobs] journal also after a crash.
        id: Some("winning-post-of-epoch-1".to_owned()),
        deadline: Some(Duration::from_secs(600)),
        ..JobOptions::default()
    };
    engine.submit_with(request, options).map_err(|error| {
        let advice = if error.is_busy() {
            "send it again when a job has ended"
        } else if error.is_input() {
            "mend the request, a file or the configuration"
        } else {
            "send it elsewhere"
        };
        format!("{error} ({advice})").into()
    })
}

/// A storage provider has the network's parameters; a test makes insecure ones.
fn make_parameters(request: &ProofRequest, config: &Config) -> Result<()> {
    let id = decode(request)?.circuit();
    let circuit = circuits::cached(id, &config.srs.param_cache)?;
    let files = circuits::parameter_files(id)?;
    let (program, options) = (circuit.program(), GenerateOptions::default());
    let params = ParamCache::new(&config.srs.param_cache);
    params.ensure_generated(&files, program, options, |_, _| ())?;
    Ok(())
}
