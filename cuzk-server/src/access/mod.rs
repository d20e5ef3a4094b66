//! Access: the rules of who may call.
//!
//! Not how connections are made: that is [`crate::listen`]. The invariant: a call from
//! another machine came over TLS with a certificate or a token, or from a network that the
//! configuration names. No other call is served.

mod layer;
mod peer;
mod tokens;

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use cuzk_core::config::Server;
use cuzk_core::error::ErrorCode;
use rustls::ServerConfig;
use tonic::Status;

use crate::tls::{self, Source, TlsError};

pub use layer::{AccessLayer, Gate};
pub use peer::{Channel, Peer};
pub use tokens::{Tokens, TokensError};

/// How often the files are looked at. A new certificate is in use this long after it came.
const POLL_EVERY: Duration = Duration::from_secs(10);

/// A file of the configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AccessError {
    /// A certificate or a key.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The file of tokens.
    #[error("server.tokens: {}: {problem}", path.display())]
    Tokens {
        /// The file.
        path: PathBuf,
        /// The problem of the file.
        problem: TokensError,
    },
}

/// Returns true if the configuration says who may call from other machines.
#[must_use]
pub fn is_protected(server: &Server) -> bool {
    let credentials = server.client_ca.is_some() || server.tokens.is_some();
    (server.tls_certificate.is_some() && credentials) || !server.plaintext_from.is_empty()
}

/// The rules of who may call at this moment, and the certificate that the server shows.
#[derive(Debug)]
pub struct Access {
    rules: RwLock<Arc<Rules>>,
    /// The files as they were when they were last read, with or without success.
    seen: Mutex<Vec<Stamp>>,
}

/// The result of one reading of the files.
#[derive(Debug)]
struct Rules {
    server: Server,
    tls: Option<Arc<ServerConfig>>,
    tokens: Tokens,
}

/// A file's state, by which a change is noticed; `None` for a file that is not there.
type Stamp = Option<(SystemTime, u64, u64)>;

impl Access {
    /// Reads the files that the configuration names.
    ///
    /// # Errors
    ///
    /// The first file that cannot be used.
    pub fn load(server: &Server) -> Result<Self, AccessError> {
        let seen = stamps(server);
        Ok(Self {
            rules: RwLock::new(Arc::new(Rules::read(server)?)),
            seen: Mutex::new(seen),
        })
    }

    /// Reads the files again, with a configuration that may be new. Connections that exist
    /// stay; every later call is judged anew.
    ///
    /// # Errors
    ///
    /// The first file that cannot be used. Then nothing changes.
    pub fn reload(&self, server: &Server) -> Result<(), AccessError> {
        let seen = stamps(server);
        let read = Rules::read(server);
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = seen;
        self.replace(read?);
        Ok(())
    }

    /// Looks for changed files for as long as the future is polled. A file that cannot be
    /// used is logged, and what was read before stays.
    pub async fn watch(&self) {
        loop {
            tokio::time::sleep(POLL_EVERY).await;
            self.reload_if_changed();
        }
    }

    /// Returns true if a file had changed and all files were read.
    fn reload_if_changed(&self) -> bool {
        let server = self.rules().server.clone();
        let now = stamps(&server);
        if *self.seen.lock().unwrap_or_else(PoisonError::into_inner) == now {
            return false;
        }
        match self.reload(&server) {
            Ok(()) => tracing::info!("read the certificates and tokens again"),
            Err(error) => {
                let code = ErrorCode::Configuration;
                tracing::error!(
                    %code,
                    "{error}; the certificates and tokens that were read before stay"
                );
                return false;
            }
        }
        true
    }

    /// Returns the configuration of the server's side of TLS, if it has a certificate.
    #[must_use]
    pub fn tls(&self) -> Option<Arc<ServerConfig>> {
        self.rules().tls.clone()
    }

    /// Decides whether a call is served. `authorization` is the call's header of that name.
    ///
    /// # Errors
    ///
    /// UNAUTHENTICATED with what the caller, or the operator, has to do.
    pub fn permit(&self, peer: &Peer, authorization: Option<&[u8]>) -> Result<(), Status> {
        let rules = self.rules();
        let Peer::Tcp { address, channel } = peer else {
            // The permissions of the socket have decided.
            return Ok(());
        };
        let ip = address.ip().to_canonical();
        let bearer = authorization.map(|header| rules.tokens.accept(header));
        if bearer == Some(false) && !rules.tokens.is_empty() {
            return Err(Status::unauthenticated(
                "the token is wrong; send `authorization: Bearer TOKEN` with a line of the \
                 daemon's server.tokens",
            ));
        }
        let named = rules.server.plaintext_from.iter();
        let trusted = ip.is_loopback() || named.clone().any(|network| network.contains(&ip));
        match channel {
            _ if trusted => Ok(()),
            Channel::Certified => Ok(()),
            Channel::Encrypted if bearer == Some(true) => Ok(()),
            Channel::Encrypted => Err(Status::unauthenticated(format!(
                "calls from {ip} need a client certificate that the daemon's server.client_ca \
                 signed, or `authorization: Bearer TOKEN` with a line of its server.tokens"
            ))),
            Channel::Plain => Err(Status::unauthenticated(format!(
                "calls from {ip} need TLS; use TLS or `cuzk proxy`, or let the operator name \
                 the network in the daemon's server.plaintext_from"
            ))),
        }
    }

    /// Returns a layer of the service that asks about every call.
    #[must_use]
    pub fn layer(self: &Arc<Self>) -> AccessLayer {
        AccessLayer::new(Gate::new(Arc::clone(self)))
    }

    fn rules(&self) -> Arc<Rules> {
        let rules = self.rules.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&rules)
    }

    fn replace(&self, rules: Rules) {
        *self.rules.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(rules);
    }
}

impl Rules {
    fn read(server: &Server) -> Result<Self, AccessError> {
        Ok(Self {
            tls: tls_of(server)?.map(Arc::new),
            tokens: match &server.tokens {
                None => Tokens::default(),
                Some(path) => Tokens::load(path).map_err(|problem| AccessError::Tokens {
                    path: path.clone(),
                    problem,
                })?,
            },
            server: server.clone(),
        })
    }
}

fn tls_of(server: &Server) -> Result<Option<ServerConfig>, TlsError> {
    let source = |key, path| Source { key, path };
    let (Some(certificate), Some(key)) = (&server.tls_certificate, &server.tls_key) else {
        return Ok(None);
    };
    let client_ca = server.client_ca.as_deref();
    tls::server_config(
        source("server.tls_certificate", certificate),
        source("server.tls_key", key),
        client_ca.map(|path| source("server.client_ca", path)),
    )
    .map(Some)
}

fn stamps(server: &Server) -> Vec<Stamp> {
    let files = [
        &server.tls_certificate,
        &server.tls_key,
        &server.client_ca,
        &server.tokens,
    ];
    let stamp = |path: &Path| -> io::Result<_> {
        let file = fs::metadata(path)?;
        Ok((file.modified()?, file.len(), file.ino()))
    };
    files
        .into_iter()
        .map(|file| file.as_deref().and_then(|path| stamp(path).ok()))
        .collect()
}

#[cfg(test)]
pub(crate) mod tests;
