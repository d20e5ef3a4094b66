//! SIGINT and SIGTERM, as a value that a command looks at.
//!
//! The handler only remembers the signal. The command ends by itself, in bounded time. The
//! invariant: the second signal always ends the process at once. So does the first one after work
//! that was watched for its own time only.

use std::mem;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cuzk_memory::Cancellation;
use signal_hook::low_level::unregister;
use signal_hook::{SigId, flag};

use crate::failure::Failure;
use crate::signal::Signal;
use crate::threads;

/// The time between two looks for a signal.
const POLL: Duration = Duration::from_millis(100);

/// The longest wait for work that was told to stop.
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// The handlers of work that is over. They end the process at once, as if there were none.
static ENDING: Mutex<Vec<SigId>> = Mutex::new(Vec::new());

/// Remembers a signal. Until the second, signals have no other effect from now on.
#[derive(Debug)]
pub(crate) struct Interrupt {
    /// The number of the last one, or zero.
    number: Arc<AtomicUsize>,
    /// True if the next signal ends the process at once.
    came: Arc<AtomicBool>,
    handlers: Vec<SigId>,
    /// True if signals end the process again once this is dropped.
    is_temporary: bool,
}

impl Interrupt {
    /// # Errors
    /// If the system takes no handlers.
    pub(crate) fn watch() -> Result<Self, Failure> {
        let number = Arc::new(AtomicUsize::new(0));
        let came = Arc::new(AtomicBool::new(false));
        let mut handlers = Vec::new();
        for signal in Signal::ALL {
            let raw = signal.number();
            let code = i32::from(signal.exit_code());
            let value = usize::try_from(raw).unwrap_or(usize::MAX);
            // The order matters: a signal sets a flag, at which the next signal looks.
            let registered = flag::register_conditional_shutdown(raw, code, Arc::clone(&came))
                .and_then(|end| Ok([end, flag::register(raw, Arc::clone(&came))?]))
                .and_then(|[end, flag]| {
                    let number = flag::register_usize(raw, Arc::clone(&number), value)?;
                    Ok([end, flag, number])
                });
            handlers.extend(registered.map_err(|error| {
                Failure::failed(format!("{} cannot be handled: {error}", signal.name()))
            })?);
        }
        let mut ending = ENDING.lock().unwrap_or_else(PoisonError::into_inner);
        for handler in mem::take(&mut *ending) {
            unregister(handler);
        }
        Ok(Self {
            number,
            came,
            handlers,
            is_temporary: false,
        })
    }

    /// As [`Self::watch`], until the result is dropped. Not to be asked for beside another one,
    /// whose command would end at once afterwards.
    ///
    /// # Errors
    /// As [`Self::watch`].
    pub(crate) fn watch_for_a_time() -> Result<Self, Failure> {
        let mut watched = Self::watch()?;
        watched.is_temporary = true;
        Ok(watched)
    }

    /// Returns the result of `work`, unless a signal comes before. `left` is then called, while
    /// the work still runs. It removes what the work has begun, and describes the state in which
    /// the work is left. The work has a thread of its own, which ends with the process.
    ///
    /// # Errors
    /// The signal, a panic in `work`, which `what` names, or a system without threads.
    pub(crate) fn unless_it_comes<T: Send + 'static>(
        &self,
        what: &str,
        left: impl FnOnce() -> String,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let ended = self.wait_for(what, work)?;
        ended.map_err(|signal| Failure::stopped(signal, left()))
    }

    /// As [`Self::unless_it_comes`], for work that stops once `stop` is raised. After a signal
    /// it is waited for, so that it leaves no unfinished file. `left` is asked after that,
    /// because the work may have come to its end meanwhile.
    ///
    /// # Errors
    /// As [`Self::unless_it_comes`].
    pub(crate) fn stops<T: Send + 'static>(
        &self,
        what: &str,
        left: impl FnOnce() -> String,
        stop: &Cancellation,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let (end, ended) = mpsc::channel::<()>();
        let result = self.wait_for(what, move || {
            // Dropped when the work has ended, also by a panic.
            let _end = end;
            work()
        });
        if !matches!(result, Ok(Ok(_))) {
            stop.cancel();
            ended.recv_timeout(STOP_LIMIT).ok();
        }
        result?.map_err(|signal| Failure::stopped(signal, left()))
    }

    /// Returns the result of `work`, or the signal that came before.
    fn wait_for<T: Send + 'static>(
        &self,
        what: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<Result<T, Signal>, Failure> {
        let (end, ended) = mpsc::channel();
        // The receiver is gone after a signal.
        threads::start("cuzk-command", move || drop(end.send(work())))?;
        loop {
            match ended.recv_timeout(POLL) {
                Ok(value) => return Ok(Ok(value)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    let problem = format!("{what} panicked; please report it");
                    return Err(Failure::failed(problem));
                }
            }
            if let Some(signal) = self.signal() {
                return Ok(Err(signal));
            }
        }
    }

    /// Returns the signal that came, if one did.
    pub(crate) fn signal(&self) -> Option<Signal> {
        let number = i32::try_from(self.number.load(Ordering::SeqCst)).ok()?;
        Signal::ALL
            .into_iter()
            .find(|signal| signal.number() == number)
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        if self.is_temporary {
            // No handler can be taken away and leave what was before it.
            self.came.store(true, Ordering::SeqCst);
            let mut ending = ENDING.lock().unwrap_or_else(PoisonError::into_inner);
            ending.append(&mut self.handlers);
        }
    }
}
