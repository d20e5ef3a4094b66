//! Certificates and keys, read from PEM files.
//!
//! Not who may call: that is [`crate::access`]. The invariant: a configuration that is
//! returned has a key that belongs to its certificate, and speaks HTTP/2 alone.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cuzk_core::error::ErrorCode;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use rustls::{CertificateError, ClientConfig, RootCertStore, ServerConfig};

/// No file of certificates is as large.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// A file, and the key of the configuration that names it.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// The key, such as `server.tls_key`.
    pub key: &'static str,
    /// The file.
    pub path: &'a Path,
}

/// A file of certificates or keys that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{key}: {}: {problem}", path.display())]
pub struct TlsError {
    /// The key of the configuration, or the option, that names the file.
    pub key: &'static str,
    /// The file.
    pub path: PathBuf,
    /// The problem, and the way out.
    #[source]
    pub problem: TlsProblem,
}

/// The problem of a file of certificates or keys.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsProblem {
    /// The file cannot be read.
    #[error("{0}; {advice}", advice = of_reading(.0))]
    Read(#[source] io::Error),
    /// The file has no certificate.
    #[error("no certificate is in it; give a PEM file with a block BEGIN CERTIFICATE")]
    NoCertificate,
    /// The file has no private key.
    #[error("no private key is in it; give a PEM file with a block BEGIN PRIVATE KEY")]
    NoKey,
    /// The content is damaged, or the key belongs to another certificate.
    #[error("{0}; give a certificate and the key that belongs to it")]
    Unusable(rustls::Error),
    /// The authorities cannot be used.
    #[error("{0}; give a PEM file with the certificate of an authority")]
    Authority(VerifierBuilderError),
}

/// Returns what to do about a file that cannot be read.
fn of_reading(error: &io::Error) -> &'static str {
    match ErrorCode::of_file(error) {
        ErrorCode::OpenFiles => ErrorCode::OpenFiles.remedy(),
        _ => "give the path of a readable PEM file",
    }
}

impl Source<'_> {
    fn error(&self, problem: TlsProblem) -> TlsError {
        TlsError {
            key: self.key,
            path: self.path.to_owned(),
            problem,
        }
    }

    fn unusable(&self, error: rustls::Error) -> TlsError {
        self.error(TlsProblem::Unusable(error))
    }

    fn read(&self) -> Result<Vec<u8>, TlsError> {
        let read = cuzk_files::read_bounded(self.path, FILE_BYTES_MAX);
        read.map_err(|error| self.error(TlsProblem::Read(error)))
    }

    fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&self.read()?).collect();
        let found = read.ok().filter(|found| !found.is_empty());
        found.ok_or_else(|| self.error(TlsProblem::NoCertificate))
    }

    fn private_key(&self) -> Result<PrivateKeyDer<'static>, TlsError> {
        PrivateKeyDer::from_pem_slice(&self.read()?).map_err(|_| self.error(TlsProblem::NoKey))
    }

    fn authorities(&self) -> Result<Arc<RootCertStore>, TlsError> {
        let mut store = RootCertStore::empty();
        for certificate in self.certificates()? {
            store
                .add(certificate)
                .map_err(|error| self.unusable(error))?;
        }
        Ok(Arc::new(store))
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Returns the configuration of a server. Clients need no certificate. A certificate that
/// a client sends must be signed by `client_ca` and must not have expired.
///
/// A certificate of the server that has expired is logged, because clients refuse it.
///
/// # Errors
///
/// The first file that cannot be used.
pub fn server_config(
    certificate: Source<'_>,
    key: Source<'_>,
    client_ca: Option<Source<'_>>,
) -> Result<ServerConfig, TlsError> {
    let chain = certificate.certificates()?;
    if has_expired(&chain, UnixTime::now()) {
        tracing::warn!(
            "{}: {}: the certificate has expired, so clients refuse it; renew it",
            certificate.key,
            certificate.path.display()
        );
    }
    let builder = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| certificate.unusable(error))?;
    let builder = match client_ca {
        None => builder.with_no_client_auth(),
        Some(ca) => {
            let roots = ca.authorities()?;
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider())
                .allow_unauthenticated()
                .build()
                .map_err(|error| ca.error(TlsProblem::Authority(error)))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let mut config = builder
        .with_single_cert(chain, key.private_key()?)
        .map_err(|error| key.unusable(error))?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(config)
}

/// Returns the configuration of a client with a certificate, for servers that `ca` signed.
///
/// # Errors
///
/// The first file that cannot be used.
pub fn client_config(
    certificate: Source<'_>,
    key: Source<'_>,
    ca: Source<'_>,
) -> Result<ClientConfig, TlsError> {
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| certificate.unusable(error))?
        .with_root_certificates(ca.authorities()?)
        .with_client_auth_cert(certificate.certificates()?, key.private_key()?)
        .map_err(|error| key.unusable(error))?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(config)
}

/// Checks that a file has certificates of authorities.
///
/// # Errors
///
/// A file that cannot be used.
pub fn check_authorities(source: Source<'_>) -> Result<(), TlsError> {
    source.authorities().map(drop)
}

/// Checks that a client's certificate and its key belong together.
///
/// # Errors
///
/// The first file that cannot be used.
pub fn check_pair(certificate: Source<'_>, key: Source<'_>) -> Result<(), TlsError> {
    ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| certificate.unusable(error))?
        .with_root_certificates(RootCertStore::empty())
        .with_client_auth_cert(certificate.certificates()?, key.private_key()?)
        .map(drop)
        .map_err(|error| key.unusable(error))
}

/// Returns true if the first certificate of a chain has expired at `now`.
///
/// The verifier of clients is asked about a server that presents it. It looks at the time
/// before it looks for an authority.
fn has_expired(chain: &[CertificateDer<'static>], now: UnixTime) -> bool {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(chain.iter().cloned());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider()).build();
    let (Ok(verifier), Some((own, others)), Ok(name)) = (
        verifier,
        chain.split_first(),
        ServerName::try_from("localhost"),
    ) else {
        return false;
    };
    let verdict = verifier.verify_server_cert(own, others, &name, &[], now);
    matches!(
        verdict,
        Err(rustls::Error::InvalidCertificate(
            CertificateError::Expired | CertificateError::ExpiredContext { .. }
        ))
    )
}

#[cfg(test)]
pub(crate) mod tests;
