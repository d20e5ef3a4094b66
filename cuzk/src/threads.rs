//! Threads and async runtimes of a command, on a system that may have nothing left for them.
//!
//! Not the engine's threads. The invariant: a thread or a runtime that cannot be started is an
//! error with the limits that an operator can raise, and no panic.

use std::io;
use std::thread;

use cuzk_core::error::ErrorCode;

use crate::failure::Failure;

/// Starts a thread that nobody joins.
///
/// # Errors
/// The system has no threads left. Then `work` is dropped, and with it all that it owns.
pub(crate) fn start(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Failure> {
    let named = thread::Builder::new().name(name.to_owned());
    match named.spawn(work) {
        Ok(_) => Ok(()),
        Err(error) => Err(none_left(&error)),
    }
}

/// Returns the failure of an async runtime that could not be started.
pub(crate) fn no_runtime(error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::WouldBlock {
        return none_left(error);
    }
    let code = match ErrorCode::of_file(error) {
        ErrorCode::OpenFiles => ErrorCode::OpenFiles,
        _ => ErrorCode::Failed,
    };
    Failure::new(code, format!("cannot start an async runtime: {error}"))
}

/// Returns the failure of a thread that could not be started.
pub(crate) fn none_left(error: &io::Error) -> Failure {
    let message = format!(
        "cannot start a thread: {error}; raise the limit of this user's processes (ulimit -u), \
         or of the control group's (pids.max)"
    );
    Failure::new(ErrorCode::Threads, message)
}
