//! The other end of a connection.
//!
//! Not what it may do. The invariant: a [`Peer`] says what the operating system and the
//! TLS handshake said, and nothing that the client claims.

use std::fmt;
use std::net::SocketAddr;

/// The other end of a connection. It is in the extensions of every request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// A process on this machine, through a unix socket.
    Unix {
        /// Its user.
        uid: u32,
        /// Its group.
        gid: u32,
        /// Its number, if the system tells it.
        pid: Option<i32>,
    },
    /// A TCP connection.
    Tcp {
        /// The address that it comes from.
        address: SocketAddr,
        /// The protection of the connection.
        channel: Channel,
    },
}

/// The protection of a TCP connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    /// Nothing.
    Plain,
    /// TLS without a certificate of the client.
    Encrypted,
    /// TLS with a certificate of the client that the authority signed.
    Certified,
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix { uid, pid, .. } => match pid {
                Some(pid) => write!(f, "process {pid} of user {uid}"),
                None => write!(f, "a process of user {uid}"),
            },
            Self::Tcp { address, .. } => address.fmt(f),
        }
    }
}
