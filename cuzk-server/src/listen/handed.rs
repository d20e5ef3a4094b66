//! Sockets that systemd hands over.
//!
//! The invariant: without systemd's variables nothing is touched.

use std::env;
use std::io;
use std::net::TcpListener;

use listenfd::ListenFd;

use super::error::ListenError;
use super::{Listener, Listeners};

/// The name of the socket of the HTTP pages, `FileDescriptorName=http` in its unit.
const HTTP_NAME: &str = "http";

/// Takes the sockets of systemd; `None` if it handed none over.
///
/// # Errors
///
/// A socket is neither a unix nor a TCP socket that listens.
pub(super) fn take() -> Result<Option<Listeners>, ListenError> {
    let names = env::var("LISTEN_FDNAMES").unwrap_or_default();
    let mut sockets = ListenFd::from_env();
    if sockets.len() == 0 {
        return Ok(None);
    }
    let mut listeners = Listeners {
        grpc: Vec::new(),
        http: None,
    };
    let mut names = names.split(':');
    for index in 0..sockets.len() {
        let name = names.next().unwrap_or_default();
        let failed = |source: io::Error| ListenError::Handed {
            name: name.to_owned(),
            source,
        };
        if name == HTTP_NAME && listeners.http.is_none() {
            let socket = tcp(&mut sockets, index).map_err(failed)?;
            listeners.http = Some(socket);
            continue;
        }
        let listener = match unix(&mut sockets, index) {
            Ok(listener) => listener,
            Err(_) => Listener::Tcp(tcp(&mut sockets, index).map_err(failed)?),
        };
        listeners.grpc.push(listener);
    }
    Ok(Some(listeners))
}

fn gone() -> io::Error {
    io::Error::other("it was taken before")
}

fn tcp(sockets: &mut ListenFd, index: usize) -> io::Result<TcpListener> {
    let socket = sockets.take_tcp_listener(index)?.ok_or_else(gone)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

fn unix(sockets: &mut ListenFd, index: usize) -> io::Result<Listener> {
    let socket = sockets.take_unix_listener(index)?.ok_or_else(gone)?;
    socket.set_nonblocking(true)?;
    let path = socket.local_addr()?;
    let path = path.as_pathname();
    let name = path.map_or_else(
        || "a unix socket of systemd".to_owned(),
        |path| format!("unix://{}", path.display()),
    );
    Ok(Listener::Unix {
        socket,
        file: None,
        name,
    })
}
