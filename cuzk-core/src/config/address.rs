//! The address of a daemon: where it listens, and where a client finds it.
//!
//! Not a socket: nothing here resolves a name or opens anything. The invariant: an
//! [`Address`] that is printed reads back as the same address.

use std::fmt;
use std::net::Ipv6Addr;
use std::path::PathBuf;
use std::str::FromStr;

/// The longest path that the operating system takes for a socket, bytes.
const SOCKET_PATH_MAX_BYTES: usize = 107;

/// The longest name of a host, bytes, as the domain name system has it.
const HOST_MAX_BYTES: usize = 253;

/// The address of a daemon.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Address {
    /// A unix socket, by its absolute path.
    Unix(PathBuf),
    /// A TCP port.
    Tcp {
        /// A name, or an IP address without brackets.
        host: String,
        /// The port. 0 lets the operating system choose one when a daemon listens.
        port: u16,
    },
}

/// A text that is no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{got:?} is not an address: {problem}; write \"unix:///PATH\" or \"tcp://HOST:PORT\"")]
pub struct AddressError {
    /// The text found, without a user and a password.
    pub got: String,
    /// The problem of the text.
    pub problem: &'static str,
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let (address, got) = match text.strip_prefix("unix:") {
            Some(rest) => (unix(rest), text.to_owned()),
            None => (tcp(text), without_credentials(text)),
        };
        address.map_err(|problem| AddressError { got, problem })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
            Self::Tcp { host, port } if host.contains(':') => write!(f, "tcp://[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "tcp://{host}:{port}"),
        }
    }
}

/// Returns a text that may be shown: a user and a password are cut out. A path has none.
pub(super) fn without_credentials(text: &str) -> String {
    let start = match text.find("://") {
        Some(scheme) => scheme + "://".len(),
        None => 0,
    };
    match text[start..].rfind('@') {
        Some(at) if !text[start..].starts_with('/') => {
            format!("{}…{}", &text[..start], &text[start + at..])
        }
        _ => text.to_owned(),
    }
}

/// Reads what follows `unix:`, which is `///PATH` or `/PATH`.
fn unix(rest: &str) -> Result<Address, &'static str> {
    let path = rest.strip_prefix("//").unwrap_or(rest);
    if !path.starts_with('/') {
        return Err("the path of a unix socket must be absolute");
    }
    if path.len() > SOCKET_PATH_MAX_BYTES {
        return Err("the path of a unix socket has at most 107 bytes");
    }
    if path.ends_with('/') {
        return Err("the path of a unix socket must name a file");
    }
    if path.contains(char::is_control) {
        return Err("the path of a unix socket has no control characters");
    }
    Ok(Address::Unix(path.into()))
}

fn tcp(text: &str) -> Result<Address, &'static str> {
    let text = match text.split_once("://") {
        Some(("tcp", rest)) => rest,
        Some(_) => return Err("the scheme is unknown"),
        None => text,
    };
    let Some((host, port)) = text.rsplit_once(':') else {
        return Err("the port is missing");
    };
    // `parse` alone would take a sign.
    let digits = port.bytes().all(|byte| byte.is_ascii_digit());
    let port = port.parse().ok().filter(|_| digits);
    Ok(Address::Tcp {
        host: self::host(host)?.to_owned(),
        port: port.ok_or("the port must be a number from 0 to 65535")?,
    })
}

/// Returns a host without the brackets of an IPv6 address.
fn host(text: &str) -> Result<&str, &'static str> {
    if let Some(inner) = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'))
    {
        let address: Result<Ipv6Addr, _> = inner.parse();
        return match address {
            Ok(_) => Ok(inner),
            Err(_) => Err("an IPv6 address is expected in the brackets"),
        };
    }
    let valid = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    match text {
        "" => Err("the host is missing"),
        _ if text.contains(':') => Err("an IPv6 address is written in brackets"),
        _ if text.len() > HOST_MAX_BYTES => Err("the name of a host has at most 253 bytes"),
        _ if !text.bytes().all(valid) => Err("the host is neither a name nor an IP address"),
        _ => Ok(text),
    }
}

#[cfg(test)]
mod tests;
