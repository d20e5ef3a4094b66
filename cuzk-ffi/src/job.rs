//! The functions of a job.
//!
//! Not the job, which is the engine's and goes on without its handle. The invariants:
//!
//! * All threads can use a job at once until the caller frees it, also without its engine.
//! * A proof that was lent stays where it is until the job is freed.

use std::ffi::{c_int, c_void};
use std::sync::{Arc, OnceLock};

use cuzk_core::JobHandle;
use cuzk_core::job::{Outcome, ProofOutput};

use crate::engine::{CuzkEngine, duration};
use crate::error::{CUZK_OK, CUZK_PENDING, Failure, enter};
use crate::input::{Place, REQUEST_BYTES_MAX, TEXT_BYTES_MAX, bytes, object};
use crate::options;
use crate::signal::EndSignal;

/// A time in milliseconds that does not end.
pub const CUZK_FOREVER: u64 = u64::MAX;

/// A job of an engine.
#[derive(Debug)]
pub struct CuzkJob {
    handle: JobHandle,
    /// The proof, once it was lent.
    proof: OnceLock<Arc<ProofOutput>>,
    /// The eventfd, once it was lent.
    signal: OnceLock<EndSignal>,
}

/// Submits a request and writes the job to `job`, which the caller owns and gives back to
/// `cuzk_job_free`. After a failure `job` is NULL. The call reads and checks the request, for
/// which the largest ones take seconds, and does not wait for the proof.
///
/// `request` has the JSON of docs/requests.md. `options` has a JSON object with the keys `id`,
/// `priority`, `deadline_ms` and `waits` of docs/embedding.md. Each key may be left out, and a
/// length of 0 is no options. Neither text ends with a NUL. The library copies what it needs
/// of them, so that they can be freed after the call.
///
/// Any thread may call it at any time. `CUZK_BUSY` asks to submit again when a job has ended.
///
/// # Safety
///
/// `engine` is NULL, or an engine that is not freed before the call ends. `request_len` bytes
/// can be read at `request`, and `options_len` bytes at `options`. `job` is the address of a
/// variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuzk_job_new(
    engine: *const CuzkEngine,
    request: *const c_void,
    request_len: usize,
    options: *const c_void,
    options_len: usize,
    job: *mut *mut CuzkJob,
) -> i32 {
    enter(|| {
        // SAFETY: the caller's promise.
        let job = unsafe { Place::new("job", job, std::ptr::null_mut()) }?;
        // SAFETY: the caller's promise.
        let engine = unsafe { object("engine", engine) }?;
        // SAFETY: the caller's promise.
        let request = unsafe { bytes("request", request, (request_len, REQUEST_BYTES_MAX)) }?;
        // SAFETY: the caller's promise.
        let options = unsafe { bytes("options", options, (options_len, TEXT_BYTES_MAX)) }?;
        let handle = engine.0.submit_bytes(request, options::read(options)?)?;
        let accepted = CuzkJob {
            handle,
            proof: OnceLock::new(),
            signal: OnceLock::new(),
        };
        job.set(Box::into_raw(Box::new(accepted)));
        Ok(CUZK_OK)
    })
}

/// Returns `CUZK_OK` if the job is proved, `CUZK_PENDING` if it has not ended, and otherwise
/// the code of its error. The message of that is the thread's last error.
///
/// Any thread may call it at any time.
///
/// # Safety
///
/// `job` is NULL, or a job that is not freed before the call ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuzk_job_poll(job: *const CuzkJob) -> i32 {
    enter(|| {
        // SAFETY: the caller's promise.
        let job = unsafe { object("job", job) }?;
        code_of(job.handle.poll())
    })
}

/// Blocks until the job has ended, but no longer than `timeout_ms`. Returns as
/// `cuzk_job_poll`. `CUZK_FOREVER` waits for the end.
///
/// Any number of threads may wait at the same time.
///
/// # Safety
///
/// `job` is NULL, or a job that is not freed before the call ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuzk_job_wait(job: *const CuzkJob, timeout_ms: u64) -> i32 {
    enter(|| {
        // SAFETY: the caller's promise.
        let job = unsafe { object("job", job) }?;
        code_of(match timeout_ms {
            CUZK_FOREVER => Some(job.handle.wait()),
            timeout_ms => job.handle.wait_for(duration(timeout_ms)),
        })
    })
}

