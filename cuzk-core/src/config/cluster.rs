//! The cluster as it is configured: its servers, this machine's name in it, and what the
//! servers may keep.
//!
//! Nothing here connects or reads a file. The invariants: a server's address that is printed
//! reads back as the same address; a client's certificate has a key.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use super::address::{Address, without_credentials};

/// The most servers that keep a copy of a stream.
pub const REPLICAS_MAX: usize = 5;

/// The cluster of this machine. Without servers there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    /// The NATS servers. One that answers is enough.
    pub servers: Vec<ClusterServer>,
    /// The name of this machine in the cluster: 1 to 64 letters, digits, `-` and `_`.
    pub name: String,
    /// True if the daemon proves itself, too.
    pub local: bool,
    /// A file with an NKEY seed, or with a JWT and its seed.
    pub credentials: Option<PathBuf>,
    /// The authority of the servers' certificates, PEM; `None` for those of the system.
    pub server_ca: Option<PathBuf>,
    /// The certificate that this machine shows to the servers, PEM.
    pub client_certificate: Option<PathBuf>,
    /// The key of the certificate, PEM.
    pub client_key: Option<PathBuf>,
    /// The most bytes of partitions that a server keeps.
    pub work_bytes_max: u64,
    /// The most bytes of long inputs that a server keeps.
    pub object_bytes_max: u64,
    /// The longest time for which a server keeps anything.
    pub age_max: Duration,
    /// The servers that keep a copy, from 1 to [`REPLICAS_MAX`].
    pub replicas: usize,
}

/// The address of a NATS server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClusterServer {
    /// True if the connection must be encrypted.
    pub tls: bool,
    /// A name, or an IP address without brackets.
    pub host: String,
    /// The port, not 0.
    pub port: u16,
}

/// A text that is no address of a NATS server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{got:?} is not the address of a server: {problem}; \
     write \"nats://HOST:PORT\" or \"tls://HOST:PORT\""
)]
pub struct ClusterServerError {
    /// The text found, without a user and a password.
    pub got: String,
    /// The problem of the text.
    pub problem: &'static str,
}

impl FromStr for ClusterServer {
    type Err = ClusterServerError;

    fn from_str(text: &str) -> Result<Self, ClusterServerError> {
        parse(text).map_err(|problem| ClusterServerError {
            got: without_credentials(text),
            problem,
        })
    }
}

fn parse(text: &str) -> Result<ClusterServer, &'static str> {
    let (tls, rest) = match text.split_once("://") {
        Some(("nats", rest)) => (false, rest),
        Some(("tls", rest)) => (true, rest),
        Some(_) => return Err("the scheme is unknown"),
        None => return Err("the scheme is missing"),
    };
    if rest.contains('@') {
        return Err("it has a user; name a file of credentials instead");
    }
    if rest.contains('/') {
        return Err("it has a path");
    }
    match rest.parse::<Address>() {
        Ok(Address::Tcp { port: 0, .. }) => Err("port 0 is no port of a server"),
        Ok(Address::Tcp { host, port }) => Ok(ClusterServer { tls, host, port }),
        Ok(Address::Unix(_)) => Err("a server has no unix socket"),
        Err(error) => Err(error.problem),
    }
}

impl fmt::Display for ClusterServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "tls" } else { "nats" };
        let (host, port) = (&self.host, self.port);
        if host.contains(':') {
            write!(f, "{scheme}://[{host}]:{port}")
        } else {
            write!(f, "{scheme}://{host}:{port}")
        }
    }
}

/// Returns true if a text can be the name of a machine in a cluster.
pub(super) fn is_name(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_allowed)
}

/// Returns the name that a machine has unless it is configured: that of its host, up to the
/// first dot. Other bytes that no name has become `-`.
pub(super) fn name_of_host(host: &str) -> String {
    let first = host.split('.').next().unwrap_or_default();
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
    let name: String = first
        .chars()
        .take(NAME_BYTES_MAX)
        .map(|letter| if allowed(letter) { letter } else { '-' })
        .collect();
    if is_name(&name) {
        name
    } else {
        NAME_UNKNOWN.to_owned()
    }
}

/// The most bytes of a name.
const NAME_BYTES_MAX: usize = 64;

/// The name of a machine whose host has none.
const NAME_UNKNOWN: &str = "cuzk";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_servers_read_back() {
        for text in ["nats://a:4222", "tls://10.0.0.1:1", "tls://[fd00::1]:65535"] {
            let address: ClusterServer = text.parse().unwrap();
            assert_eq!(address.to_string(), text);
            assert_eq!(address.tls, text.starts_with("tls"));
        }
    }

    #[test]
    fn other_texts_are_no_addresses_of_servers() {
        for (text, problem) in [
            ("", "the scheme is missing"),
            ("a:4222", "the scheme is missing"),
            ("http://a:4222", "the scheme is unknown"),
            ("nats://a", "the port is missing"),
            ("nats://a:0", "port 0"),
            ("nats://a:65536", "from 0 to 65535"),
            ("nats://:4222", "the host is missing"),
            ("nats://tcp://a:4222", "it has a path"),
            ("nats://a:4222/", "it has a path"),
            ("nats://unix:a", "the path of a unix socket"),
        ] {
            let error = text.parse::<ClusterServer>().unwrap_err().to_string();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }

    #[test]
    fn an_error_shows_no_password() {
        let secret = ["nats://user:secret@a:4222", "user:secret@a:4222"];
        for text in secret {
            let error = text.parse::<ClusterServer>().unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn a_host_has_a_name() {
        let long = "x".repeat(100);
        for (host, name) in [
            ("prover-7", "prover-7"),
            ("prover.example.com", "prover"),
            ("härte 1", "h-rte-1"),
            ("", "cuzk"),
            (".local", "cuzk"),
            (long.as_str(), &long[..64]),
        ] {
            assert_eq!(name_of_host(host), name);
            assert!(is_name(name));
        }
    }
}
