//! Pointers and lengths that a wrong C program would give: each is an error that names the
//! argument, and nothing is read or written there.

use std::ffi::{CStr, c_void};
use std::ptr;

use cuzk_ffi::aggregate::{cuzk_aggregate_free, cuzk_aggregate_lend_bytes, cuzk_aggregate_new};
use cuzk_ffi::engine::{
    CuzkEngine, cuzk_engine_end, cuzk_engine_free, cuzk_engine_new, cuzk_status_free,
    cuzk_status_new,
};
use cuzk_ffi::error::{CUZK_ARGUMENT, CUZK_CONFIGURATION, CUZK_REQUEST, cuzk_lend_version};
use cuzk_ffi::job::{
    cuzk_job_cancel, cuzk_job_free, cuzk_job_lend_eventfd, cuzk_job_lend_proof, cuzk_job_new,
    cuzk_job_poll, cuzk_job_progress, cuzk_job_wait,
};

use crate::calls::{Engine, failed};

/// Checks that a call was refused for this argument.
fn refused(code: i32, argument: &str) {
    let (code, text) = failed(code);
    assert_eq!(code, CUZK_ARGUMENT, "{text}");
    let begins = format!("{argument}: ");
    assert!(text.starts_with(&begins), "{text} is not about {argument}");
    assert!(text.ends_with(" [CUZK-0001]"), "{text}");
}

#[test]
fn a_null_handle_is_an_error() {
    let (null, job) = (ptr::null(), ptr::null());
    let (mut text, mut fd, mut proof) = (ptr::dangling_mut(), 7, ptr::dangling());
    let (mut left, mut len, mut made) = (7, 7, ptr::dangling_mut());
    let mut aggregate = ptr::dangling_mut();
    // SAFETY: handles may be NULL, and the variables are there.
    unsafe {
        refused(cuzk_engine_end(null, 0, &raw mut left), "engine");
        refused(cuzk_status_new(null, &raw mut text), "engine");
        let new = cuzk_job_new(null, ptr::null(), 0, ptr::null(), 0, &raw mut made);
        refused(new, "engine");
        refused(cuzk_job_poll(job), "job");
        refused(cuzk_job_wait(job, 0), "job");
        refused(cuzk_job_cancel(job), "job");
        refused(cuzk_job_lend_eventfd(job, &raw mut fd), "job");
        refused(cuzk_job_progress(job, &raw mut left, &raw mut len), "job");
        refused(
            cuzk_job_lend_proof(job, &raw mut proof, &raw mut len),
            "job",
        );
        let lend = cuzk_aggregate_lend_bytes(ptr::null(), &raw mut proof, &raw mut len);
        refused(lend, "aggregate");
        let new = cuzk_aggregate_new(null, ptr::null(), 0, &raw mut aggregate);
        refused(new, "engine");
        cuzk_aggregate_free(ptr::null_mut());
        cuzk_engine_free(ptr::null_mut());
        cuzk_job_free(ptr::null_mut());
        cuzk_status_free(ptr::null_mut());
    }
    assert!(text.is_null() && made.is_null() && proof.is_null() && aggregate.is_null());
    assert_eq!((fd, left, len), (-1, 0, 0));
}

#[test]
fn a_null_place_is_an_error() {
    let engine = Engine::start("").unwrap();
    let (mut proof, mut len) = (ptr::null(), 7);
    // SAFETY: the engine is alive, and NULL is allowed everywhere else.
    unsafe {
        refused(cuzk_engine_new(ptr::null(), 0, ptr::null_mut()), "engine");
        refused(cuzk_status_new(engine.0, ptr::null_mut()), "status");
        let new = cuzk_job_new(engine.0, ptr::null(), 0, ptr::null(), 0, ptr::null_mut());
        refused(new, "job");
        let job = ptr::null();
        refused(cuzk_job_lend_eventfd(job, ptr::null_mut()), "fd");
        refused(
            cuzk_job_progress(job, ptr::null_mut(), &raw mut len),
            "done",
        );
        refused(
            cuzk_job_progress(job, &raw mut len, ptr::null_mut()),
            "partitions",
        );
        let lend = cuzk_job_lend_proof(job, ptr::null_mut(), &raw mut len);
        refused(lend, "proof");
        let lend = cuzk_job_lend_proof(job, &raw mut proof, ptr::null_mut());
        refused(lend, "proof_len");
        let new = cuzk_aggregate_new(engine.0, ptr::null(), 0, ptr::null_mut());
        refused(new, "aggregate");
        let lend = cuzk_aggregate_lend_bytes(ptr::null(), ptr::null_mut(), &raw mut len);
        refused(lend, "bytes");
        let lend = cuzk_aggregate_lend_bytes(ptr::null(), &raw mut proof, ptr::null_mut());
        refused(lend, "bytes_len");
    }
}

