//! The functions of an engine.
//!
//! Not those of its jobs, which are in [`job`](crate::job). The invariant: an engine that the
//! caller has not freed can be used by all threads at once.

use std::ffi::{CString, c_char, c_void};
use std::time::Duration;

use cuzk_core::config::Host;
use cuzk_core::{Config, Engine, Error};

use crate::error::{CUZK_OK, Failure, enter};
use crate::input::{Place, object, text};

/// An engine, which proves jobs on threads of its own.
#[derive(Debug)]
pub struct CuzkEngine(pub(crate) Engine);

/// Starts an engine and writes it to `engine`, which the caller owns and gives back to
/// `cuzk_engine_free`. After a failure `engine` is NULL.
///
/// `toml` is the text of a configuration (docs/configuration.md), without a NUL at its end. A
/// length of 0 is the built-in configuration. The sections `[server]`, `[cluster]` and
/// `[logging]` have no effect.
///
/// Any thread may call it at any time. It reads the environment: no other thread may change
/// that meanwhile. A process that was forked after this call cannot use the engine.
///
/// # Safety
///
/// `toml_len` bytes can be read at `toml`. `engine` is the address of a variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuzk_engine_new(
    toml: *const c_void,
    toml_len: usize,
    engine: *mut *mut CuzkEngine,
) -> i32 {
    enter(|| {
        // SAFETY: the caller's promise.
        let engine = unsafe { Place::new("engine", engine, std::ptr::null_mut()) }?;
        // SAFETY: the caller's promise.
        let toml = unsafe { text("toml", toml, toml_len) }?;
        let config = Config::parse(toml, "`toml`", &Host::detect());
        let started = Engine::start(config.map_err(Error::from)?)?;
        engine.set(Box::into_raw(Box::new(CuzkEngine(started))));
        Ok(CUZK_OK)
    })
}

/// Accepts no more jobs, proves those that the engine has for at most `patience_ms`, and ends
/// its threads. Jobs that are left then end with `CUZK_ENDED`; with `[jobs] journal` those
/// that have an id go on at the next start. The number of them is written to `left`, which may
/// be NULL. `CUZK_FOREVER` waits for all jobs.
///
/// Any thread may call it. Other threads may use the engine meanwhile; later submissions fail.
///
/// # Safety
///
/// `engine` is NULL, or an engine that is not freed before the call ends. `left` is NULL or
/// the address of a variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuzk_engine_end(
    engine: *const CuzkEngine,
    patience_ms: u64,
    left: *mut usize,
) -> i32 {
    enter(|| {
        // SAFETY: the caller's promise.
        let engine = unsafe { object("engine", engine) }?;
        let left = if left.is_null() {
            None
        } else {
            // SAFETY: the caller's promise.
            Some(unsafe { Place::new("left", left, 0) }?)
        };
        let jobs = engine.0.shutdown_within(duration(patience_ms));
        if let Some(left) = left {
            left.set(jobs.len());
        }
        Ok(CUZK_OK)
    })
}

/// Ends the jobs that the engine has not proved, and its threads, and frees it. A device that
/// computes has ten seconds to answer. NULL is ignored. Jobs stay until they are freed.
///
/// Any thread may call it, once. No other thread may use the engine from then on.
///
/// # Safety
///
/// `engine` is NULL, or of `cuzk_engine_new` and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuzk_engine_free(engine: *mut CuzkEngine) {
    enter(|| {
        if !engine.is_null() {
            // SAFETY: `cuzk_engine_new` made it so, and nobody else uses it.
            drop(unsafe { Box::from_raw(engine) });
        }
        Ok(CUZK_OK)
    });
}

/// Writes the state of the engine to `status`: JSON that ends with a NUL. It is the value of
/// the key `engine` of docs/http.md. The caller owns the text and gives it back to
/// `cuzk_status_free`. After a failure `status` is NULL.
///
/// Any thread may call it at any time.
///
/// # Safety
///
/// `engine` is NULL, or an engine that is not freed before the call ends. `status` is the
/// address of a variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuzk_status_new(
    engine: *const CuzkEngine,
    status: *mut *mut c_char,
) -> i32 {
    enter(|| {
        // SAFETY: the caller's promise.
        let status = unsafe { Place::new("status", status, std::ptr::null_mut()) }?;
        // SAFETY: the caller's promise.
        let engine = unsafe { object("engine", engine) }?;
        let json = serde_json::to_vec(&engine.0.status());
        let json = json.map_err(|error| Failure::internal(&error.to_string()))?;
        // JSON has no NUL in it.
        let json = CString::new(json).map_err(|error| Failure::internal(&error.to_string()))?;
        status.set(json.into_raw());
        Ok(CUZK_OK)
    })
}

/// Frees a text of `cuzk_status_new`. NULL is ignored.
///
/// Any thread may call it, once for each text.
///
/// # Safety
///
/// `status` is NULL, or of `cuzk_status_new` and not freed, and its length is unchanged.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuzk_status_free(status: *mut c_char) {
    enter(|| {
        if !status.is_null() {
            // SAFETY: `cuzk_status_new` made it so.
            drop(unsafe { CString::from_raw(status) });
        }
        Ok(CUZK_OK)
    });
}

/// Returns a time of the caller's. The longest one has no end.
pub(crate) fn duration(ms: u64) -> Duration {
    match ms {
        u64::MAX => Duration::MAX,
        ms => Duration::from_millis(ms),
    }
}
