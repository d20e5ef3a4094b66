//! The errors of the transport, each by name.

use std::path::PathBuf;

use crate::ledger::Known;
use crate::message::MessageError;

/// The reason for which the transport cannot do something.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// There is no server at the addresses.
    #[error("server {addresses}: cannot connect: {source}; check the address and the network")]
    Connect {
        /// The addresses.
        addresses: String,
        /// The client library's reason.
        source: async_nats::ConnectError,
    },
    /// The server does not accept the credentials.
    #[error("server {addresses}: it refused the credentials; check the file of credentials")]
    Refused {
        /// The addresses.
        addresses: String,
    },
    /// The connection is lost.
    #[error("server {addresses}: it is gone; urgent work is proved here until it is back")]
    Lost {
        /// The addresses.
        addresses: String,
    },
    /// The file of credentials cannot be used.
    #[error(
        "credentials {path}: {source}; give a file with an NKEY seed, or with a JWT and its seed"
    )]
    Credentials {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The server is too old.
    #[error(
        "server {addresses}: version {found} is too old; install nats-server {}.{} or later",
        super::SERVER_VERSION_MIN.0,
        super::SERVER_VERSION_MIN.1
    )]
    TooOld {
        /// The addresses.
        addresses: String,
        /// Its version.
        found: String,
    },
    /// The server keeps no streams.
    #[error("server {addresses}: JetStream is off; start it with `nats-server --jetstream`")]
    NoJetStream {
        /// The addresses.
        addresses: String,
    },
    /// A stream of this name has settings that do not work here.
    #[error(
        "stream {stream}: {setting}: expected {expected}, got {found}; \
         someone else made it; remove it, or use another account of the server"
    )]
    ForeignStream {
        /// The stream.
        stream: String,
        /// The setting that differs.
        setting: &'static str,
        /// The value that is needed.
        expected: String,
        /// The value that it has.
        found: String,
    },
    /// A request to the server failed.
    #[error("server: {what}: {problem}; it is tried again")]
    Request {
        /// The request.
        what: &'static str,
        /// The client library's reason.
        problem: String,
    },
    /// The object of an input is not the input.
    #[error("object {object}: its digest is wrong; the owner sends the input again")]
    WrongObject {
        /// The name of the object, which is the digest of the input.
        object: String,
    },
    /// An input is longer than the cluster carries.
    #[error("input of {bytes} bytes: the cluster carries at most {bytes_max}; prove it here")]
    InputTooLong {
        /// Its length.
        bytes: u64,
        /// The longest input.
        bytes_max: u64,
    },
    /// The input of a partition is not needed any more.
    #[error("input: the partition has ended; it is not sent")]
    NoInput,
    /// The daemon made another input than that which it offered.
    #[error("input: its digest is another one than before; please report it")]
    OtherInput,
    /// A partition was offered twice.
    #[error(transparent)]
    Known(#[from] Known),
    /// A message cannot be used.
    #[error(transparent)]
    Message(#[from] MessageError),
    /// A thread or its runtime cannot be started.
    #[error(
        "thread {name}: {source}; check the limits of the process (`ulimit -u` for threads, \
         `ulimit -n` for open files)"
    )]
    Thread {
        /// The thread.
        name: &'static str,
        /// The system's reason.
        source: std::io::Error,
    },
}

impl ClusterError {
    /// Returns true if an input can never be sent.
    pub(super) fn is_of_input(&self) -> bool {
        matches!(
            self,
            Self::InputTooLong { .. } | Self::OtherInput | Self::Message(_)
        )
    }

    pub(super) fn request(what: &'static str, problem: impl std::fmt::Display) -> Self {
        let problem = problem.to_string();
        Self::Request { what, problem }
    }
}
