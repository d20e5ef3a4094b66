//! Waits of tests that end, also where what they wait for does not come. For tests only.
//!
//! A test whose wait has no bound hangs where it should fail. [`bounded`] calls any wait, and ends
//! the process after [`LIMIT`] with a line that says which wait it was. The traits are the same for
//! threads, messages and processes.
//!
//! It ends the process, and not the test alone: nothing stops a thread that waits. A panic on
//! another thread would not help where a scope, or a value that is dropped, then waits for it.
//!
//! Invariant: a wait that returns within its limit is not changed. No test depends on the limit
//! unless the code under test is wrong.

#![deny(unsafe_code)]

use std::io::{self, Write};
use std::panic::Location;
use std::process::{Child, Command, ExitStatus, Output};
use std::sync::mpsc::{self, Receiver, RecvError, RecvTimeoutError, Sender};
use std::sync::{Barrier, BarrierWaitResult};
use std::thread::{self, JoinHandle, ScopedJoinHandle};
use std::time::Duration;

/// The longest time that a test waits for one thing. It is generous, since other programs may have
/// most of the machine.
pub const LIMIT: Duration = Duration::from_secs(15 * 60);

/// Calls a function that waits, and returns its result. If it has not returned within [`LIMIT`],
/// the process ends. A line on standard error says the place of the call and its thread, which has
/// the name of the test.
#[track_caller]
pub fn bounded<T>(wait: impl FnOnce() -> T) -> T {
    bounded_by(LIMIT, wait)
}

/// As [`bounded`], with another limit: that of a process that runs a whole test.
#[track_caller]
pub fn bounded_by<T>(limit: Duration, wait: impl FnOnce() -> T) -> T {
    let bound = Bound::new(limit);
    let result = wait();
    drop(bound);
    result
}

/// The bound of a wait that is no function call, such as that of a future. It must be dropped
/// within its limit.
#[derive(Debug)]
#[must_use]
pub struct Bound {
    /// Dropped first, which ends the thread.
    waits: Option<Sender<()>>,
    watch: Option<JoinHandle<()>>,
}

impl Bound {
    /// Starts a wait of this thread, of at most `limit`.
    #[track_caller]
    pub fn new(limit: Duration) -> Self {
        let (caller, thread) = (Location::caller(), thread::current());
        let (waits, is_over) = mpsc::channel();
        let watch = move || {
            if is_over.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                let name = thread.name().unwrap_or("a thread");
                let line = format!("{caller}: {name} has waited for {limit:?} in vain\n");
                // Not eprintln: the output of a test is kept from the terminal, and lost with it.
                drop(io::stderr().write_all(line.as_bytes()));
                std::process::abort();
            }
        };
        let watch = thread::Builder::new().name("bounded".into()).spawn(watch);
        Self {
            waits: Some(waits),
            // A test in which no further thread can be started waits without a bound.
            watch: watch.ok(),
        }
    }
}

impl Default for Bound {
    /// Starts a wait of at most [`LIMIT`].
    #[track_caller]
    fn default() -> Self {
        Self::new(LIMIT)
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        drop(self.waits.take());
        if let Some(watch) = self.watch.take() {
            drop(watch.join());
        }
    }
}

/// Bounded waits for a thread.
pub trait BoundedJoin {
    /// The result of the thread.
    type Output;

    /// As `join`, within [`LIMIT`].
    ///
    /// # Errors
    /// As `join`.
    fn join_bounded(self) -> thread::Result<Self::Output>;
}

impl<T> BoundedJoin for JoinHandle<T> {
    type Output = T;

    #[track_caller]
    fn join_bounded(self) -> thread::Result<T> {
        bounded(|| self.join())
    }
}

impl<T> BoundedJoin for ScopedJoinHandle<'_, T> {
    type Output = T;

    #[track_caller]
    fn join_bounded(self) -> thread::Result<T> {
        bounded(|| self.join())
    }
}

/// Bounded waits for a message.
pub trait BoundedReceiver<T> {
    /// As `recv`, within [`LIMIT`].
    ///
    /// # Errors
    /// As `recv`.
    fn recv_bounded(&self) -> Result<T, RecvError>;
}

impl<T> BoundedReceiver<T> for Receiver<T> {
    #[track_caller]
    fn recv_bounded(&self) -> Result<T, RecvError> {
        bounded(|| self.recv())
    }
}

/// Bounded waits for other threads at a barrier.
pub trait BoundedBarrier {
    /// As `wait`, within [`LIMIT`].
    fn wait_bounded(&self) -> BarrierWaitResult;
}

impl BoundedBarrier for Barrier {
    #[track_caller]
    fn wait_bounded(&self) -> BarrierWaitResult {
        bounded(|| self.wait())
    }
}

/// Bounded waits for the end of a process that was started.
pub trait BoundedChild {
    /// As `wait`, within [`LIMIT`].
    ///
    /// # Errors
    /// As `wait`.
    fn wait_bounded(&mut self) -> io::Result<ExitStatus>;

    /// As `wait_with_output`, within [`LIMIT`].
    ///
    /// # Errors
    /// As `wait_with_output`.
    fn wait_with_output_bounded(self) -> io::Result<Output>;
}

impl BoundedChild for Child {
    #[track_caller]
    fn wait_bounded(&mut self) -> io::Result<ExitStatus> {
        bounded(|| self.wait())
    }

    #[track_caller]
    fn wait_with_output_bounded(self) -> io::Result<Output> {
        bounded(|| self.wait_with_output())
    }
}

/// A process that is killed when this is dropped, so that a test that fails leaves none behind.
#[derive(Debug)]
pub struct Killed(pub Child);

impl Drop for Killed {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait_bounded().ok();
    }
}

/// Bounded runs of a process.
pub trait BoundedCommand {
    /// As `output`, within [`LIMIT`].
    ///
    /// # Errors
    /// As `output`.
    fn output_bounded(&mut self) -> io::Result<Output>;

    /// As `status`, within [`LIMIT`].
    ///
    /// # Errors
    /// As `status`.
    fn status_bounded(&mut self) -> io::Result<ExitStatus>;
}

impl BoundedCommand for Command {
    #[track_caller]
    fn output_bounded(&mut self) -> io::Result<Output> {
        bounded(|| self.output())
    }

    #[track_caller]
    fn status_bounded(&mut self) -> io::Result<ExitStatus> {
        bounded(|| self.status())
    }
}
