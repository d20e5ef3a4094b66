//! The addresses of a configuration, looked at before a daemon listens there.
//!
//! The invariant: nothing is made, and nothing is bound where a client could connect. A folder of a
//! socket that is not there is no problem, because systemd makes it for a service.

use std::fs;
use std::io::ErrorKind;
use std::net::UdpSocket;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use cuzk_core::config::{Address, Server};

use super::{HTTP, LISTEN, ListenError, Listeners, tcp, unix};

/// Returns the problems of all addresses.
pub(crate) fn problems(server: &Server) -> Vec<ListenError> {
    let mut problems: Vec<_> = Listeners::check(server).err().into_iter().collect();
    for address in &server.listen {
        problems.extend(match address {
            Address::Unix(path) => of_socket(path),
            Address::Tcp { host, .. } => of_host(LISTEN, address, host),
        });
    }
    if server
        .listen
        .iter()
        .any(|at| matches!(at, Address::Unix(_)))
    {
        let group = server.socket_group.as_deref().map(unix::group);
        problems.extend(group.and_then(Result::err));
    }
    if let Some(address @ Address::Tcp { host, port }) = &server.http {
        problems.extend(of_host(HTTP, address, host));
        if *port != 0 && server.listen.contains(address) {
            let address = address.to_string();
            problems.push(ListenError::Twice { address });
        }
    }
    problems
}

/// Returns the problem of a host that is none of this machine's addresses. A socket without a
/// connection and with a port of its own is bound there for a moment.
fn of_host(key: &'static str, address: &Address, host: &str) -> Option<ListenError> {
    let source = UdpSocket::bind((host, 0)).err()?;
    Some(tcp::bind_error(key, address.to_string(), source))
}

/// Returns the problem of the path of a unix socket. A socket that is there is replaced, or a
/// daemon has it now.
fn of_socket(path: &Path) -> Option<ListenError> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => None,
        Ok(_) => Some(ListenError::NotASocket {
            key: LISTEN,
            path: path.to_owned(),
        }),
        Err(error) if error.kind() == ErrorKind::NotADirectory => {
            Some(unix::bind_error(LISTEN, path, error))
        }
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::tests::server;

    #[test]
    fn each_address_with_which_no_daemon_starts_is_a_problem() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "kept").unwrap();
        let at = |path: &Path| format!("listen = [\"unix://{}\"]\n", path.display());
        let fine = folder.path().join("socket");
        // A part of a name has at most 63 letters, so no server of names is asked.
        let unknown = format!("tcp://{}:7", "a".repeat(64));
        let cannot_listen = format!("server.listen: cannot listen on {unknown}");
        let cases = [
            (at(&fine), None),
            (at(&folder.path().join("no/socket")), None),
            (at(&file), Some("is not a socket")),
            (at(folder.path()), Some("is not a socket")),
            (at(&file.join("socket")), Some("Not a directory")),
            (
                format!("{}socket_group = \"no such group\"\n", at(&fine)),
                Some("does not exist"),
            ),
            (
                "listen = [\"127.0.0.1:7\"]\nsocket_group = \"no such group\"\n".to_owned(),
                None,
            ),
            (
                format!("listen = [\"{unknown}\"]\n"),
                Some(cannot_listen.as_str()),
            ),
            // An address for documentation. A machine within that network would have it.
            (
                "listen = []\nhttp = \"203.0.113.77:7\"\n".to_owned(),
                Some("server.http: cannot listen on tcp://203.0.113.77:7"),
            ),
            (
                "listen = [\"127.0.0.1:7\"]\nhttp = \"127.0.0.1:7\"\n".to_owned(),
                Some("server.http: tcp://127.0.0.1:7 is in server.listen, too"),
            ),
            (
                "listen = [\"127.0.0.1:0\"]\nhttp = \"127.0.0.1:0\"\n".to_owned(),
                None,
            ),
        ];
        for (text, expected) in cases {
            let told: Vec<_> = problems(&server(&text))
                .iter()
                .map(ToString::to_string)
                .collect();
            assert_eq!(
                told.len(),
                usize::from(expected.is_some()),
                "{text}: {told:?}"
            );
            if let Some(expected) = expected {
                assert!(told[0].contains(expected), "{text}: {told:?}");
            }
        }
        assert!(!fine.exists(), "nothing is made");
    }

    /// A running daemon's own configuration is checked, too.
    #[test]
    fn an_address_that_a_daemon_has_now_is_no_problem() {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        let text = format!("listen = [\"127.0.0.1:{port}\"]\nhttp = \"\"\n");
        assert!(problems(&server(&text)).is_empty());
    }
}
