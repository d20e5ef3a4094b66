//! Sockets that systemd hands over. The test runs itself again, in a process that has them.

use std::net::TcpListener;
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::process::Command;

use cuzk_bounded::BoundedCommand;
use cuzk_core::config::Config;
use cuzk_server::listen::Listeners;
use nix::fcntl::{FcntlArg, fcntl};

/// Set in the process that has the sockets.
const INSIDE: &str = "CUZK_TEST_HANDED";

#[test]
fn sockets_of_systemd_replace_those_of_the_configuration() {
    if std::env::var_os(INSIDE).is_some() {
        return inside();
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("handed");
    let grpc = UnixListener::bind(&path).unwrap();
    let http = TcpListener::bind("127.0.0.1:0").unwrap();
    // Copies that a child inherits, side by side.
    let copy = |socket, place| fcntl(socket, FcntlArg::F_DUPFD(place)).unwrap();
    let first = copy(http.as_fd(), 100);
    assert_eq!(copy(grpc.as_fd(), first), first + 1);
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture"])
        .arg("handed::sockets_of_systemd_replace_those_of_the_configuration")
        .env(INSIDE, "1")
        .env("LISTEN_FDS_FIRST_FD", first.to_string())
        .env("LISTEN_FDS", "2")
        .env("LISTEN_FDNAMES", "http:grpc")
        .env_remove("LISTEN_PID")
        .output_bounded()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    let grpc = format!("grpc unix://{}", path.display());
    let http = format!("http {}", http.local_addr().unwrap());
    assert!(text.contains(&grpc) && text.contains(&http), "{text}");
    assert!(path.exists(), "the socket is systemd's");
}

fn inside() {
    let mut listeners = Listeners::bind(&Config::default().server).unwrap();
    for address in listeners.addresses() {
        println!("grpc {address}");
    }
    let http = listeners.take_http().unwrap();
    println!("http {}", http.local_addr().unwrap());
}
