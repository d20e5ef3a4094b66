//! Work that a signal such as Ctrl-C ends.
//!
//! Not what the work is. The invariant: the work has ended when its call returns, so it can
//! borrow from the caller.

use std::panic::resume_unwind;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::{Builder, scope};

use cuzk_core::aggregate::Cancellation;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

use crate::LOOK;

/// Runs `work` on a thread of its own and returns its result. The handlers of signals run on the
/// interpreter's main thread alone, so the caller's thread looks for signals meanwhile.
///
/// # Errors
/// The exception that the handler of a signal raised. `stop` is raised before, and the work has
/// ended. OSError, if the system gives no thread.
pub(crate) fn run<T: Send>(
    py: Python<'_>,
    stop: &Cancellation,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    py.detach(|| {
        scope(|scope| {
            let (running, ended) = channel::<()>();
            let work = move || {
                // Nothing is sent: the channel closes with the work.
                let _running = running;
                work()
            };
            let worker = Builder::new().name("cuzk-call".to_owned());
            let worker = worker.spawn_scoped(scope, work).map_err(no_thread)?;
            while ended.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                let raised = Python::attach(|py| py.check_signals());
                // The scope waits for the end of the work.
                raised.inspect_err(|_| stop.cancel())?;
            }
            worker.join().map_or_else(|panic| resume_unwind(panic), Ok)
        })
    })
}

fn no_thread(error: std::io::Error) -> PyErr {
    PyOSError::new_err(format!(
        "no thread: {error}; end other programs, or raise `ulimit -u`"
    ))
}
