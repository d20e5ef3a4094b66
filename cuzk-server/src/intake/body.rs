//! The body of a request, metered.
//!
//! The invariants: a body gives no more bytes than its messages may have. A sender that is
//! too slow for those who wait is ended, even if it sends nothing. A sender from which nothing
//! is read, because critical work runs, is not slow.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame};
use tokio::time::{Instant, Sleep, sleep};
use tonic::Status;
use tonic::body::Body;

use super::framing::Framing;
use super::guard::IntakeGuard;
use super::way::{LOOK_AGAIN, Stand};

/// How often the pace of a sender is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A body of which nothing is read that may not be.
pub(super) struct MeteredBody {
    inner: Body,
    /// Frames that were read to see what comes.
    read: VecDeque<Frame<Bytes>>,
    framing: Framing,
    limits: Limits,
    guard: Option<IntakeGuard>,
    look: Pin<Box<Sleep>>,
    stand: Stand,
    look_again: Pin<Box<Sleep>>,
    has_ended: bool,
}

/// The most bytes of messages; `None` where there may be none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Of the next message.
    next_bytes: Option<u64>,
    /// Of those after it.
    later_bytes: Option<u64>,
}

impl Limits {
    /// Returns the limits of a call with one message.
    pub(super) fn one(bytes: u64) -> Self {
        Self {
            next_bytes: Some(bytes),
            later_bytes: None,
        }
    }

    /// Returns the limits of a call with any number of messages.
    pub(super) fn each(bytes: u64) -> Self {
        Self {
            next_bytes: Some(bytes),
            later_bytes: Some(bytes),
        }
    }

    /// Returns true if the one message of the call has not begun.
    fn lacks_message(&self) -> bool {
        self.next_bytes.is_some() && self.later_bytes.is_none()
    }

    /// Judges the next message.
    fn begin(&mut self, flag: u8, bytes: u64) -> Result<(), Status> {
        if flag != 0 {
            return Err(Status::unimplemented(
                "the message is compressed; send it without compression",
            ));
        }
        let limit = self.next_bytes.ok_or_else(|| {
            Status::invalid_argument("the call has a second message; send one request a call")
        })?;
        self.next_bytes = self.later_bytes;
        if bytes > limit {
            return Err(too_large(bytes, limit));
        }
        Ok(())
    }
}

/// Returns the answer to a message that is too large, with the code that tonic has for it.
pub(super) fn too_large(bytes: u64, limit: u64) -> Status {
    Status::out_of_range(format!(
        "the message has {bytes} bytes, and this call takes at most {limit}; send the proofs \
         of one sector or partition a call, or prove with `cuzk prove`"
    ))
}

impl MeteredBody {
    pub(super) fn new(
        inner: Body,
        read: VecDeque<Frame<Bytes>>,
        limits: Limits,
        guard: Option<IntakeGuard>,
    ) -> Self {
        Self {
            inner,
            read,
            framing: Framing::default(),
            limits,
            guard,
            look: Box::pin(sleep(LOOK_EVERY)),
            stand: Stand::default(),
            look_again: Box::pin(sleep(LOOK_AGAIN)),
            has_ended: false,
        }
    }

    fn count(&mut self, frame: &Frame<Bytes>) -> Result<(), Status> {
        let Some(bytes) = frame.data_ref() else {
            return Ok(());
        };
        let limits = &mut self.limits;
        self.framing
            .feed(bytes, |flag, length| limits.begin(flag, length))?;
        if let Some(guard) = &self.guard {
            guard.receive(bytes.len() as u64);
        }
        Ok(())
    }

    /// Returns a sentence if the bytes so far are not all of a call.
    fn missing(&self) -> Option<&'static str> {
        if self.framing.is_within_message() {
            Some("the message is cut off; send it again")
        } else if self.limits.lacks_message() {
            Some("the call has no message; send one, which may be empty")
        } else {
            None
        }
    }

    /// Returns an error if the sender has to end, and wakes the task for the next look.
    fn poll_pace(&mut self, cx: &mut Context<'_>) -> Result<(), Status> {
        let Some(guard) = &self.guard else {
            return Ok(());
        };
        while self.look.as_mut().poll(cx).is_ready() {
            if guard.end_if_slow() {
                return Err(Status::resource_exhausted(
                    "the request came slower than 1 MiB/s while others waited for \
                     server.request_memory; call again over a faster connection",
                ));
            }
            self.look.as_mut().reset(Instant::now() + LOOK_EVERY);
        }
        Ok(())
    }

    /// Returns ready if the body may be read, and wakes the task for the next look otherwise.
    fn poll_way(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(guard) = &self.guard else {
            return Poll::Ready(());
        };
        let mut has_stood = false;
        while guard.way().is_some_and(|way| self.stand.gives(way)) {
            has_stood = true;
            if self.look_again.as_mut().poll(cx).is_pending() {
                guard.restart_pace();
                return Poll::Pending;
            }
            self.look_again.as_mut().reset(Instant::now() + LOOK_AGAIN);
        }
        if has_stood {
            guard.restart_pace();
        }
        Poll::Ready(())
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        ready!(self.poll_way(cx));
        let frame = match self.read.pop_front() {
            Some(frame) => frame,
            None => match Pin::new(&mut self.inner).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => frame,
                Poll::Ready(None) => {
                    let missing = self.missing().map(Status::invalid_argument);
                    return Poll::Ready(missing.map(Err));
                }
                Poll::Ready(Some(Err(status))) => return Poll::Ready(Some(Err(status))),
                Poll::Pending => {
                    return match self.poll_pace(cx) {
                        Ok(()) => Poll::Pending,
                        Err(status) => Poll::Ready(Some(Err(status))),
                    };
                }
            },
        };
        let counted = self.count(&frame);
        Poll::Ready(Some(counted.map(|()| frame)))
    }
}

impl HttpBody for MeteredBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if self.has_ended {
            return Poll::Ready(None);
        }
        let next = ready!(self.poll_next(cx));
        self.has_ended = !matches!(next, Some(Ok(_)));
        Poll::Ready(next)
    }

    fn is_end_stream(&self) -> bool {
        // The end is judged when it is read, so a body without bytes is read too.
        self.has_ended
    }
}