#[test]
fn a_handle_at_an_impossible_address_is_an_error() {
    let odd = ptr::without_provenance::<CuzkEngine>(1);
    // SAFETY: nothing is read there.
    unsafe { refused(cuzk_engine_end(odd, 0, ptr::null_mut()), "engine") }
}

#[test]
fn hostile_lengths_are_errors() {
    let engine = Engine::start("").unwrap();
    let (bytes, mut made, mut aggregate) = ([b'x'; 4], ptr::dangling_mut(), ptr::dangling_mut());
    let (start, none): (*const c_void, *const c_void) = (bytes.as_ptr().cast(), ptr::null());
    for len in [usize::MAX, usize::MAX / 2 + 1, (1 << 30) + 1] {
        let mut new = ptr::dangling_mut();
        // SAFETY: nothing is read for a length that is refused.
        unsafe {
            refused(cuzk_engine_new(start, len, &raw mut new), "toml");
            let job = cuzk_job_new(engine.0, start, len, none, 0, &raw mut made);
            refused(job, "request");
            let job = cuzk_job_new(engine.0, start, 4, start, len, &raw mut made);
            refused(job, "options");
            let new = cuzk_aggregate_new(engine.0, start, len, &raw mut aggregate);
            refused(new, "request");
        }
        assert!(new.is_null() && made.is_null() && aggregate.is_null());
    }
    let mut new = ptr::dangling_mut();
    // SAFETY: nothing is read at NULL.
    unsafe {
        refused(cuzk_engine_new(none, 1, &raw mut new), "toml");
        let job = cuzk_job_new(engine.0, none, 1, none, 0, &raw mut made);
        refused(job, "request");
        let job = cuzk_job_new(engine.0, start, 4, none, 1, &raw mut made);
        refused(job, "options");
    }
}

#[test]
fn wrong_texts_are_errors_that_name_the_place() {
    let start = |toml: &str| Engine::start(toml).err().unwrap();
    let (code, text) = start("[jobs]\nqueued = 1\n");
    assert_eq!(code, CUZK_CONFIGURATION, "{text}");
    assert!(text.contains("line 2: "), "{text}");
    let mut new = ptr::dangling_mut();
    // SAFETY: the byte and the variable are there.
    let code = unsafe { cuzk_engine_new([0xff_u8].as_ptr().cast(), 1, &raw mut new) };
    refused(code, "toml");

    let engine = Engine::start("").unwrap();
    let (code, text) = engine.submit(b"{", "").err().unwrap();
    assert_eq!(code, CUZK_REQUEST, "{text}");
    assert!(text.ends_with("[CUZK-0006]"), "{text}");
    let (code, _) = engine.submit(b"", "").err().unwrap();
    assert_eq!(code, CUZK_REQUEST);
    let (code, text) = engine.submit(b"{}", r#"{"urgent": true}"#).err().unwrap();
    assert_eq!(code, CUZK_ARGUMENT);
    assert!(text.contains("urgent"), "{text}");
}

#[test]
fn the_version_is_that_of_the_crate() {
    // SAFETY: the text ends with a NUL and is valid for ever.
    let version = unsafe { CStr::from_ptr(cuzk_lend_version()) };
    assert_eq!(version.to_str().unwrap(), env!("CARGO_PKG_VERSION"));
}
