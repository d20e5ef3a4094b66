//! SIGINT and SIGTERM, as something that a command looks at.
//!
//! Not a handler that does anything: the command ends by itself, in bounded time. The
//! invariant: the second signal ends the process at once, whatever it is doing.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use signal_hook::flag;

use crate::failure::Failure;
use crate::signal::Signal;

/// How often it is looked whether a signal came.
const POLL: Duration = Duration::from_millis(100);

/// Remembers a signal. Until the second, signals have no other effect from now on.
#[derive(Debug)]
pub(crate) struct Interrupt {
    /// The number of the last one, or zero.
    number: Arc<AtomicUsize>,
}

impl Interrupt {
    /// # Errors
    /// When the system takes no handlers.
    pub(crate) fn watch() -> Result<Self, Failure> {
        let number = Arc::new(AtomicUsize::new(0));
        let came = Arc::new(AtomicBool::new(false));
        for signal in Signal::ALL {
            let raw = signal.number();
            let code = i32::from(signal.exit_code());
            // In this order: what a signal sets is looked at by the next.
            flag::register_conditional_shutdown(raw, code, Arc::clone(&came))
                .and_then(|_| flag::register(raw, Arc::clone(&came)))
                .and_then(|_| {
                    let value = usize::try_from(raw).unwrap_or(usize::MAX);
                    flag::register_usize(raw, Arc::clone(&number), value)
                })
                .map_err(|error| {
                    Failure::failed(format!("{} cannot be handled: {error}", signal.name()))
                })?;
        }
        Ok(Self { number })
    }

    /// Returns the result of `work`, unless a signal comes before. `left` then says what
    /// the work leaves.
    /// The work has a thread of its own, which ends with the process.
    ///
    /// # Errors
    /// The signal, or a panic in `what`.
    pub(crate) fn unless_it_comes<T: Send + 'static>(
        &self,
        what: &str,
        left: impl fmt::Display,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let (end, ended) = mpsc::channel();
        // Nobody listens any more after a signal.
        thread::spawn(move || end.send(work()).ok());
        loop {
            match ended.recv_timeout(POLL) {
                Ok(value) => return Ok(value),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    let problem = format!("{what} panicked; please report it");
                    return Err(Failure::failed(problem));
                }
            }
            if let Some(signal) = self.signal() {
                return Err(Failure::stopped(signal, left));
            }
        }
    }

    /// The signal that came, if one did.
    pub(crate) fn signal(&self) -> Option<Signal> {
        let number = i32::try_from(self.number.load(Ordering::SeqCst)).ok()?;
        Signal::ALL
            .into_iter()
            .find(|signal| signal.number() == number)
    }
}
