//! The daemon's addresses: may it listen there, may clients call, does one answer now.

use std::io;
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use cuzk_core::Config;
use cuzk_core::config::Address;
use cuzk_files::check_folder;

use super::finding::Finding;

const TOPIC: &str = "listener";

/// The longest wait for an answer.
const ANSWER_TIME: Duration = Duration::from_millis(300);

pub(super) fn examine(config: &Config) -> Vec<Finding> {
    let addresses = config.server.listen.iter().chain(&config.server.http);
    addresses.map(of_address).collect()
}

fn of_address(address: &Address) -> Finding {
    match address {
        Address::Unix(path) => of_socket(path),
        Address::Tcp { host, port } => of_port(address, host, *port),
    }
}

fn of_port(address: &Address, host: &str, port: u16) -> Finding {
    let resolved = (host, port).to_socket_addrs();
    let Some(at) = resolved.ok().and_then(|mut all| all.next()) else {
        let text = format!("{address}: the host has no address");
        let advice = "write an IP address, or let the name be resolved";
        return Finding::error(TOPIC, text, advice);
    };
    if port != 0 && TcpStream::connect_timeout(&at, ANSWER_TIME).is_ok() {
        return Finding::ok(TOPIC, format!("{address}: a program answers there now"));
    }
    match TcpListener::bind(at) {
        Ok(_) => Finding::ok(TOPIC, format!("{address}: free for the daemon")),
        Err(error) => {
            let text = format!("{address}: {error}");
            let advice = "listen on an address of this machine that is free; ports below 1024 \
                          need a capability";
            Finding::error(TOPIC, text, advice)
        }
    }
}

fn of_socket(path: &Path) -> Finding {
    let shown = path.display();
    let folder = path.parent().unwrap_or(Path::new("/"));
    let metadata = match path.metadata() {
        Ok(metadata) => metadata,
        Err(_) if !folder.is_dir() => {
            let text = format!("unix://{shown}: its folder does not exist");
            let advice = "systemd makes it for a service (RuntimeDirectory=); otherwise make it";
            return Finding::warning(TOPIC, text, advice);
        }
        Err(_) => {
            return match check_folder(folder) {
                Ok(()) => Finding::ok(TOPIC, format!("unix://{shown}: free for the daemon")),
                Err(error) => {
                    let text = format!("unix://{shown}: {error}");
                    let advice = "let the user of the daemon write into the folder";
                    Finding::error(TOPIC, text, advice)
                }
            };
        }
    };
    if !metadata.file_type().is_socket() {
        let text = format!("unix://{shown}: another file is there");
        return Finding::error(TOPIC, text, "move it away, or listen elsewhere");
    }
    let mode = metadata.permissions().mode() & 0o777;
    judge_call(path, mode, UnixStream::connect(path).map(drop))
}

/// Returns the finding about a socket that was called.
fn judge_call(path: &Path, mode: u32, called: io::Result<()>) -> Finding {
    let shown = path.display();
    match called {
        Ok(()) => Finding::ok(TOPIC, format!("unix://{shown}: answers, mode {mode:04o}")),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let text = format!("unix://{shown}: mode {mode:04o}, and this user may not call");
            let advice = "put the client's user into the group of the socket ([server] \
                          socket_group), or widen [server] socket_mode";
            Finding::warning(TOPIC, text, advice)
        }
        Err(_) => {
            let text = format!("unix://{shown}: left by a daemon that has ended");
            let advice = "nothing is to be done: the next start takes it over";
            Finding::warning(TOPIC, text, advice)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::super::finding::Level;
    use super::*;

    #[test]
    fn a_socket_is_free_answers_is_left_or_is_no_socket() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let found = of_socket(&at("cuzk.sock"));
        assert!(
            found.text.ends_with("free for the daemon") && found.level == Level::Ok,
            "{found:?}"
        );
        let listener = UnixListener::bind(at("cuzk.sock")).unwrap();
        let found = of_socket(&at("cuzk.sock"));
        assert!(found.text.contains("answers, mode 0"), "{found:?}");
        drop(listener);
        let found = of_socket(&at("cuzk.sock"));
        assert!(found.text.contains("left by"), "{found:?}");
        std::fs::write(at("file"), "").unwrap();
        assert_eq!(of_socket(&at("file")).level, Level::Error);
        assert_eq!(of_socket(&at("no/cuzk.sock")).level, Level::Warning);
    }

    /// The system's first user may call every socket, so the answer is made up.
    #[test]
    fn a_socket_that_this_user_may_not_call_is_told_with_its_mode() {
        let refused = Err(io::ErrorKind::PermissionDenied.into());
        let found = judge_call(Path::new("/run/cuzk.sock"), 0o660, refused);
        assert_eq!(found.level, Level::Warning);
        let text = "unix:///run/cuzk.sock: mode 0660, and this user may not call";
        assert_eq!(found.text, text);
        assert!(found.advice.unwrap().contains("socket_group"));
    }

    #[test]
    fn a_port_is_free_or_answers() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let address = |host: &str, port| Address::Tcp {
            host: host.to_owned(),
            port,
        };
        let found = of_address(&address("127.0.0.1", port));
        assert!(found.text.contains("answers"), "{found:?}");
        assert_eq!(of_address(&address("127.0.0.1", 0)).level, Level::Ok);
        // An address for documentation, which no machine has.
        assert_eq!(of_address(&address("192.0.2.1", 1)).level, Level::Error);
    }
}
