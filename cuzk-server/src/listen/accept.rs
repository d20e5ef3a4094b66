//! Accepting connections.
//!
//! Not serving them. The invariants:
//!
//! * A client that is silent keeps no other client from being accepted, and loses its place.
//! * A connection that is given on has begun with HTTP/2.
//! * No error of `accept` ends a listener.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_stream::Stream as AsyncStream;

use super::connection::{Connection, PREFACE, Stream};
use super::unix::SocketFile;
use super::{Listener, tcp};
use crate::access::{Access, Channel, Peer};

/// The most connections at a time. Each listener has its part of them, so that clients of
/// one cannot take the connections of another.
pub const CONNECTIONS_MAX: usize = 4096;

/// The longest time from `accept` to the end of HTTP/2's preface, TLS included.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);

/// The longest time in which a client reads why it was refused.
const LINGER_MAX: Duration = Duration::from_secs(1);

/// The pause after an error of `accept`, such as too many open files.
const ERROR_PAUSE: Duration = Duration::from_millis(100);

/// The first byte of a TLS handshake. No HTTP/2 connection begins with it.
const TLS_HANDSHAKE: u8 = 0x16;

/// The connections of all listeners, in the order in which they are ready. Listening ends
/// when it is dropped; connections that were taken stay.
#[derive(Debug)]
pub struct Incoming {
    ready: mpsc::Receiver<Connection>,
    _loops: JoinSet<()>,
    _files: Vec<SocketFile>,
}

impl Incoming {
    /// Begins to accept.
    pub(super) fn begin(listeners: Vec<Listener>, access: &Arc<Access>) -> io::Result<Self> {
        let (ready_in, ready) = mpsc::channel(1);
        let mut loops = JoinSet::new();
        let mut files = Vec::new();
        let bound = (CONNECTIONS_MAX / listeners.len().max(1)).max(1);
        for listener in listeners {
            let hall = Hall {
                access: Arc::clone(access),
                permits: Arc::new(Semaphore::new(bound)),
                ready: ready_in.clone(),
            };
            match listener {
                Listener::Unix { socket, file, .. } => {
                    files.extend(file);
                    loops.spawn(accept_unix(UnixListener::from_std(socket)?, hall));
                }
                Listener::Tcp(socket) => {
                    loops.spawn(accept_tcp(TcpListener::from_std(socket)?, hall));
                }
            }
        }
        Ok(Self {
            ready,
            _loops: loops,
            _files: files,
        })
    }
}

impl AsyncStream for Incoming {
    type Item = io::Result<Connection>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.ready.poll_recv(cx).map(|next| next.map(Ok))
    }
}

/// The things that the loop of a listener needs.
struct Hall {
    access: Arc<Access>,
    permits: Arc<Semaphore>,
    ready: mpsc::Sender<Connection>,
}

impl Hall {
    /// Waits until another connection may come; `None` at the end.
    async fn permit(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.permits).acquire_owned().await.ok()
    }

    /// Gives a connection on once `greeting` has taken it through its handshake.
    async fn admit_greeted(
        &self,
        address: impl fmt::Display,
        greeting: impl Future<Output = io::Result<(Stream, Peer)>>,
        permit: OwnedSemaphorePermit,
    ) {
        match timeout(HANDSHAKE_MAX, greeting).await {
            Ok(Ok((stream, peer))) => {
                // The receiver is gone when the daemon stops listening.
                let _ = self.ready.send(Connection::new(stream, peer, permit)).await;
            }
            // A health check or a port scan: an operator can do nothing about it.
            Ok(Err(error)) if has_left(&error) => {
                tracing::debug!("{address}: no connection: {error}");
            }
            Ok(Err(error)) => tracing::info!("{address}: no connection: {error}"),
            Err(_) => tracing::info!(
                "{address}: no connection: the client did not begin within {} s",
                HANDSHAKE_MAX.as_secs()
            ),
        }
    }
}

/// Returns true if a client went away before it had begun.
fn has_left(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    let kinds = [
        BrokenPipe,
        ConnectionAborted,
        ConnectionReset,
        UnexpectedEof,
    ];
    kinds.contains(&error.kind())
}

async fn accept_unix(listener: UnixListener, hall: Hall) {
    let hall = Arc::new(hall);
    let mut greetings = JoinSet::new();
    while let Some(permit) = hall.permit().await {
        match listener.accept().await {
            Ok((stream, _)) => {
                let hall = Arc::clone(&hall);
                greetings.spawn(async move {
                    let greeted = greet_unix(stream);
                    hall.admit_greeted("a unix socket", greeted, permit).await;
                });
            }
            Err(error) => pause(&error).await,
        }
        // Those that have ended leave.
        while greetings.try_join_next().is_some() {}
    }
}

