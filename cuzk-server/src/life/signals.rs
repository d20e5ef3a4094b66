//! The signals that steer the daemon, as requests.
//!
//! Not the answers to them. The invariant: a signal that came is a request, even if it came
//! while nobody waited; several of one kind that came together are one.

use std::io;

use tokio::signal::unix::{self, SignalKind};

/// A signal that stops the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopSignal {
    /// SIGINT: Ctrl-C.
    Interrupt,
    /// SIGTERM: a service manager.
    Terminate,
}

impl StopSignal {
    /// Returns its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "SIGINT",
            Self::Terminate => "SIGTERM",
        }
    }

    /// Returns the exit code of a process that it ended, as in shells: 128 and its number.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Interrupt => 130,
            Self::Terminate => 143,
        }
    }
}

/// A request that came as a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// The first SIGTERM or SIGINT: to finish the work that is urgent or begun, and to end.
    Stop(StopSignal),
    /// A second one: to end at once, with the signal's exit code.
    StopNow(StopSignal),
    /// SIGHUP: to read the configuration again.
    Reload,
}

/// The stream of requests.
#[derive(Debug)]
pub struct Signals {
    interrupt: unix::Signal,
    terminate: unix::Signal,
    hangup: unix::Signal,
    is_stopping: bool,
}

impl Signals {
    /// Starts to listen. From here on these signals end the process no more. Called in the
    /// async runtime, before the daemon says that it is ready.
    ///
    /// # Errors
    /// The system does not let a handler be set.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: unix::signal(SignalKind::interrupt())?,
            terminate: unix::signal(SignalKind::terminate())?,
            hangup: unix::signal(SignalKind::hangup())?,
            is_stopping: false,
        })
    }

    /// Waits for the next request. A call that is dropped loses none.
    pub async fn next(&mut self) -> Request {
        let signal = tokio::select! {
            _ = self.interrupt.recv() => StopSignal::Interrupt,
            _ = self.terminate.recv() => StopSignal::Terminate,
            _ = self.hangup.recv() => return Request::Reload,
        };
        if std::mem::replace(&mut self.is_stopping, true) {
            Request::StopNow(signal)
        } else {
            Request::Stop(signal)
        }
    }
}
