//! The sockets on which the daemon listens.
//!
//! Not who may call: that is [`crate::access`]. The invariant: a socket that is bound is
//! either on this machine alone, or the configuration says who may call.

mod accept;
pub(crate) mod check;
mod connection;
mod error;
mod handed;
mod tcp;
pub(crate) mod unix;

use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::os::unix::net::UnixListener;
use std::sync::Arc;

use cuzk_core::config::{Address, Server};

use crate::access::{Access, is_protected};
use unix::SocketFile;

pub use accept::{CONNECTIONS_MAX, Incoming};
pub use connection::Connection;
pub use error::ListenError;

/// The name of the key in errors. The options of the command line mean the same.
const LISTEN: &str = "server.listen";
const HTTP: &str = "server.http";

/// The sockets of a daemon. They queue connections until [`Listeners::accept`].
#[derive(Debug)]
pub struct Listeners {
    grpc: Vec<Listener>,
    http: Option<TcpListener>,
}

/// Returns a socket for HTTP, which does not block.
///
/// # Errors
///
/// An address that cannot be had. HTTP has no unix socket.
pub fn bind_http(address: &Address) -> Result<TcpListener, ListenError> {
    match address {
        Address::Tcp { host, port } => tcp::bind(HTTP, host, *port),
        Address::Unix(_) => Err(ListenError::Bind {
            key: HTTP,
            address: address.to_string(),
            advice: "write HOST:PORT",
            source: io::ErrorKind::Unsupported.into(),
        }),
    }
}

/// A socket of the gRPC service.
#[derive(Debug)]
enum Listener {
    Unix {
        socket: UnixListener,
        /// Removes the socket's file at the end; `None` if the file is systemd's.
        file: Option<SocketFile>,
        /// For the log.
        name: String,
    },
    Tcp(TcpListener),
}

impl Listeners {
    /// Opens the sockets of a configuration. If systemd handed sockets over, these are
    /// taken instead of `listen`, and one of the name `http` instead of `http`.
    ///
    /// systemd's variables are removed from the environment of this process. Call it
    /// before other threads read the environment.
    ///
    /// # Errors
    ///
    /// The first socket that cannot be had, or that nothing protects.
    pub fn bind(server: &Server) -> Result<Self, ListenError> {
        let handed = handed::take()?;
        let mut listeners = match handed {
            Some(handed) => handed,
            None => Self::bind_listed(server)?,
        };
        if listeners.http.is_none()
            && let Some(Address::Tcp { host, port }) = &server.http
        {
            listeners.http = Some(tcp::bind(HTTP, host, *port)?);
        }
        if listeners.grpc.is_empty() {
            return Err(ListenError::Nowhere);
        }
        for listener in &listeners.grpc {
            if let Listener::Tcp(socket) = listener
                && let Ok(address) = socket.local_addr()
            {
                check_protection(address, server)?;
            }
        }
        Ok(listeners)
    }

    /// Checks that each address of a configuration is protected, and opens nothing. It asks
    /// the system for the addresses of names.
    ///
    /// # Errors
    ///
    /// The first address that other machines can reach, and that nothing protects.
    pub fn check(server: &Server) -> Result<(), ListenError> {
        for address in &server.listen {
            if let Address::Tcp { host, port } = address {
                // A name that is unknown is an error when it is bound.
                let found = (host.as_str(), *port).to_socket_addrs();
                for address in found.into_iter().flatten() {
                    check_protection(address, server)?;
                }
            }
        }
        Ok(())
    }

    fn bind_listed(server: &Server) -> Result<Self, ListenError> {
        // Before anything listens.
        Self::check(server)?;
        let bind = |address: &Address| match address {
            Address::Tcp { host, port } => tcp::bind(LISTEN, host, *port).map(Listener::Tcp),
            Address::Unix(path) => {
                let (socket, file) = unix::bind(
                    LISTEN,
                    path,
                    server.socket_mode,
                    server.socket_group.as_deref(),
                )?;
                Ok(Listener::Unix {
                    socket,
                    file: Some(file),
                    name: address.to_string(),
                })
            }
        };
        let grpc: Result<Vec<_>, _> = server.listen.iter().map(bind).collect();
        Ok(Self {
            grpc: grpc?,
            http: None,
        })
    }

    /// Begins to accept. Call it in a tokio runtime.
    ///
    /// # Errors
    ///
    /// A socket that the runtime does not take.
    pub fn accept(self, access: &Arc<Access>) -> io::Result<Incoming> {
        Incoming::begin(self.grpc, access)
    }

    /// Returns where the gRPC service listens, with the ports that were chosen.
    #[must_use]
    pub fn addresses(&self) -> Vec<String> {
        self.grpc.iter().map(Listener::name).collect()
    }

    /// Takes the socket of the HTTP pages. It does not block.
    #[must_use]
    pub fn take_http(&mut self) -> Option<TcpListener> {
        self.http.take()
    }
}

/// Returns an error if other machines can reach an address, and nothing protects it.
fn check_protection(address: SocketAddr, server: &Server) -> Result<(), ListenError> {
    if address.ip().to_canonical().is_loopback() || is_protected(server) {
        return Ok(());
    }
    Err(ListenError::Unprotected { address })
}

impl Listener {
    fn name(&self) -> String {
        match self {
            Self::Unix { name, .. } => name.clone(),
            Self::Tcp(socket) => match socket.local_addr() {
                Ok(address) => format!("tcp://{address}"),
                Err(_) => "tcp".to_owned(),
            },
        }
    }
}

#[cfg(test)]
mod tests;