async fn greet_unix(mut stream: UnixStream) -> io::Result<(Stream, Peer)> {
    let peer = unix_peer(&stream)?;
    read_preface(&mut stream).await?;
    Ok((Stream::Unix(stream), peer))
}

fn unix_peer(stream: &UnixStream) -> io::Result<Peer> {
    let peer = stream.peer_cred()?;
    Ok(Peer::Unix {
        uid: peer.uid(),
        gid: peer.gid(),
        pid: peer.pid(),
    })
}

async fn accept_tcp(listener: TcpListener, hall: Hall) {
    let hall = Arc::new(hall);
    let mut greetings = JoinSet::new();
    while let Some(permit) = hall.permit().await {
        match listener.accept().await {
            Ok((stream, address)) => {
                let hall = Arc::clone(&hall);
                greetings.spawn(async move {
                    let greeted = greet_tcp(stream, address, &hall.access);
                    hall.admit_greeted(address, greeted, permit).await;
                });
            }
            Err(error) => pause(&error).await,
        }
        while greetings.try_join_next().is_some() {}
    }
}

async fn greet_tcp(
    stream: TcpStream,
    address: SocketAddr,
    access: &Access,
) -> io::Result<(Stream, Peer)> {
    if let Err(error) = tcp::tune(&stream) {
        tracing::debug!("{address}: {error}");
    }
    let (stream, channel) = handshake(stream, access).await?;
    Ok((stream, Peer::Tcp { address, channel }))
}

async fn handshake(mut stream: TcpStream, access: &Access) -> io::Result<(Stream, Channel)> {
    let mut first = [0];
    if stream.peek(&mut first).await? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    if first[0] != TLS_HANDSHAKE {
        read_preface(&mut stream).await?;
        return Ok((Stream::Tcp(stream), Channel::Plain));
    }
    let config = access.tls().ok_or_else(|| {
        io::Error::other("the client speaks TLS, but server.tls_certificate is not set")
    })?;
    let accepted = TlsAcceptor::from(config).accept(stream).into_fallible();
    let mut stream = match accepted.await {
        Ok(stream) => stream,
        Err((error, stream)) => {
            linger(stream).await;
            return Err(error);
        }
    };
    let channel = match stream.get_ref().1.peer_certificates() {
        Some(_) => Channel::Certified,
        None => Channel::Encrypted,
    };
    read_preface(&mut stream).await?;
    Ok((Stream::Tls(Box::new(stream)), channel))
}

/// Waits until a refused client has closed its side. A client of TLS 1.3 writes before it
/// reads the refusal. A socket that is closed already would answer that with a reset, and the
/// client would not learn why.
async fn linger(mut stream: TcpStream) {
    stream.shutdown().await.ok();
    let mut rest = [0; 1024];
    let end = async { while stream.read(&mut rest).await.is_ok_and(|count| count > 0) {} };
    timeout(LINGER_MAX, end).await.ok();
}

/// Reads the preface of HTTP/2 and nothing after it. The connection gives it to its reader
/// once more.
async fn read_preface(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<()> {
    let mut expected = PREFACE;
    let mut buffer = [0; PREFACE.len()];
    while !expected.is_empty() {
        let room = buffer.get_mut(..expected.len()).unwrap_or_default();
        let count = stream.read(room).await?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let read = buffer.get(..count).unwrap_or_default();
        expected = expected.strip_prefix(read).ok_or_else(|| {
            io::Error::other("the client does not speak HTTP/2; the pages are at server.http")
        })?;
    }
    Ok(())
}

/// Waits until `accept` may work again. A connection that was given up by its client, and
/// a lack of descriptors or memory, are no reason to stop listening.
async fn pause(error: &io::Error) {
    match error.kind() {
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset => {}
        _ => {
            tracing::warn!("cannot accept a connection: {error}; trying again");
            sleep(ERROR_PAUSE).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuzk_bounded::Bound;

    #[tokio::test]
    async fn a_client_of_another_protocol_is_told_from_a_slow_one() {
        let _bound = Bound::default();
        for bytes in [
            &b"GET / HTTP/1.0\r\n\r\n"[..],
            b"PRI * HTTP/1.0\r\n\r\n",
            b"\0",
        ] {
            let error = read_preface(&mut &bytes[..]).await.unwrap_err();
            assert!(!has_left(&error), "an operator can mend it: {error}");
            assert!(error.to_string().contains("server.http"), "{error}");
        }
        let cut = &mut &PREFACE[..20];
        let error = read_preface(cut).await.unwrap_err();
        assert!(has_left(&error), "{error}");
        let whole = [PREFACE, b"after"].concat();
        let mut rest = &whole[..];
        read_preface(&mut rest).await.unwrap();
        assert_eq!(rest, b"after");
    }
}
