//! The errors of a client. Each says what is wrong and what to do. The message of a daemon comes
//! last, because it ends with its code.

use std::path::PathBuf;

use tonic::{Code, Status};

use cuzk_core::config::Address;

/// The end of a call without a reply.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// A certificate, a key or a token that cannot be used.
    #[error("{}: {problem}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The problem, and what to do.
        problem: String,
    },
    /// Credentials that do not fit each other or the address.
    #[error("{0}")]
    Credentials(&'static str),
    /// Nothing answers at the address.
    #[error("nothing answers at {address} ({reason}); start it with `cuzk serve`")]
    NotThere {
        /// Where the daemon should be.
        address: Address,
        /// The error of the system.
        reason: String,
    },
    /// A daemon answers, and one side does not trust the other's certificate.
    #[error("{address}: {reason}; check --ca, --server-name, --certificate and --key")]
    Untrusted {
        /// The daemon.
        address: Address,
        /// The error of TLS.
        reason: String,
    },
    /// The daemon stops, or the connection was cut.
    #[error("{address} ended the call, so call again with the same request: {reason}")]
    Lost {
        /// The daemon.
        address: Address,
        /// Its message, or the error of the system.
        reason: String,
    },
    /// The daemon has no room, or what the call needs is in use.
    #[error("{address} cannot do it now, so call again later: {reason}")]
    Busy {
        /// The daemon.
        address: Address,
        /// Its message.
        reason: String,
    },
    /// Input that the daemon will never take.
    #[error("{0}")]
    InvalidInput(String),
    /// The daemon asks for other credentials.
    #[error(
        "{address} refuses the call: {reason}; give a certificate (--certificate, --key) or a \
         token (--token-file)"
    )]
    Unauthenticated {
        /// The daemon.
        address: Address,
        /// Its message.
        reason: String,
    },
    /// The daemon does not know the call.
    #[error("{address} does not know {call}; it is another daemon, or an older one")]
    Unsupported {
        /// The daemon.
        address: Address,
        /// The name of the call.
        call: &'static str,
    },
    /// Any other refusal.
    #[error("{address} could not do {call} ({code:?}): {reason}")]
    Refused {
        /// The daemon.
        address: Address,
        /// The name of the call.
        call: &'static str,
        /// Its message.
        reason: String,
        /// The code of its refusal.
        code: Code,
    },
}

impl ClientError {
    /// Returns the error of a connection that did not come about.
    pub(super) fn of_connection(address: &Address, error: &tonic::transport::Error) -> Self {
        let (address, reason) = (address.clone(), innermost(error));
        if is_of_tls(error) {
            Self::Untrusted { address, reason }
        } else if was_accepted(error) {
            Self::Lost { address, reason }
        } else {
            Self::NotThere { address, reason }
        }
    }

    pub(super) fn of_call(address: &Address, call: &'static str, status: &Status) -> Self {
        let address = address.clone();
        let reason = reason(status);
        match status.code() {
            // The reply could not be read: a code that comes from a daemon has no source.
            Code::InvalidArgument if std::error::Error::source(status).is_some() => Self::Refused {
                address,
                call,
                reason: format!("its reply is malformed: {reason}"),
                code: Code::Internal,
            },
            Code::InvalidArgument | Code::OutOfRange => Self::InvalidInput(reason),
            Code::Unauthenticated | Code::PermissionDenied => {
                Self::Unauthenticated { address, reason }
            }
            Code::ResourceExhausted => Self::Busy { address, reason },
            Code::Unavailable | Code::Cancelled => Self::Lost { address, reason },
            // A status with a source is the client's own: the daemon did not answer.
            _ if std::error::Error::source(status).is_some() => Self::Lost { address, reason },
            Code::Unimplemented => Self::Unsupported { address, call },
            code => Self::Refused {
                address,
                call,
                reason,
                code,
            },
        }
    }

    /// Returns true if the caller can mend it by changing an argument or a file.
    #[must_use]
    pub fn is_input(&self) -> bool {
        matches!(
            self,
            Self::File { .. } | Self::Credentials(_) | Self::InvalidInput(_)
        )
    }

    /// Returns true if the same call may succeed later.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        matches!(
            self,
            Self::NotThere { .. } | Self::Lost { .. } | Self::Busy { .. }
        )
    }
}

/// Returns the message of a status, with the innermost error that it comes from.
fn reason(status: &Status) -> String {
    match std::error::Error::source(status) {
        Some(source) => innermost(source),
        None => status.message().to_owned(),
    }
}

/// Returns the last error of a chain. Those before it say "transport error".
fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

/// Returns true if somebody accepted a connection and then ended it, as a daemon does that
/// stops.
fn was_accepted(error: &(dyn std::error::Error + 'static)) -> bool {
    use std::io::ErrorKind;
    std::iter::successors(Some(error), |error| error.source())
        .filter_map(|error| error.downcast_ref::<std::io::Error>())
        .any(|error| {
            matches!(
                error.kind(),
                ErrorKind::BrokenPipe | ErrorKind::ConnectionReset | ErrorKind::UnexpectedEof
            )
        })
}

/// Returns true if TLS is among the causes of an error.
fn is_of_tls(error: &(dyn std::error::Error + 'static)) -> bool {
    std::iter::successors(Some(error), |error| error.source())
        .filter_map(|error| error.downcast_ref::<std::io::Error>()?.get_ref())
        .any(|inner| inner.is::<rustls::Error>())
}

#[cfg(test)]
mod tests {
    use std::io::{Error, ErrorKind};

    use super::*;

    #[test]
    fn a_connection_that_was_ended_is_told_from_one_that_nobody_accepted() {
        for kind in [
            ErrorKind::BrokenPipe,
            ErrorKind::ConnectionReset,
            ErrorKind::UnexpectedEof,
        ] {
            assert!(was_accepted(&Error::from(kind)), "{kind}");
        }
        for kind in [ErrorKind::ConnectionRefused, ErrorKind::NotFound] {
            assert!(!was_accepted(&Error::from(kind)), "{kind}");
        }
    }
}
