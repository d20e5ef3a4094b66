//! A unix socket beside a client that speaks no TLS, and mutual TLS to the daemon.
//!
//! Not a proxy of calls: it copies bytes and understands none. The invariant: nothing that
//! a client sends leaves this machine without TLS to a daemon whose certificate was
//! checked.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cuzk_core::config::Address;
use cuzk_core::error::ErrorCode;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;

use crate::listen::{CONNECTIONS_MAX, ListenError, unix};
use crate::tls::{self, Source, TlsError};

/// The longest time to a connection with the daemon, its TLS handshake included.
const CONNECT_MAX: Duration = Duration::from_secs(10);

/// The pause after an error of `accept`.
const ERROR_PAUSE: Duration = Duration::from_millis(100);

/// The settings of a proxy.
#[derive(Debug, Clone)]
pub struct ProxyOptions {
    /// The path of the unix socket for clients.
    pub listen: PathBuf,
    /// The permissions of the socket, at most `0o777`.
    pub mode: u32,
    /// The group of the socket; `None` for the group of the process.
    pub group: Option<String>,
    /// The host of the daemon.
    pub host: String,
    /// The port of the daemon.
    pub port: u16,
    /// The certificate of this machine, PEM.
    pub certificate: PathBuf,
    /// The key of the certificate, PEM.
    pub key: PathBuf,
    /// The authority that signed the daemon's certificate, PEM.
    pub ca: PathBuf,
    /// The name in the daemon's certificate; `None` for `host`.
    pub server_name: Option<String>,
}

/// A proxy that cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProxyError {
    /// The socket cannot be had.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// A certificate or a key cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The name of the daemon is no name.
    #[error(
        "--server-name: {name:?} is not a host's name or IP address; write the one in the daemon's certificate"
    )]
    ServerName {
        /// The name.
        name: String,
    },
    /// The runtime does not take the socket.
    #[error("--listen: {0}; start the proxy again")]
    Runtime(#[from] io::Error),
}

/// A proxy whose socket is bound.
#[derive(Debug)]
pub struct Proxy {
    listener: UnixListener,
    _file: unix::SocketFile,
    daemon: Arc<Daemon>,
}

/// The daemon, and how it is reached.
#[derive(Debug)]
struct Daemon {
    options: ProxyOptions,
    name: ServerName<'static>,
    tls: Arc<ClientConfig>,
    told: Told,
}

/// The last problem with the daemon that is in the log. A client calls again every second, so the
/// same problem is told once, and again when there was a connection since.
#[derive(Debug, Default)]
struct Told(Mutex<Option<String>>);

impl Told {
    /// Returns true if the problem is to be told.
    fn is_new(&self, problem: &str) -> bool {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = last.as_deref() != Some(problem);
        *last = Some(problem.to_owned());
        is_new
    }

    fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Proxy {
    /// Opens the socket. The daemon need not be there. Call it in a tokio runtime.
    ///
    /// # Errors
    ///
    /// The socket, a certificate or a name that cannot be used.
    pub fn bind(options: ProxyOptions) -> Result<Self, ProxyError> {
        let source = |key, path| Source { key, path };
        let tls = tls::client_config(
            source("--certificate", &options.certificate),
            source("--key", &options.key),
            source("--ca", &options.ca),
        )?;
        let name = options
            .server_name
            .as_ref()
            .unwrap_or(&options.host)
            .clone();
        let name =
            ServerName::try_from(name.clone()).map_err(|_| ProxyError::ServerName { name })?;
        let (socket, file) = unix::bind(
            "--listen",
            &options.listen,
            options.mode,
            options.group.as_deref(),
        )?;
        Ok(Self {
            listener: UnixListener::from_std(socket)?,
            _file: file,
            daemon: Arc::new(Daemon {
                options,
                name,
                tls: Arc::new(tls),
                told: Told::default(),
            }),
        })
    }

    /// Copies bytes for as long as the future is polled. A daemon that is not there costs
    /// the connection that asked for it. The log has a line when it goes.
    pub async fn run(self) {
        let mut connections = JoinSet::new();
        let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        while let Ok(permit) = Arc::clone(&permits).acquire_owned().await {
            match self.listener.accept().await {
                Ok((client, _)) => {
                    let daemon = Arc::clone(&self.daemon);
                    connections.spawn(async move {
                        daemon.serve(client).await;
                        drop(permit);
                    });
                }
                Err(error) => {
                    tracing::warn!("cannot accept a connection: {error}; trying again");
                    sleep(ERROR_PAUSE).await;
                }
            }
            while connections.try_join_next().is_some() {}
        }
    }
}

impl Daemon {
    async fn serve(&self, mut client: UnixStream) {
        let address = self.address();
        let connected = timeout(CONNECT_MAX, self.connect()).await;
        let connected = connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        match connected {
            Err(error) if !self.told.is_new(&error.to_string()) => {}
            Err(error) => tracing::error!(
                code = %ErrorCode::Daemon,
                "{address}: {error}; the client's connection was closed; check that the daemon \
                 listens there with TLS, and that --ca and --server-name fit its certificate"
            ),
            Ok(mut daemon) => {
                self.told.forget();
                // TLS 1.3 tells a refused certificate only now.
                if let Err(error) = copy_bidirectional(&mut client, &mut daemon).await {
                    tracing::warn!("{address}: the connection was cut: {error}");
                }
            }
        }
    }

    async fn connect(&self) -> io::Result<tokio_rustls::client::TlsStream<TcpStream>> {
        let options = &self.options;
        let stream = TcpStream::connect((options.host.as_str(), options.port)).await?;
        stream.set_nodelay(true)?;
        let connector = TlsConnector::from(Arc::clone(&self.tls));
        connector.connect(self.name.clone(), stream).await
    }

    fn address(&self) -> Address {
        Address::Tcp {
            host: self.options.host.clone(),
            port: self.options.port,
        }
    }
}

#[cfg(test)]
mod tests;
