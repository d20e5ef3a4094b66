//! The transport: NATS JetStream carries the work, the leases and the results.
//!
//! It decides nothing: [`crate::ledger`], [`crate::worker`] and [`crate::leases`] do. The
//! invariants:
//!
//! * The server is never the truth.
//! * A result is stored before its work is acknowledged.
//! * A thread of its own, with a connection of its own, reports progress. So a busy runtime
//!   does not lose its leases.
//!
//! # Reading order
//!
//! * [`Settings`] and `connect`: the way to the server.
//! * `streams`: what the server keeps, and with which settings.
//! * `objects`: inputs that are too long for a message.
//! * [`Owner`]: the daemon's side.
//! * [`Node`]: the worker's side, with the thread of `reporter`.

mod error;
mod node;
mod objects;
mod owner;
mod reporter;
mod run;
mod streams;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::jetstream;
use async_nats::{Client, ConnectErrorKind, ConnectOptions, Event};

pub use error::ClusterError;
pub use node::{Node, Prover};
pub use owner::{Home, Offer, Owner, OwnerSetup, Report};
pub use run::Run;
pub use streams::Limits;

/// The oldest server that is used. Earlier ones have known faults.
pub const SERVER_VERSION_MIN: (i64, i64) = (2, 14);

/// The time after which a request without an answer has failed.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// No file of credentials is as large.
const CREDENTIALS_BYTES_MAX: u64 = 1 << 20;

/// The length of an NKEY seed in its text form.
const SEED_BYTES: usize = 58;

/// The header with the trace of a partition, in work and in results.
const TRACE_HEADER: &str = "traceparent";

/// The pause after an error of the server, so that a broken server is not asked all the time.
const ERROR_PAUSE: Duration = Duration::from_secs(1);

/// The way to the server.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The addresses of the server or of its cluster: `nats://HOST:PORT` or `tls://HOST:PORT`.
    pub addresses: Vec<String>,
    /// A file with a JWT and its NKEY seed, as `nsc` writes it, or with a seed alone.
    pub credentials: Option<PathBuf>,
    /// Certificates of the authorities that sign the server's certificate, if they are not
    /// those of the system.
    pub server_ca: Option<PathBuf>,
    /// The certificate and the key that this machine shows to the server.
    pub client_certificate: Option<(PathBuf, PathBuf)>,
}

/// A connection to a server that fits.
#[derive(Clone, Debug)]
struct Connection {
    client: Client,
    context: jetstream::Context,
}

/// Connects to the server. The events of the connection go to `on_event`.
async fn connect(
    settings: &Settings,
    name: &str,
    on_event: impl Fn(Event) + Send + Sync + Clone + 'static,
) -> Result<Connection, ClusterError> {
    let addresses = settings.addresses.join(", ");
    let mut options = ConnectOptions::new()
        .name(name)
        .request_timeout(Some(REQUEST_TIMEOUT))
        .event_callback(move |event| {
            let on_event = on_event.clone();
            async move { on_event(event) }
        });
    if let Some(path) = &settings.credentials {
        let read = tokio::fs::read_to_string(path).await;
        let read = read.and_then(|text| with_credentials(options, &text));
        options = read.map_err(|source| ClusterError::Credentials {
            path: path.clone(),
            source,
        })?;
    }
    if let Some(path) = &settings.server_ca {
        options = options
            .add_root_certificates(path.clone())
            .require_tls(true);
    }
    if let Some((certificate, key)) = &settings.client_certificate {
        options = options.add_client_certificate(certificate.clone(), key.clone());
    }
    let connected = options.connect(&settings.addresses).await;
    let client = connected.map_err(|source| match source.kind() {
        ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
            ClusterError::Refused {
                addresses: addresses.clone(),
            }
        }
        _ => ClusterError::Connect {
            addresses: addresses.clone(),
            source,
        },
    })?;
    let (major, minor) = SERVER_VERSION_MIN;
    let info = client.server_info();
    if !client.is_server_compatible(major, minor, 0) {
        let found = info.version;
        return Err(ClusterError::TooOld { addresses, found });
    }
    if !info.jetstream {
        return Err(ClusterError::NoJetStream { addresses });
    }
    let mut context = jetstream::new(client.clone());
    context.set_timeout(REQUEST_TIMEOUT);
    Ok(Connection { client, context })
}

/// Checks that a file has credentials. The server may still refuse them.
///
/// # Errors
/// A file that cannot be read, or that has none.
pub fn check_credentials(path: &Path) -> Result<(), ClusterError> {
    let read = File::open(path).and_then(|file| {
        let mut text = String::new();
        file.take(CREDENTIALS_BYTES_MAX).read_to_string(&mut text)?;
        with_credentials(ConnectOptions::new(), &text)
    });
    read.map(drop).map_err(|source| ClusterError::Credentials {
        path: path.to_owned(),
        source,
    })
}

/// Adds the credentials of a file: a JWT with its seed, or a seed alone.
fn with_credentials(options: ConnectOptions, text: &str) -> std::io::Result<ConnectOptions> {
    if text.contains("USER JWT") {
        return options.credentials(text);
    }
    let is_seed = |line: &&str| {
        let is_base32 = |byte: u8| byte.is_ascii_uppercase() || (b'2'..=b'7').contains(&byte);
        line.len() == SEED_BYTES && line.starts_with("SU") && line.bytes().all(is_base32)
    };
    match text.lines().map(str::trim).find(is_seed) {
        Some(seed) => Ok(options.nkey(seed.to_owned())),
        None => {
            let problem = "it has neither a JWT nor the NKEY seed of a user";
            Err(std::io::Error::new(
                std::io::ErrorKind::InvalidData,
                problem,
            ))
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the client library.
    const SEED: &str = "SUANQDPB2RUOE4ETUA26CNX7FUKE5ZZKFCQIIW63OX225F2CO7UEXTM7ZY";

    #[test]
    fn credentials_are_a_jwt_with_its_seed_or_a_seed_alone() {
        let accepted = |text: &str| with_credentials(ConnectOptions::new(), text).is_ok();
        let seed = SEED;
        assert!(accepted(seed) && accepted(&format!("# a worker\n{seed}\n")));
        let jwt = "-----BEGIN NATS USER JWT-----\na.b.c\n------END NATS USER JWT------\n";
        let of_nsc = format!(
            "{jwt}\n-----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
        );
        assert!(accepted(&of_nsc));
        for bad in ["", "SU", jwt, &seed.to_lowercase(), &seed[1..], "password"] {
            assert!(!accepted(bad), "{bad:?}");
        }
    }

    #[test]
    fn a_file_of_credentials_is_read_and_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("worker.creds");
        let told = || check_credentials(&path).unwrap_err().to_string();
        let missing = told();
        std::fs::write(&path, "password").unwrap();
        let wrong = told();
        for error in [missing, wrong] {
            assert!(error.contains("worker.creds"), "{error}");
        }
        std::fs::write(&path, SEED).unwrap();
        check_credentials(&path).unwrap();
    }
}
