//! The reason for which a daemon ended an encrypted connection.
//!
//! Not a refused call. TLS 1.3 tells a refused certificate with the first bytes that the
//! daemon sends, when a call is already under way. The libraries for HTTP/2 and gRPC say no
//! more than "connection closed" then. The invariant: a reason is given once.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The last reason, if there is one. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Refusal(Arc<Mutex<Option<String>>>);

impl Refusal {
    /// Returns the reason, and forgets it.
    pub(super) fn take(&self) -> Option<String> {
        let mut reason = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        reason.take()
    }

    fn note(&self, error: &io::Error) {
        if error
            .get_ref()
            .is_some_and(|inner| inner.is::<rustls::Error>())
        {
            let mut reason = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            *reason = Some(error.to_string());
        }
    }
}

/// A stream whose errors of TLS are noted.
pub(super) struct Watched<S> {
    stream: S,
    refusal: Refusal,
}

impl<S> Watched<S> {
    pub(super) fn new(stream: S, refusal: Refusal) -> Self {
        Self { stream, refusal }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if let Poll::Ready(Err(error)) = &read {
            self.refusal.note(error);
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
