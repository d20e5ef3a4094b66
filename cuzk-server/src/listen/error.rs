//! Sockets that cannot be had.
//!
//! The invariant: every message names the key of the configuration and what to do.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use cuzk_core::error::ErrorCode;

/// A socket that cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// Another process listens there.
    #[error(
        "{key}: {address} is in use by another process; stop that process or write another address"
    )]
    InUse {
        /// The key of the configuration.
        key: &'static str,
        /// The address.
        address: String,
    },
    /// The HTTP pages and the gRPC service have one address.
    #[error("server.http: {address} is in server.listen, too; write another port")]
    Twice {
        /// The address.
        address: String,
    },
    /// The path of a unix socket is a file, a folder or a link.
    #[error(
        "{key}: {} exists and is not a socket; remove it or write another path",
        path.display()
    )]
    NotASocket {
        /// The key of the configuration, or the option.
        key: &'static str,
        /// The path.
        path: PathBuf,
    },
    /// Other machines can reach the socket, and nothing says which of them may call.
    #[error(
        "server.listen: other machines can reach {address}, and nothing says who may call; set \
         server.tls_certificate and server.tls_key with server.client_ca or server.tokens, or \
         name networks in server.plaintext_from, or listen on 127.0.0.1"
    )]
    Unprotected {
        /// The address.
        address: SocketAddr,
    },
    /// There is no such group.
    #[error("server.socket_group: the group {group:?} does not exist; write another or \"\"")]
    NoGroup {
        /// The name of the group.
        group: String,
    },
    /// The permissions or the group cannot be set.
    #[error(
        "server.socket_mode, server.socket_group: {}: {source}; write a group that the \
         daemon's user is in",
        path.display()
    )]
    Permissions {
        /// The socket.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The socket cannot be bound.
    #[error("{key}: cannot listen on {address}: {source}; {advice}")]
    Bind {
        /// The key of the configuration.
        key: &'static str,
        /// The address.
        address: String,
        /// Why.
        source: io::Error,
        /// The way out.
        advice: &'static str,
    },
    /// A socket that systemd handed over cannot be used.
    #[error(
        "the socket {name:?} of systemd cannot be used: {source}; write ListenStream= with a \
         path or a port into the socket unit, and Accept=no"
    )]
    Handed {
        /// The socket's name in the socket unit.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// No address is configured.
    #[error("server.listen: no address is there to listen on; write \"tcp://127.0.0.1:9820\"")]
    Nowhere,
}

/// Returns true if the system gave no file descriptor. Another address would do no better.
pub(super) fn lacks_files(error: &io::Error) -> bool {
    ErrorCode::of_file(error) == ErrorCode::OpenFiles
}
