//! The start of an engine: its usual decoder, its first threads, and the error of an engine that
//! cannot start. A caller can also choose here that nothing is done in the background.

use std::io;
use std::sync::Arc;

use cuzk_filecoin::{ProofRequest, Statement, decode};
use cuzk_groth16::apart::NoThreads;
use rayon::{ThreadPool, ThreadPoolBuildError};
use supraseal_sys::Status;

use super::Engine;
use crate::config::{Config, address_space_problem};
use crate::{Error, Result};

/// Linux's number of the error of a system that gives no thread.
const EAGAIN: i32 = 11;

/// Reads a request file.
pub(super) fn decode_file(request: &[u8]) -> Result<Arc<dyn Statement>> {
    Ok(Arc::from(decode(&ProofRequest::from_json(request)?)?))
}

/// Has an engine make no multiples and compare no digests from now on, because its process
/// ends with its jobs. The lines for a job's acceptance and end are of level debug then.
pub fn serve_one_command(engine: &Engine) {
    engine.core.assets.multiples.close();
    engine.core.assets.digests.close();
    engine.core.jobs.log_less();
}

/// Checks that the limit of the address space leaves room for the threads of an engine. A
/// program that starts threads of its own calls this before them. Later, the first small
/// allocation without addresses ends the process.
///
/// # Errors
/// A limit that is too low for the engine.
pub fn check_address_space(config: &Config) -> Result<()> {
    address_space_problem(config).map_or(Ok(()), |problem| Err(cannot_start(problem)))
}

/// Returns the threads of synthesis. They are the first that an engine starts, so the limit of
/// the address space is looked at before.
///
/// # Errors
/// A limit that is too low for the engine, and a system that gives fewer threads.
pub(super) fn synthesis_pool(config: &Config) -> Result<Arc<ThreadPool>> {
    check_address_space(config)?;
    Ok(Arc::new(config.synthesis.pool()?))
}

/// The error of a thread that the system does not give.
pub(super) fn no_thread(source: io::Error) -> Error {
    Error::no_thread(source)
}

/// The error of a pool of threads that the system does not give.
pub(super) fn no_pool(threads: usize) -> impl Fn(ThreadPoolBuildError) -> Error {
    move |error| {
        let source = io::Error::other(error);
        NoThreads { threads, source }.into()
    }
}

/// The error of the C++ side that cannot be set up. It starts a thread, and tells a lack of
/// threads by the system's text only.
pub(super) fn no_device_side(error: &Status) -> Error {
    let lack = io::Error::from_raw_os_error(EAGAIN).to_string();
    let lack = lack.split(" (os error").next().unwrap_or_default();
    match error.to_string().contains(lack) {
        true => no_thread(io::Error::from_raw_os_error(EAGAIN)),
        false => cannot_start(error),
    }
}

/// The error of an engine that cannot start.
pub(super) fn cannot_start(error: impl std::fmt::Display) -> Error {
    Error::Start {
        problem: error.to_string(),
    }
}
