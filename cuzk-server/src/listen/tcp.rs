//! TCP sockets.
//!
//! Not TLS. The invariant: a socket that is returned listens and does not block.

use std::io;
use std::net::TcpListener;

use cuzk_core::config::Address;
use cuzk_core::error::ErrorCode;
use nix::sys::socket::{Backlog, listen, setsockopt, sockopt};
use std::os::fd::AsFd;

use super::error::{ListenError, lacks_files};

/// Seconds without a sign of the peer after which the system asks for one.
const KEEPALIVE_IDLE_S: u32 = 60;

/// Seconds between the questions, and their number.
const KEEPALIVE_EVERY_S: u32 = 15;
const KEEPALIVE_TRIES: u32 = 4;

/// Returns a socket that listens on a host's address. `key` is for errors.
///
/// # Errors
///
/// The address is in use, or is none of this machine's.
pub(super) fn bind(key: &'static str, host: &str, port: u16) -> Result<TcpListener, ListenError> {
    let host = host.to_owned();
    let address = || {
        let host = host.clone();
        Address::Tcp { host, port }.to_string()
    };
    let bound = TcpListener::bind((host.as_str(), port)).and_then(|socket| {
        socket.set_nonblocking(true)?;
        // The library asks for a short queue. Hundreds of clients may come back at once.
        listen(&socket, Backlog::MAXALLOWABLE)?;
        Ok(socket)
    });
    bound.map_err(|source| bind_error(key, address(), source))
}

/// The error of an address that cannot be had.
pub(super) fn bind_error(key: &'static str, address: String, source: io::Error) -> ListenError {
    match source.kind() {
        io::ErrorKind::AddrInUse => ListenError::InUse { key, address },
        kind => ListenError::Bind {
            key,
            address,
            advice: match kind {
                _ if lacks_files(&source) => ErrorCode::OpenFiles.remedy(),
                io::ErrorKind::PermissionDenied => "write a port above 1023",
                _ => "write an address of this machine",
            },
            source,
        },
    }
}

/// Lets the system find out that a peer is gone, and send small answers at once.
pub(super) fn tune(socket: &impl AsFd) -> nix::Result<()> {
    setsockopt(socket, sockopt::TcpNoDelay, &true)?;
    setsockopt(socket, sockopt::KeepAlive, &true)?;
    setsockopt(socket, sockopt::TcpKeepIdle, &KEEPALIVE_IDLE_S)?;
    setsockopt(socket, sockopt::TcpKeepInterval, &KEEPALIVE_EVERY_S)?;
    setsockopt(socket, sockopt::TcpKeepCount, &KEEPALIVE_TRIES)
}
