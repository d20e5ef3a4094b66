//! The certificates and the token that a client shows to a daemon.
//!
//! The invariant: a token is sent only over TLS, to this machine, or to a unix socket. It is
//! never printed.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use tonic::metadata::{Ascii, MetadataValue};

use super::error::ClientError;
use cuzk_core::config::Address;

/// HTTP/2, which gRPC runs over.
const PROTOCOL: &[u8] = b"h2";

/// The credentials of a client. The default is none: a plain connection.
#[derive(Clone, Default)]
pub struct Credentials {
    /// The PEM file of the authority that signed the daemon's certificate. With it the
    /// connection is encrypted.
    pub authority: Option<PathBuf>,
    /// The PEM file of the client's certificate.
    pub certificate: Option<PathBuf>,
    /// The PEM file of the certificate's key.
    pub key: Option<PathBuf>,
    /// The name in the daemon's certificate, if it is not the host of the address.
    pub server_name: Option<String>,
    /// The token.
    pub token: Option<String>,
}

impl Credentials {
    /// Reads a token from the first line of a file.
    ///
    /// # Errors
    /// A file that cannot be read, or that has no token.
    pub fn read_token(path: &Path) -> Result<String, ClientError> {
        let text = std::fs::read_to_string(path).map_err(|error| file(path, &error))?;
        let mut lines = text.lines().map(str::trim);
        let token = lines.find(|line| !line.is_empty() && !line.starts_with('#'));
        token.map(str::to_owned).ok_or_else(|| {
            let problem = "no token in it; write the token into its first line";
            file(path, &problem)
        })
    }

    /// Returns the token as the value of a header.
    pub(super) fn token(
        &self,
        address: &Address,
    ) -> Result<Option<MetadataValue<Ascii>>, ClientError> {
        let Some(token) = &self.token else {
            return Ok(None);
        };
        if !self.is_tls() && !is_local(address) {
            return Err(ClientError::Credentials(
                "a token to another machine needs TLS, or others could read it; give --ca",
            ));
        }
        let value = MetadataValue::try_from(format!("Bearer {token}")).map_err(|_| {
            ClientError::Credentials("a token has only visible ASCII characters; mend the token")
        })?;
        Ok(Some(value))
    }

    /// Returns the configuration of TLS, or none for a plain connection.
    pub(super) fn tls(&self) -> Result<Option<Arc<ClientConfig>>, ClientError> {
        if !self.is_tls() {
            return Ok(None);
        }
        let Some(authority) = &self.authority else {
            return Err(ClientError::Credentials(
                "a certificate needs the authority of the daemon's certificate; give --ca",
            ));
        };
        let mut roots = RootCertStore::empty();
        for certificate in certificates(authority)? {
            roots
                .add(certificate)
                .map_err(|error| file(authority, &error))?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| file(authority, &error))?
            .with_root_certificates(roots);
        let mut config = match (&self.certificate, &self.key) {
            (None, None) => builder.with_no_client_auth(),
            (Some(certificate), Some(key)) => {
                let chain = certificates(certificate)?;
                let own_key = PrivateKeyDer::from_pem_file(key).map_err(|error| pem(key, error))?;
                builder
                    .with_client_auth_cert(chain, own_key)
                    .map_err(|error| file(certificate, &unfit(key, &error)))?
            }
            _ => {
                return Err(ClientError::Credentials(
                    "a certificate and its key go together; give --certificate and --key",
                ));
            }
        };
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        Ok(Some(Arc::new(config)))
    }

    fn is_tls(&self) -> bool {
        self.authority.is_some() || self.certificate.is_some() || self.key.is_some()
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("authority", &self.authority)
            .field("certificate", &self.certificate)
            .field("key", &self.key)
            .field("server_name", &self.server_name)
            .finish_non_exhaustive()
    }
}

/// Returns true if no other machine sees the bytes.
fn is_local(address: &Address) -> bool {
    match address {
        Address::Unix(_) => true,
        Address::Tcp { host, .. } => {
            host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
        }
    }
}

/// Describes a certificate that cannot be used with its key.
fn unfit(key: &Path, error: &rustls::Error) -> String {
    let key = key.display();
    match error {
        rustls::Error::InconsistentKeys(_) => {
            format!("it does not belong to the key {key}; name the key that it was made with")
        }
        error => format!("{error}; it and {key} must be PEM files of one another"),
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, ClientError> {
    let all = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| pem(path, error))?;
    if all.is_empty() {
        return Err(file(path, &"no certificate in it; it must be a PEM file"));
    }
    Ok(all)
}

fn pem(path: &Path, error: pem::Error) -> ClientError {
    match error {
        pem::Error::Io(error) => file(path, &error),
        error => file(path, &format_args!("{error}; it must be a PEM file")),
    }
}

fn file(path: &Path, problem: &dyn fmt::Display) -> ClientError {
    ClientError::File {
        path: path.to_owned(),
        problem: problem.to_string(),
    }
}
