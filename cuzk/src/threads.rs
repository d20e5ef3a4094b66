//! Threads of a command, on a system that may have none left.
//!
//! Not the engine's threads. The invariant: a thread that cannot be started is an error with
//! the limits that an operator can raise, and no panic.

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

/// Returns the failure of a thread that could not be started.
pub(crate) fn none_left(error: &io::Error) -> Failure {
    let message = format!(
        "cannot start a thread: {error}; raise the limit of this user's processes (ulimit -u), \
         or of the control group's (pids.max)"
    );
    Failure::new(ErrorCode::Threads, message)
}
