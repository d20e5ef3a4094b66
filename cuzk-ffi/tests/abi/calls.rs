//! Calls with the pointers that a right C program would give.

use std::ffi::{CStr, c_void};
use std::os::fd::BorrowedFd;
use std::ptr;

use cuzk_bounded::bounded;
use cuzk_ffi::aggregate::{
    CuzkAggregate, cuzk_aggregate_free, cuzk_aggregate_lend_bytes, cuzk_aggregate_new,
};
use cuzk_ffi::engine::{
    CuzkEngine, cuzk_engine_end, cuzk_engine_free, cuzk_engine_new, cuzk_status_free,
    cuzk_status_new,
};
use cuzk_ffi::error::{CUZK_OK, cuzk_error_code, cuzk_lend_error};
use cuzk_ffi::job::{
    CuzkJob, cuzk_job_cancel, cuzk_job_free, cuzk_job_lend_eventfd, cuzk_job_lend_proof,
    cuzk_job_new, cuzk_job_poll, cuzk_job_progress, cuzk_job_wait,
};

/// A code, and the message of the thread's last error.
pub(crate) type Failed = (i32, String);

/// Returns the last error of a call that ended with `code`.
pub(crate) fn failed(code: i32) -> Failed {
    // SAFETY: the text ends with a NUL, and no call fails meanwhile.
    let text = unsafe { CStr::from_ptr(cuzk_lend_error()) };
    assert_eq!(code, cuzk_error_code());
    (code, text.to_str().unwrap().to_owned())
}

fn start(bytes: &[u8]) -> *const c_void {
    bytes.as_ptr().cast()
}

pub(crate) struct Engine(pub(crate) *mut CuzkEngine);

impl Engine {
    pub(crate) fn start(toml: &str) -> Result<Self, Failed> {
        let mut engine = ptr::dangling_mut();
        // SAFETY: the text and the variable are there.
        let code = unsafe { cuzk_engine_new(start(toml.as_bytes()), toml.len(), &raw mut engine) };
        assert_eq!(engine.is_null(), code != CUZK_OK);
        if code == CUZK_OK {
            Ok(Self(engine))
        } else {
            Err(failed(code))
        }
    }

    pub(crate) fn submit(&self, request: &[u8], options: &str) -> Result<Job, Failed> {
        let (text, mut job) = (options.as_bytes(), ptr::dangling_mut());
        let request = (start(request), request.len());
        // SAFETY: the engine is alive; the texts and the variable are there.
        let code = unsafe {
            let job = &raw mut job;
            cuzk_job_new(self.0, request.0, request.1, start(text), text.len(), job)
        };
        assert_eq!(job.is_null(), code != CUZK_OK);
        if code == CUZK_OK {
            Ok(Job(job))
        } else {
            Err(failed(code))
        }
    }

    pub(crate) fn aggregate(&self, request: &[u8]) -> Result<Aggregate, Failed> {
        let (request, mut made) = ((start(request), request.len()), ptr::dangling_mut());
        // SAFETY: the engine is alive; the text and the variable are there.
        let code = unsafe { cuzk_aggregate_new(self.0, request.0, request.1, &raw mut made) };
        assert_eq!(made.is_null(), code != CUZK_OK);
        if code == CUZK_OK {
            Ok(Aggregate(made))
        } else {
            Err(failed(code))
        }
    }

    pub(crate) fn status(&self) -> serde_json::Value {
        let mut status = ptr::null_mut();
        // SAFETY: the engine is alive; the text is freed once, after its last use.
        unsafe {
            assert_eq!(cuzk_status_new(self.0, &raw mut status), CUZK_OK);
            let json = serde_json::from_slice(CStr::from_ptr(status).to_bytes());
            cuzk_status_free(status);
            json.unwrap()
        }
    }

    pub(crate) fn end(&self, patience_ms: u64) -> usize {
        let mut left = usize::MAX;
        // SAFETY: the engine is alive, and the variable is there.
        let code = unsafe { cuzk_engine_end(self.0, patience_ms, &raw mut left) };
        assert_eq!(code, CUZK_OK);
        left
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // SAFETY: it is freed once.
        unsafe { cuzk_engine_free(self.0) }
    }
}

pub(crate) struct Job(pub(crate) *mut CuzkJob);

// SAFETY: every thread may use a job.
unsafe impl Sync for Job {}

impl Job {
    pub(crate) fn poll(&self) -> i32 {
        // SAFETY: the job is alive.
        unsafe { cuzk_job_poll(self.0) }
    }

    #[track_caller]
    pub(crate) fn wait(&self, timeout_ms: u64) -> i32 {
        // SAFETY: the job is alive.
        bounded(|| unsafe { cuzk_job_wait(self.0, timeout_ms) })
    }

    pub(crate) fn cancel(&self) {
        // SAFETY: the job is alive.
        assert_eq!(unsafe { cuzk_job_cancel(self.0) }, CUZK_OK);
    }

    /// Returns the eventfd as long as the job lends it.
    pub(crate) fn eventfd(&self) -> BorrowedFd<'_> {
        let mut fd = -7;
        // SAFETY: the job is alive, and the variable is there.
        let code = unsafe { cuzk_job_lend_eventfd(self.0, &raw mut fd) };
        assert!(code == CUZK_OK && fd >= 0);
        // SAFETY: the job lends it for as long as the job is alive.
        unsafe { BorrowedFd::borrow_raw(fd) }
    }

    pub(crate) fn progress(&self) -> (usize, usize) {
        let (mut done, mut partitions) = (7, 7);
        // SAFETY: the job is alive, and the variables are there.
        let code = unsafe { cuzk_job_progress(self.0, &raw mut done, &raw mut partitions) };
        assert_eq!(code, CUZK_OK);
        (done, partitions)
    }

    /// Returns the code, and the proof as long as the job lends it.
    pub(crate) fn proof(&self) -> (i32, &[u8]) {
        let (mut proof, mut len) = (ptr::dangling(), 7);
        // SAFETY: the job is alive, and the variables are there.
        let code = unsafe { cuzk_job_lend_proof(self.0, &raw mut proof, &raw mut len) };
        if code != CUZK_OK {
            assert!(proof.is_null() && len == 0);
            return (code, &[]);
        }
        // SAFETY: the job lends it for as long as the job is alive.
        (code, unsafe { std::slice::from_raw_parts(proof, len) })
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        // SAFETY: it is freed once.
        unsafe { cuzk_job_free(self.0) }
    }
}

pub(crate) struct Aggregate(*mut CuzkAggregate);

impl Aggregate {
    /// Returns the bytes as long as the aggregate lends them.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        let (mut bytes, mut len) = (ptr::dangling(), 7);
        // SAFETY: the aggregate is alive, and the variables are there.
        let code = unsafe { cuzk_aggregate_lend_bytes(self.0, &raw mut bytes, &raw mut len) };
        assert_eq!(code, CUZK_OK);
        // SAFETY: the aggregate lends them for as long as it is alive.
        unsafe { std::slice::from_raw_parts(bytes, len) }
    }
}

impl Drop for Aggregate {
    fn drop(&mut self) {
        // SAFETY: it is freed once.
        unsafe { cuzk_aggregate_free(self.0) }
    }
}
