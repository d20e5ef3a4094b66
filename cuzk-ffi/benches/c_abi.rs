//! The time that the C ABI adds to a job. The ABI and the Rust API prove the same WindowPoSt of
//! 2 KiB in turns. A sample is the time from the bytes of the request to those of the proof.
//!
//! `cargo bench --workspace --bench c_abi` measures; without `--bench` each way runs once.

#[allow(
    dead_code,
    clippy::unwrap_used,
    reason = "the calls are those of the tests, which make more of them"
)]
#[path = "../tests/abi/calls.rs"]
mod calls;

use cuzk_core::config::Host;
use cuzk_core::{Config, Engine, JobOptions};
use cuzk_ffi::error::CUZK_OK;
use cuzk_ffi::job::CUZK_FOREVER;
use cuzk_filecoin::ProofKind;
use cuzk_testing::pairs::{compare_proofs, timed};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const KIND: ProofKind = ProofKind::WindowPost;

fn through_rust(engine: &Engine, request: &[u8], id: Option<&str>) -> Result<Vec<u8>> {
    let options = JobOptions {
        id: id.map(str::to_owned),
        ..JobOptions::default()
    };
    let proof = engine.submit_bytes(request, options)?.wait()?;
    Ok(proof.as_bytes().to_vec())
}

fn check(code: i32) -> Result<()> {
    if code == CUZK_OK {
        return Ok(());
    }
    Err(calls::failed(code).1.into())
}

fn through_c(engine: &calls::Engine, request: &[u8], id: Option<&str>) -> Result<Vec<u8>> {
    let options = id.map_or_else(String::new, |id| format!("{{\"id\": \"{id}\"}}"));
    let job = engine.submit(request, &options).map_err(|(_, text)| text)?;
    check(job.wait(CUZK_FOREVER))?;
    let (code, proof) = job.proof();
    check(code)?;
    Ok(proof.to_vec())
}

/// Times proofs, of which `prove` returns a copy.
fn timed_proofs(calls: u32, prove: impl Fn() -> Result<Vec<u8>>) -> Result<f64> {
    timed(calls, || match prove()?.len() {
        192 => Ok(()),
        _ => Err("a proof has another length than 192 bytes".into()),
    })
}

fn compare(rust: &Engine, c: &calls::Engine) -> Result<()> {
    let request = std::fs::read(cuzk_testing::data(&format!("{KIND}.json")))?;
    let mut by_rust =
        |calls, id: Option<&str>| timed_proofs(calls, || through_rust(rust, &request, id));
    let mut by_c = |calls, id: Option<&str>| timed_proofs(calls, || through_c(c, &request, id));
    compare_proofs([("Rust", &mut by_rust), ("C", &mut by_c)])
}

fn main() -> Result<()> {
    let cache = cuzk_testing::param_cache(env!("CARGO_TARGET_TMPDIR"));
    let _in_the_cache = cuzk_testing::circuit_with_params(KIND, &cache);
    let toml = format!("[srs]\nparam_cache = {cache:?}\nmultiples = []\n");
    let rust = Engine::start(Config::parse(&toml, "the bench", &Host::detect())?)?;
    let c = calls::Engine::start(&toml).map_err(|(_, text)| text)?;
    compare(&rust, &c)
}
