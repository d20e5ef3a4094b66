//! HTTP/1 connections of a listener.
//!
//! Not the listener, which the daemon binds. The invariants: at most
//! [`CONNECTIONS_MAX`] connections are open. A client that is slow to send its request
//! loses its connection, and so does one that reads nothing of the reply.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{Sleep, sleep, timeout};

/// The most connections at a time. More wait in the listener's backlog.
pub const CONNECTIONS_MAX: usize = 256;

/// The patience with clients.
#[derive(Clone, Copy)]
struct Limits {
    /// The longest time in which a client sends the head of a request, also of the next
    /// one on a connection that is kept.
    head: Duration,
    /// The longest time in which a client reads nothing of a reply.
    unread: Duration,
    /// The time that connections have to end after the shutdown. Event streams never end
    /// by themselves, and are cut after it.
    shutdown: Duration,
}

const LIMITS: Limits = Limits {
    head: Duration::from_secs(10),
    unread: Duration::from_secs(30),
    shutdown: Duration::from_secs(1),
};

/// The pause after an accept that failed, for example because there is no descriptor left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves the connections of `listener` until `shutdown` ends. Then it accepts no more, and
/// gives the open connections a second to finish their replies.
pub async fn serve(listener: TcpListener, router: Router, shutdown: impl Future<Output = ()>) {
    serve_within(LIMITS, listener, router, shutdown).await;
}

async fn serve_within(
    limits: Limits,
    listener: TcpListener,
    router: Router,
    shutdown: impl Future<Output = ()>,
) {
    let connections = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let open = GracefulShutdown::new();
    let mut builder = auto::Builder::new(TokioExecutor::new()).http1_only();
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head);
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let next = async {
            let place = Arc::clone(&connections).acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            () = &mut shutdown => break,
            next = next => next,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(problem) => {
                tracing::warn!(%problem, "HTTP: a connection could not be accepted");
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let stream = TokioIo::new(Timed::new(stream, limits.unread));
        let service = TowerToHyperService::new(router.clone());
        let connection = builder.serve_connection(stream, service).into_owned();
        let connection = open.watch(connection);
        tokio::spawn(async move {
            // An error here is a client that went away or was too slow.
            if let Err(problem) = connection.await {
                tracing::debug!(%problem, "HTTP: a connection ended");
            }
            drop(place);
        });
    }
    drop(listener);
    if timeout(limits.shutdown, open.shutdown()).await.is_err() {
        tracing::debug!("HTTP: connections were cut at the shutdown");
    }
}

/// A connection whose writes fail once the other side has read nothing for a time.
struct Timed {
    stream: TcpStream,
    patience: Duration,
    /// Runs while a write waits.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl Timed {
    fn new(stream: TcpStream, patience: Duration) -> Self {
        let stalled = None;
        Self {
            stream,
            patience,
            stalled,
        }
    }

    /// Returns `written`, or an error if writes have waited for too long.
    fn in_time<R>(
        &mut self,
        written: Poll<io::Result<R>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<R>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let patience = self.patience;
        let stalled = self
            .stalled
            .get_or_insert_with(|| Box::pin(sleep(patience)));
        ready!(stalled.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Timed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Timed {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.in_time(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.in_time(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests;
