//! Configurations with which no daemon starts. Each error names the key and what to do.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use cuzk_bounded::BoundedChild;

use crate::fixture::{Daemon, PATIENCE};

/// Runs `cuzk serve`, which has to end by itself.
fn serve(folder: &Path, config: &str, arguments: &[&str]) -> Output {
    std::fs::write(folder.join("cuzk.toml"), config).unwrap();
    let mut process = Command::new(env!("CARGO_BIN_EXE_cuzk"))
        .args(["serve", "--config"])
        .arg(folder.join("cuzk.toml"))
        .args(arguments)
        .env("STATE_DIRECTORY", folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let until = Instant::now() + PATIENCE;
    while process.try_wait().unwrap().is_none() {
        if Instant::now() > until {
            process.kill().unwrap();
            panic!("it serves with {config} {arguments:?}");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    process.wait_with_output_bounded().unwrap()
}

/// Checks that a daemon does not start, and says each of `parts`.
fn refused(folder: &Path, config: &str, arguments: &[&str], parts: &[&str]) {
    let output = serve(folder, config, arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        output.status.code(),
        Some(2),
        "{config} {arguments:?}: {said}"
    );
    for part in parts {
        assert!(
            said.contains(part),
            "{config} {arguments:?}: {part:?}: {said}"
        );
    }
}

#[test]
fn a_listener_that_cannot_be_had_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("file"), "kept").unwrap();
    let file = format!("unix://{}/file", folder.display());
    let nowhere = format!("unix://{}/no/socket", folder.display());
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let tcp = format!("tcp://{taken}");
    let free = "tcp://127.0.0.1:0";
    let key = "server.listen: ";
    let cases: [(&[&str], &[&str]); 6] = [
        (&["--listen", &file], &[key, "not a socket; remove it"]),
        (&["--listen", &nowhere], &[key, "make its folder"]),
        (
            &["--listen", &tcp],
            &[key, &taken, "in use", "write another"],
        ),
        (
            &["--listen", free, "--http", &taken],
            &["server.http: ", &taken, "in use", "write another"],
        ),
        (
            &["--listen", "tcp://0.0.0.0:0"],
            &[
                key,
                "server.client_ca",
                "server.tokens",
                "server.plaintext_from",
            ],
        ),
        (
            &["--listen", free, "--http", "unix:///page"],
            &["--http", "give HOST:PORT"],
        ),
    ];
    for (arguments, parts) in cases {
        refused(folder, "", arguments, parts);
    }
    assert_eq!(
        std::fs::read_to_string(folder.join("file")).unwrap(),
        "kept"
    );
}

#[test]
fn a_key_that_cannot_be_used_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("tokens"), "short\n").unwrap();
    std::fs::write(folder.join("empty.pem"), "").unwrap();
    let at = |name: &str| folder.join(name).display().to_string();
    let tls = format!(
        "tls_certificate = \"{0}\"\ntls_key = \"{0}\"\n",
        at("empty.pem")
    );
    let cases: [(String, &[&str]); 7] = [
        ("listn = []".to_owned(), &["line 2", "listn", "listen"]),
        (
            "listen = [\"prover\"]".to_owned(),
            &["listen", "tcp://HOST:PORT"],
        ),
        ("socket_mode = \"999\"".to_owned(), &["socket_mode"]),
        (
            format!("tokens = \"{}\"", at("tokens")),
            &["tokens", "tls_certificate"],
        ),
        (
            tls.clone(),
            &["server.tls_certificate: ", "BEGIN CERTIFICATE"],
        ),
        (
            format!("state_dir = \"{}/x\"", at("tokens")),
            &["server.state_dir: ", "write a folder"],
        ),
        (
            "socket_group = \"no such group\"".to_owned(),
            &["server.socket_group: ", "does not exist"],
        ),
    ];
    let socket = format!("unix://{}/socket", folder.display());
    for (config, parts) in cases {
        let config = format!("[server]\n{config}\n");
        refused(folder, &config, &["--listen", &socket], parts);
    }
    assert!(!folder.join("socket").exists());
}

/// Two daemons with one journal would prove every job twice.
#[tokio::test]
async fn a_journal_that_another_daemon_has_is_named() {
    let mut daemon = Daemon::start("");
    daemon.client().await;
    let folder = daemon.folder.path();
    let output = serve(folder, "", &["--listen", "tcp://127.0.0.1:0"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_ne!(output.status.code(), Some(0), "{said}");
    assert!(
        said.contains("jobs.redb") && said.contains("process"),
        "{said}"
    );
}
