//! The way from `[server]` of a file to the daemon's configuration.
//!
//! Not its sockets: an address that is in use, or a file that is not there, is noticed at
//! the start. The invariant is that of [`Server`].

use std::net::IpAddr;
use std::path::PathBuf;

use ipnet::IpNet;

use super::super::address::Address;
use super::super::file::{Field, ServerSection, SizeText};
use super::super::keys::expected;
use super::super::problem::ProblemKind;
use super::super::server::{REQUEST_MEMORY_MIN_BYTES, Server};
use super::super::values::Check;

const SECTION: &str = "server";

/// The automatic budget of requests is an eighth of what may be used, at most this.
const REQUEST_MEMORY_AUTO_MAX_BYTES: u64 = 4 << 30;

const SOCKET_MODE_DEFAULT: u32 = 0o660;

/// Returns the daemon's configuration. `usable_bytes` is the budget without its margin.
pub(super) fn server(check: &mut Check<'_>, section: &ServerSection, usable_bytes: u64) -> Server {
    let server = Server {
        listen: listen(check, &section.listen),
        http: http(check, &section.http),
        socket_mode: socket_mode(check, &section.socket_mode),
        socket_group: text(&section.socket_group),
        tls_certificate: path(&section.tls_certificate),
        tls_key: path(&section.tls_key),
        client_ca: path(&section.client_ca),
        tokens: path(&section.tokens),
        plaintext_from: networks(check, &section.plaintext_from),
        request_memory_bytes: request_memory(check, &section.request_memory, usable_bytes),
        drain: check.seconds(SECTION, "drain_s", &section.drain_s, 120),
        state_dir: path(&section.state_dir).or_else(|| check.host.state_dir.clone()),
        serve_params: section
            .serve_params
            .as_ref()
            .is_some_and(|serve| *serve.get_ref()),
    };
    note_missing(check, section, &server);
    for (key, field) in [
        ("tls_certificate", &section.tls_certificate),
        ("tls_key", &section.tls_key),
        ("client_ca", &section.client_ca),
        ("tokens", &section.tokens),
        ("state_dir", &section.state_dir),
    ] {
        check.check_path(SECTION, key, field);
    }
    server
}

/// Notes keys that have no effect without another one.
fn note_missing(check: &mut Check<'_>, section: &ServerSection, server: &Server) {
    let certificate = ("tls_certificate", server.tls_certificate.is_some());
    let key = ("tls_key", server.tls_key.is_some());
    for (name, field, (needs, there)) in [
        ("tls_certificate", &section.tls_certificate, key),
        ("tls_key", &section.tls_key, certificate),
        ("client_ca", &section.client_ca, certificate),
        ("tokens", &section.tokens, certificate),
    ] {
        if let Some(at) = field.as_ref().filter(|at| !at.get_ref().is_empty())
            && !there
        {
            check.note(SECTION, name, at, ProblemKind::Needs { needs });
        }
    }
}

fn tcp(host: &str, port: u16) -> Address {
    let host = host.to_owned();
    Address::Tcp { host, port }
}

fn listen(check: &mut Check<'_>, field: &Field<Vec<String>>) -> Vec<Address> {
    let Some(value) = field else {
        return vec![tcp("127.0.0.1", 9820)];
    };
    let mut addresses = Vec::new();
    for text in value.get_ref() {
        match text.parse::<Address>() {
            Ok(address) if addresses.contains(&address) => {}
            Ok(address) => addresses.push(address),
            Err(error) => check.note(SECTION, "listen", value, ProblemKind::BadAddress(error)),
        }
    }
    addresses
}

fn http(check: &mut Check<'_>, field: &Field<String>) -> Option<Address> {
    let Some(value) = field else {
        return Some(tcp("127.0.0.1", 9821));
    };
    let text = value.get_ref();
    if text.is_empty() {
        return None;
    }
    match text.parse() {
        Ok(Address::Unix(_)) => {
            note_unknown(check, "http", value, text);
            None
        }
        Ok(address) => Some(address),
        Err(error) => {
            check.note(SECTION, "http", value, ProblemKind::BadAddress(error));
            None
        }
    }
}

fn socket_mode(check: &mut Check<'_>, field: &Field<String>) -> u32 {
    let Some(value) = field else {
        return SOCKET_MODE_DEFAULT;
    };
    let text = value.get_ref();
    let octal = text.bytes().all(|byte| matches!(byte, b'0'..=b'7'));
    let mode = u32::from_str_radix(text, 8).ok().filter(|_| octal);
    mode.filter(|mode| (1..=0o777).contains(mode))
        .unwrap_or_else(|| {
            note_unknown(check, "socket_mode", value, text);
            SOCKET_MODE_DEFAULT
        })
}

/// Networks, each once. A bare address is a network of one.
fn networks(check: &mut Check<'_>, field: &Field<Vec<String>>) -> Vec<IpNet> {
    let Some(value) = field else {
        return Vec::new();
    };
    let mut networks = Vec::new();
    for text in value.get_ref() {
        let network = text
            .parse()
            .or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
        match network.map(|network: IpNet| network.trunc()) {
            Ok(network) if networks.contains(&network) => {}
            Ok(network) => networks.push(network),
            Err(_) => note_unknown(check, "plaintext_from", value, text),
        }
    }
    networks
}

fn request_memory(check: &mut Check<'_>, field: &Field<SizeText>, usable_bytes: u64) -> u64 {
    let eighth_bytes = usable_bytes / 8;
    // Whole MiB, for those who read it.
    let auto_bytes = (eighth_bytes - eighth_bytes % (1 << 20))
        .clamp(REQUEST_MEMORY_MIN_BYTES, REQUEST_MEMORY_AUTO_MAX_BYTES);
    let bytes = check.size(SECTION, "request_memory", field);
    let (Some(at), Some(got)) = (field, bytes) else {
        return auto_bytes;
    };
    if got < REQUEST_MEMORY_MIN_BYTES {
        let min = REQUEST_MEMORY_MIN_BYTES;
        check.note(
            SECTION,
            "request_memory",
            at,
            ProblemKind::TooSmall { min, got },
        );
    }
    got
}

fn note_unknown<T>(check: &mut Check<'_>, key: &'static str, at: &toml::Spanned<T>, got: &str) {
    let kind = ProblemKind::UnknownValue {
        expected: expected(SECTION, key),
        got: got.to_owned(),
    };
    check.note(SECTION, key, at, kind);
}

fn text(field: &Field<String>) -> Option<String> {
    let text = field.as_ref().map(|text| text.get_ref().clone());
    text.filter(|text| !text.is_empty())
}

/// Returns a path, and `None` for an empty text.
pub(super) fn path(field: &Field<String>) -> Option<PathBuf> {
    text(field).map(PathBuf::from)
}
