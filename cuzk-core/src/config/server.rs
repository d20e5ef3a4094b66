//! The daemon as it is configured: where it listens, who may call, and what its requests
//! may take.
//!
//! Nothing here opens a socket or reads a certificate. The invariant: a certificate has a
//! key, and tokens and client certificates have a server's certificate beside them.

use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;

use super::address::Address;

/// The daemon: listeners, who may call, and what requests may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Where the gRPC service listens.
    pub listen: Vec<Address>,
    /// Where the HTTP pages are, always [`Address::Tcp`]; `None` for nowhere.
    pub http: Option<Address>,
    /// The permissions of unix sockets, at most `0o777`.
    pub socket_mode: u32,
    /// The group of unix sockets; `None` for the group of the process.
    pub socket_group: Option<String>,
    /// The server's certificate and its chain, PEM.
    pub tls_certificate: Option<PathBuf>,
    /// The key of the certificate, PEM.
    pub tls_key: Option<PathBuf>,
    /// The authority of the clients' certificates, PEM.
    pub client_ca: Option<PathBuf>,
    /// A file with one token a line.
    pub tokens: Option<PathBuf>,
    /// Networks whose clients need no TLS.
    pub plaintext_from: Vec<IpNet>,
    /// The most bytes that requests may hold before they are jobs of the engine.
    pub request_memory_bytes: u64,
    /// How long work goes on after the daemon was told to stop.
    pub drain: Duration,
    /// The folder of what the daemon keeps. `None` where neither the file nor the
    /// environment names one.
    pub state_dir: Option<PathBuf>,
    /// Serve the files of the parameter cache over HTTP, under `/params/`.
    pub serve_params: bool,
}

/// The least budget of requests: one message of 256 MiB, and some for PoSts beside it.
pub const REQUEST_MEMORY_MIN_BYTES: u64 = 320 << 20;
