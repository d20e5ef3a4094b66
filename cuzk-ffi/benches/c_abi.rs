//! The time that the C ABI adds to a job. The ABI and the Rust API prove the same WindowPoSt of
//! 2 KiB in turns. A sample is the time from the bytes of the request to those of the proof.
//!
//! `cargo bench --workspace --bench c_abi` measures; without `--bench` each way runs once.

use std::ffi::{CStr, c_void};
use std::ptr;

use cuzk_core::config::Host;
use cuzk_core::{Config, Engine, JobOptions};
use cuzk_ffi::engine::{CuzkEngine, cuzk_engine_free, cuzk_engine_new};
use cuzk_ffi::error::{CUZK_OK, cuzk_lend_error};
use cuzk_ffi::job::{
    CUZK_FOREVER, cuzk_job_free, cuzk_job_lend_proof, cuzk_job_new, cuzk_job_wait,
};
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
    // SAFETY: the text ends with a NUL.
    let text = unsafe { CStr::from_ptr(cuzk_lend_error()) };
    Err(text.to_string_lossy().into())
}

fn start(bytes: &[u8]) -> *const c_void {
    bytes.as_ptr().cast()
}

fn through_c(engine: *const CuzkEngine, request: &[u8], id: Option<&str>) -> Result<Vec<u8>> {
    let options = id.map_or_else(String::new, |id| format!("{{\"id\": \"{id}\"}}"));
    let options = options.as_bytes();
    let (mut job, mut proof, mut len) = (ptr::null_mut(), ptr::null(), 0);
    // SAFETY: the engine is alive; the texts and the variables are there; the job is freed
    // after the last use of its proof.
    unsafe {
        let (text, place) = ((start(request), request.len()), &raw mut job);
        check(cuzk_job_new(
            engine,
            text.0,
            text.1,
            start(options),
            options.len(),
            place,
        ))?;
        check(cuzk_job_wait(job, CUZK_FOREVER))?;
        check(cuzk_job_lend_proof(job, &raw mut proof, &raw mut len))?;
        let copy = std::slice::from_raw_parts(proof, len).to_vec();
        cuzk_job_free(job);
        Ok(copy)
    }
}

/// Times proofs, of which `prove` returns a copy.
fn timed_proofs(calls: u32, prove: impl Fn() -> Result<Vec<u8>>) -> Result<f64> {
    timed(calls, || match prove()?.len() {
        192 => Ok(()),
        _ => Err("a proof has another length than 192 bytes".into()),
    })
}

fn compare(rust: &Engine, c: *const CuzkEngine) -> Result<()> {
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
    let mut c = ptr::null_mut();
    // SAFETY: the text and the variable are there.
    check(unsafe { cuzk_engine_new(start(toml.as_bytes()), toml.len(), &raw mut c) })?;
    let compared = compare(&rust, c);
    // SAFETY: it is freed once.
    unsafe { cuzk_engine_free(c) };
    compared
}
