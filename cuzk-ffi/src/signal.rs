//! The end of a job as something that `poll`, `select` and `epoll` wait for.
//!
//! Not a callback: nothing of the caller's runs. The invariant: the eventfd becomes readable
//! with the job's end, also if the job had ended before.

use std::os::fd::{AsRawFd as _, RawFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};

use cuzk_core::JobHandle;
use cuzk_core::job::Ended;
use nix::errno::Errno;
use nix::sys::eventfd::{EfdFlags, EventFd};

/// An eventfd that a job's end makes readable.
#[derive(Debug)]
pub(crate) struct EndSignal {
    event: Arc<Event>,
    /// Keeps the waker with the job.
    _end: Ended,
}

#[derive(Debug)]
struct Event(EventFd);

impl Wake for Event {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // It fails only if the counter is full, and then the eventfd is readable.
        let _ = self.0.write(1);
    }
}

impl EndSignal {
    /// Makes an eventfd for a job.
    ///
    /// # Errors
    /// The process has as many file descriptors as it may have.
    pub(crate) fn new(job: &JobHandle) -> Result<Self, Errno> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let event = Arc::new(Event(EventFd::from_flags(flags)?));
        let waker = Waker::from(Arc::clone(&event));
        let mut end = job.clone().into_future();
        let ended = Pin::new(&mut end).poll(&mut Context::from_waker(&waker));
        if ended.is_ready() {
            waker.wake();
        }
        Ok(Self { event, _end: end })
    }

    /// Returns the number of the file descriptor, which is valid as long as `self`.
    pub(crate) fn descriptor(&self) -> RawFd {
        self.event.0.as_raw_fd()
    }
}
