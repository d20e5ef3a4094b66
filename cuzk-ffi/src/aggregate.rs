//! The functions of an aggregate.
//!
//! Not a job: the call blocks until the aggregate is there. The invariant: bytes that were
//! lent stay where they are until the aggregate is freed.

use std::ffi::c_void;

use cuzk_core::aggregate::VerifiedAggregate;
use cuzk_core::{AggregateRequest, Error};

use crate::engine::CuzkEngine;
use crate::error::{CUZK_OK, enter};
use crate::input::{Place, REQUEST_BYTES_MAX, bytes, object};

/// An aggregate of proofs.
#[derive(Debug)]
pub struct CuzkAggregate(VerifiedAggregate);

/// Aggregates proofs of replication and writes the aggregate to `aggregate`, which the caller
/// owns and gives back to `cuzk_aggregate_free`. After a failure `aggregate` is NULL. The call
/// blocks until the engine has the memory, and until the proofs and the aggregate are verified.
///
/// `request` has the JSON of docs/aggregation.md, without a NUL at its end. It can be freed
/// after the call.
///
/// Any thread may call it at any time. `CUZK_PARAMETERS_MISSING` names the file that is not
/// there.
///
/// # Safety
///
/// `engine` is NULL, or an engine that is not freed before the call ends. `request_len` bytes
/// can be read at `request`. `aggregate` is the address of a variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuzk_aggregate_new(
    engine: *const CuzkEngine,
    request: *const c_void,
    request_len: usize,
    aggregate: *mut *mut CuzkAggregate,
) -> i32 {
    enter(|| {
        // SAFETY: the caller's promise.
        let aggregate = unsafe { Place::new("aggregate", aggregate, std::ptr::null_mut()) }?;
        // SAFETY: the caller's promise.
        let engine = unsafe { object("engine", engine) }?;
        // SAFETY: the caller's promise.
        let request = unsafe { bytes("request", request, (request_len, REQUEST_BYTES_MAX)) }?;
        let request = AggregateRequest::from_json(request).map_err(Error::from)?;
        let made = engine.0.aggregate(&request)?;
        aggregate.set(Box::into_raw(Box::new(CuzkAggregate(made))));
        Ok(CUZK_OK)
    })
}

/// Writes the address and the length of an aggregate's bytes, as the chain takes them, to
/// `bytes` and `bytes_len`. After a failure `bytes` is NULL and `bytes_len` 0.
///
/// The library owns the bytes, which are valid until `cuzk_aggregate_free`. Any thread may
/// call the function at any time.
///
/// # Safety
///
/// `aggregate` is NULL, or an aggregate that is not freed before the call ends. `bytes` and
/// `bytes_len` are addresses of variables.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuzk_aggregate_lend_bytes(
    aggregate: *const CuzkAggregate,
    bytes: *mut *const u8,
    bytes_len: *mut usize,
) -> i32 {
    enter(|| {
        // SAFETY: the caller's promise.
        let bytes = unsafe { Place::new("bytes", bytes, std::ptr::null()) }?;
        // SAFETY: the caller's promise.
        let bytes_len = unsafe { Place::new("bytes_len", bytes_len, 0) }?;
        // SAFETY: the caller's promise.
        let lent = unsafe { object("aggregate", aggregate) }?.0.as_bytes();
        bytes.set(lent.as_ptr());
        bytes_len.set(lent.len());
        Ok(CUZK_OK)
    })
}

/// Frees an aggregate and its bytes. NULL is ignored.
///
/// Any thread may call it, once. No other thread may use the aggregate from then on.
///
/// # Safety
///
/// `aggregate` is NULL, or of `cuzk_aggregate_new` and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuzk_aggregate_free(aggregate: *mut CuzkAggregate) {
    enter(|| {
        if !aggregate.is_null() {
            // SAFETY: `cuzk_aggregate_new` made it so, and nobody else uses it.
            drop(unsafe { Box::from_raw(aggregate) });
        }
        Ok(CUZK_OK)
    });
}
