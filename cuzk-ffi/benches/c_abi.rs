//! The time that the C ABI adds to a job. The ABI and the Rust API prove the same WindowPoSt of
//! 2 KiB in turns. A sample is the time from the bytes of the request to those of the proof.
//!
//! A proof takes far longer than a call. So each arm also asks for a proved job again by its
//! id: that makes the same calls and proves nothing.
//!
//! `cargo bench --workspace --bench c_abi` measures; without `--bench` each arm runs once.

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
use cuzk_testing::pairs::{self, Arm, timed};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const KIND: ProofKind = ProofKind::WindowPost;

/// Proves `request`, and returns a copy of the proof. `id` is the job's, if it has one.
type Prove<'a> = &'a dyn Fn(&[u8], Option<&str>) -> Result<Vec<u8>>;

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

fn compare(rounds: usize, calls: u32, rust: Prove<'_>, c: Prove<'_>) -> Result<()> {
    let request = std::fs::read(cuzk_testing::data(&format!("{KIND}.json")))?;
    // Both have loaded the circuit and its parameters, and have a job that was proved.
    let proofs = [
        rust(&request, Some("proved"))?,
        c(&request, Some("proved"))?,
    ];
    if proofs.iter().any(|proof| proof.len() != 192) {
        return Err("a proof has another length than 192 bytes".into());
    }
    for (what, id, calls) in [
        ("a proof", None, 1),
        ("a proved job again", Some("proved"), calls),
    ] {
        let mut by_rust = |calls| timed(calls, || rust(&request, id).map(|_| ()));
        let mut by_c = |calls| timed(calls, || c(&request, id).map(|_| ()));
        let arms: [(_, Arm<'_>); 2] = [("Rust", &mut by_rust), ("C", &mut by_c)];
        pairs::compare(what, (rounds, calls), arms)?;
    }
    Ok(())
}

fn main() -> Result<()> {
    let is_measured = std::env::args().any(|argument| argument == "--bench");
    let (rounds, calls) = if is_measured { (40, 200) } else { (1, 1) };
    let cache = cuzk_testing::param_cache(env!("CARGO_TARGET_TMPDIR"));
    let _in_the_cache = cuzk_testing::circuit_with_params(KIND, &cache);
    let toml = format!("[srs]\nparam_cache = {cache:?}\nmultiples = []\n");
    let rust = Engine::start(Config::parse(&toml, "the bench", &Host::detect())?)?;
    let mut c = ptr::null_mut();
    // SAFETY: the text and the variable are there.
    check(unsafe { cuzk_engine_new(start(toml.as_bytes()), toml.len(), &raw mut c) })?;
    let through_rust = |request: &[u8], id: Option<&str>| through_rust(&rust, request, id);
    let through_c = |request: &[u8], id: Option<&str>| through_c(c, request, id);
    let compared = compare(rounds, calls, &through_rust, &through_c);
    // SAFETY: it is freed once.
    unsafe { cuzk_engine_free(c) };
    compared
}
