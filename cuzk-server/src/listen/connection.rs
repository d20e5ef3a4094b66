//! A connection that was accepted.
//!
//! Not what is said on it. The invariants: a connection counts against the bound of its
//! listener until it is dropped. Its reader gets every byte that the client sent.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::OwnedSemaphorePermit;
use tokio_rustls::server::TlsStream;
use tonic::transport::server::Connected;

use crate::access::Peer;

/// The first bytes of each HTTP/2 connection.
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A connection that was accepted, with its TLS handshake behind it.
#[derive(Debug)]
pub struct Connection {
    stream: Stream,
    /// The part of the preface that was read from the stream and not from here.
    preface: &'static [u8],
    peer: Peer,
    _permit: OwnedSemaphorePermit,
}

/// The kinds of streams.
#[derive(Debug)]
pub(super) enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Connection {
    /// Returns a connection whose preface was read from `stream`.
    pub(super) fn new(stream: Stream, peer: Peer, permit: OwnedSemaphorePermit) -> Self {
        Self {
            stream,
            preface: PREFACE,
            peer,
            _permit: permit,
        }
    }

    /// Returns the other end.
    #[must_use]
    pub fn peer(&self) -> Peer {
        self.peer
    }
}

impl Connected for Connection {
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Peer {
        self.peer
    }
}

/// Calls a method of whatever stream it is.
macro_rules! with_stream {
    ($connection:expr, $method:ident ( $($argument:expr),* )) => {
        match &mut $connection.get_mut().stream {
            Stream::Unix(stream) => Pin::new(stream).$method($($argument),*),
            Stream::Tcp(stream) => Pin::new(stream).$method($($argument),*),
            Stream::Tls(stream) => Pin::new(stream.as_mut()).$method($($argument),*),
        }
    };
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.preface.is_empty() {
            let count = buffer.remaining().min(self.preface.len());
            let (read, rest) = self.preface.split_at(count);
            buffer.put_slice(read);
            self.preface = rest;
            return Poll::Ready(Ok(()));
        }
        with_stream!(self, poll_read(cx, buffer))
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        with_stream!(self, poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        with_stream!(self, poll_write_vectored(cx, slices))
    }

    fn is_write_vectored(&self) -> bool {
        match &self.stream {
            Stream::Unix(stream) => stream.is_write_vectored(),
            Stream::Tcp(stream) => stream.is_write_vectored(),
            Stream::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        with_stream!(self, poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        with_stream!(self, poll_shutdown(cx))
    }
}
