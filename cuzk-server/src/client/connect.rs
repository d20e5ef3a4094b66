//! Connections: unix sockets, TCP, and TLS over TCP.
//!
//! Not the calls over them. The invariant: a connection that does not come about within
//! [`LIMIT`] is an error.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;
use tonic::transport::{Channel, Endpoint};
use tower::service_fn;

use super::credentials::Credentials;
use super::error::ClientError;
use super::refusal::{Refusal, Watched};
use cuzk_core::config::Address;

/// The longest time for a connection.
const LIMIT: Duration = Duration::from_secs(20);

/// The time after which a silent connection is asked for life. A proof takes minutes.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(60);

/// The name that requests have. A path is no name for HTTP.
const AUTHORITY: &str = "http://localhost";

/// Any stream of bytes.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// The way to a daemon.
#[derive(Clone)]
enum Route {
    Unix(Arc<Path>),
    Tcp(Arc<str>, u16),
    Tls(Arc<str>, u16, ServerName<'static>, Arc<ClientConfig>),
}

/// Connects, and connects again whenever the connection is lost. `refusal` notes why a
/// daemon ended a connection.
pub(super) async fn connect(
    address: &Address,
    credentials: &Credentials,
    refusal: &Refusal,
) -> Result<Channel, ClientError> {
    let route = Route::new(address, credentials)?;
    let refusal = refusal.clone();
    Endpoint::from_static(AUTHORITY)
        .connect_timeout(LIMIT)
        .http2_keep_alive_interval(KEEPALIVE_AFTER)
        .connect_with_connector(service_fn(move |_| {
            let (route, refusal) = (route.clone(), refusal.clone());
            async move {
                let stream = route.open().await?;
                Ok::<_, io::Error>(TokioIo::new(Watched::new(stream, refusal)))
            }
        }))
        .await
        .map_err(|error| ClientError::of_connection(address, &error))
}

impl Route {
    fn new(address: &Address, credentials: &Credentials) -> Result<Self, ClientError> {
        Ok(match (address, credentials.tls()?) {
            (Address::Unix(path), None) => Self::Unix(Arc::from(path.as_path())),
            (Address::Unix(_), Some(_)) => {
                return Err(ClientError::Credentials(
                    "a unix socket takes no certificates; leave out --ca, --certificate and --key",
                ));
            }
            (Address::Tcp { host, port }, None) => Self::Tcp(host.as_str().into(), *port),
            (Address::Tcp { host, port }, Some(config)) => {
                let name = credentials.server_name.as_ref().unwrap_or(host).clone();
                let name = ServerName::try_from(name).map_err(|_| {
                    ClientError::Credentials(
                        "the name of the daemon is no host name; give another --server-name",
                    )
                })?;
                Self::Tls(host.as_str().into(), *port, name, config)
            }
        })
    }

    async fn open(self) -> io::Result<Box<dyn Stream>> {
        Ok(match self {
            Self::Unix(path) => Box::new(UnixStream::connect(path).await?),
            Self::Tcp(host, port) => Box::new(tcp(&host, port).await?),
            Self::Tls(host, port, name, config) => {
                let stream = tcp(&host, port).await?;
                Box::new(TlsConnector::from(config).connect(name, stream).await?)
            }
        })
    }
}

async fn tcp(host: &str, port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((host, port)).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}