/// Writes the number of an eventfd to `fd`. It becomes readable when the job ends, for `poll`,
/// `select` and `epoll`. All calls give the same one. After a failure `fd` is -1.
///
/// The library owns the eventfd: `cuzk_job_free` closes it, and nobody else may. A `read`
/// makes it unreadable again. It does not block, and is closed by `exec`. Any thread may call
/// the function at any time.
///
/// # Safety
///
/// `job` is NULL, or a job that is not freed before the call ends. `fd` is the address of a
/// variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuzk_job_lend_eventfd(job: *const CuzkJob, fd: *mut c_int) -> i32 {
    enter(|| {
        // SAFETY: the caller's promise.
        let fd = unsafe { Place::new("fd", fd, -1) }?;
        // SAFETY: the caller's promise.
        let job = unsafe { object("job", job) }?;
        if job.signal.get().is_none() {
            let signal = EndSignal::new(&job.handle).map_err(|error| {
                Failure::system(&format!("no eventfd: {error}; close files, or `ulimit -n`"))
            })?;
            // That of another thread may be there by now. Then this one is closed.
            let _ = job.signal.set(signal);
        }
        let signal = job
            .signal
            .get()
            .ok_or_else(|| Failure::internal("no eventfd"))?;
        fd.set(signal.descriptor());
        Ok(CUZK_OK)
    })
}

/// Ends the job with `CUZK_ENDED`, unless it has ended. Waiting partitions are dropped, and
/// running ones stop at their next chunk of work.
///
/// Any thread may call it at any time.
///
/// # Safety
///
/// `job` is NULL, or a job that is not freed before the call ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuzk_job_cancel(job: *const CuzkJob) -> i32 {
    enter(|| {
        // SAFETY: the caller's promise.
        let job = unsafe { object("job", job) }?;
        job.handle.cancel();
        Ok(CUZK_OK)
    })
}

/// Writes how many partitions of the job are proved to `done`, and how many there are to
/// `partitions`.
///
/// Any thread may call it at any time.
///
/// # Safety
///
/// `job` is NULL, or a job that is not freed before the call ends. `done` and `partitions` are
/// addresses of variables.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuzk_job_progress(
    job: *const CuzkJob,
    done: *mut usize,
    partitions: *mut usize,
) -> i32 {
    enter(|| {
        // SAFETY: the caller's promise.
        let done = unsafe { Place::new("done", done, 0) }?;
        // SAFETY: the caller's promise.
        let partitions = unsafe { Place::new("partitions", partitions, 0) }?;
        // SAFETY: the caller's promise.
        let job = unsafe { object("job", job) }?;
        let progress = job.handle.progress();
        done.set(progress.partitions_done);
        partitions.set(progress.partitions);
        Ok(CUZK_OK)
    })
}

/// Writes the address and the length of the job's proof to `proof` and `proof_len`: 192 bytes
/// for each partition, in order. The proof has been verified. Returns as `cuzk_job_poll`.
/// Unless that is `CUZK_OK`, `proof` is NULL and `proof_len` 0.
///
/// The library owns the proof, which is valid until `cuzk_job_free`. Any thread may call the
/// function at any time.
///
/// # Safety
///
/// `job` is NULL, or a job that is not freed before the call ends. `proof` and `proof_len` are
/// addresses of variables.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuzk_job_lend_proof(
    job: *const CuzkJob,
    proof: *mut *const u8,
    proof_len: *mut usize,
) -> i32 {
    enter(|| {
        // SAFETY: the caller's promise.
        let proof = unsafe { Place::new("proof", proof, std::ptr::null()) }?;
        // SAFETY: the caller's promise.
        let proof_len = unsafe { Place::new("proof_len", proof_len, 0) }?;
        // SAFETY: the caller's promise.
        let job = unsafe { object("job", job) }?;
        let Some(outcome) = job.handle.poll() else {
            return Ok(CUZK_PENDING);
        };
        let proved = outcome.map_err(|error| Failure::from(&*error))?;
        let lent = job.proof.get_or_init(|| proved).as_bytes();
        proof.set(lent.as_ptr());
        proof_len.set(lent.len());
        Ok(CUZK_OK)
    })
}

/// Frees the handle of a job, its proof and its eventfd. The job itself goes on until it has
/// ended. NULL is ignored.
///
/// Any thread may call it, once. No other thread may use the job from then on.
///
/// # Safety
///
/// `job` is NULL, or of `cuzk_job_new` and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuzk_job_free(job: *mut CuzkJob) {
    enter(|| {
        if !job.is_null() {
            // SAFETY: `cuzk_job_new` made it so, and nobody else uses it.
            drop(unsafe { Box::from_raw(job) });
        }
        Ok(CUZK_OK)
    });
}

/// Returns the code of a job's outcome.
fn code_of(outcome: Option<Outcome>) -> Result<i32, Failure> {
    match outcome {
        None => Ok(CUZK_PENDING),
        Some(Ok(_)) => Ok(CUZK_OK),
        Some(Err(error)) => Err(Failure::from(&*error)),
    }
}
