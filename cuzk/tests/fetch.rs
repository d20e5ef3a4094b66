//! `cuzk params fetch` and `cuzk params list`, with made-up files under the names of real
//! parameters.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failure in a test fails the test"
)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;

use cuzk_bounded::{BoundedChild, BoundedCommand, BoundedReceiver};
use cuzk_core::circuits;
use cuzk_fetch::Digest;
use cuzk_filecoin::{CircuitId, ProofKind, SectorSize};
use serde_json::Value;

/// A folder with made-up parameters, their list, and an empty cache.
struct Place {
    folder: tempfile::TempDir,
    names: [String; 2],
}

impl Place {
    fn new() -> Self {
        let id = CircuitId {
            kind: ProofKind::WinningPost,
            sector_size: SectorSize::KiB2,
        };
        let files = circuits::parameter_files(id).unwrap();
        let place = Self {
            folder: tempfile::tempdir().unwrap(),
            names: [files.vk, files.params],
        };
        std::fs::create_dir(place.path("from")).unwrap();
        let mut entries = Vec::new();
        for (name, length) in place.names.iter().zip([500, 3_000_000]) {
            let bytes = vec![7; length];
            let digest = Digest::of_bytes(&bytes);
            std::fs::write(place.path("from").join(name), bytes).unwrap();
            entries.push(format!(
                r#""{name}": {{"cid": "Qm1", "digest": "{digest}", "sector_size": 2048}}"#
            ));
        }
        let list = format!("{{{}}}", entries.join(","));
        std::fs::write(place.path("list.json"), list).unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cuzk"));
        command
            .args(["params", arguments[0], "--digests"])
            .arg(self.path("list.json"))
            .args(&arguments[1..])
            .env_remove("IPFS_GATEWAY")
            .env("FIL_PROOFS_PARAMETER_CACHE", self.path("cache"));
        command
    }

    /// Fetches from sources.
    fn fetch(&self, more: &[&str]) -> Output {
        let arguments = ["fetch", "--kind", "winning-post", "--sector-size", "2KiB"];
        let arguments = [&arguments[..], more].concat();
        self.command(&arguments).output_bounded().unwrap()
    }

    /// Returns the states of the files in the cache.
    fn states(&self, more: &[&str]) -> Vec<String> {
        let listed = self.command(&[&["list", "--json"][..], more].concat());
        let report = json(&{ listed }.output_bounded().unwrap());
        let files = report["files"].as_array().unwrap();
        for file in files {
            assert_eq!(file["circuit"], "winning-post-2KiB");
        }
        let state = |file: &Value| file["state"].as_str().unwrap().to_owned();
        files.iter().map(state).collect()
    }
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn files_come_and_are_listed_and_come_once() {
    let place = Place::new();
    let from = place.path("from");
    let first = place.fetch(&["--from", text(&from), "--json"]);
    assert!(first.status.success(), "{first:?}");
    let report = json(&first);
    assert_eq!(report["fetched_bytes"], 3_000_500);
    assert_eq!(report["files"][1]["name"], place.names[1]);
    for name in &place.names {
        let came = std::fs::read(place.path("cache").join(name)).unwrap();
        assert!(came == std::fs::read(from.join(name)).unwrap());
    }
    assert_eq!(place.states(&[]), ["verified", "verified"]);

    let second = json(&place.fetch(&["--from", text(&from), "--json"]));
    assert_eq!(second["fetched_bytes"], 0);
    assert_eq!(second["files"][0]["fetched"], false);
}

#[test]
fn a_file_that_changed_is_not_verified_and_a_check_says_it_is_wrong() {
    let place = Place::new();
    assert!(place.states(&[]).is_empty());
    std::fs::create_dir(place.path("cache")).unwrap();
    for name in &place.names {
        let (from, to) = (place.path("from"), place.path("cache"));
        std::fs::copy(from.join(name), to.join(name)).unwrap();
    }
    assert_eq!(place.states(&[]), ["not-verified", "not-verified"]);
    assert_eq!(place.states(&["--check"]), ["verified", "verified"]);
    let params = place.path("cache").join(&place.names[1]);
    std::fs::write(params, "changed").unwrap();
    let mut states = place.states(&[]);
    states.sort();
    assert_eq!(states, ["not-verified", "verified"]);
    assert!(
        place
            .states(&["--check"])
            .contains(&"wrong-digest".to_owned())
    );
}

#[test]
fn a_source_of_wrong_bytes_is_named_and_another_is_used() {
    let place = Place::new();
    let wrong = place.path("wrong");
    std::fs::create_dir(&wrong).unwrap();
    for (name, length) in place.names.iter().zip([500, 3_000_000]) {
        std::fs::write(wrong.join(name), vec![8; length]).unwrap();
    }
    let alone = place.fetch(&["--from", text(&wrong)]);
    assert_eq!(alone.status.code(), Some(1), "{alone:?}");
    assert!(stderr(&alone).contains("gave wrong bytes"), "{alone:?}");
    let from = place.path("from");
    let both = place.fetch(&["--from", text(&wrong), "--from", text(&from), "--json"]);
    assert!(both.status.success(), "{both:?}");
    let report = json(&both);
    assert_eq!(report["sources"][0]["corrupt"], true, "{report}");
    assert_eq!(report["sources"][1]["corrupt"], false, "{report}");
}

#[test]
fn sources_are_those_of_the_configuration_unless_they_are_named() {
    let place = Place::new();
    let config = place.path("cuzk.toml");
    let from = place.path("from");
    std::fs::write(&config, format!("[srs]\nsources = [{:?}]\n", text(&from))).unwrap();
    let none = place.path("none");
    let named = place.fetch(&["--config", text(&config), "--from", text(&none)]);
    assert_eq!(named.status.code(), Some(1), "{named:?}");
    assert!(
        stderr(&named).contains("does not have the file"),
        "{named:?}"
    );
    let configured = place.fetch(&["--config", text(&config)]);
    assert!(configured.status.success(), "{configured:?}");
}

#[test]
fn what_cannot_be_fetched_is_bad_input() {
    let place = Place::new();
    let none = place.fetch(&[]);
    assert_eq!(none.status.code(), Some(2));
    assert!(stderr(&none).contains("--from"), "{none:?}");
    for source in ["ftp://h/", "http://user:word@h/", "cuzk://h"] {
        let bad = place.fetch(&["--from", source]);
        assert_eq!(bad.status.code(), Some(2), "{source}");
    }
    let other = place.fetch(&["--kind", "porep", "--from", "/none"]);
    assert_eq!(other.status.code(), Some(2), "{other:?}");
    assert!(stderr(&other).contains("not in the list of digests"));
    std::fs::write(place.path("list.json"), "{}{").unwrap();
    let list = place.fetch(&["--from", "/none"]);
    assert_eq!(list.status.code(), Some(2));
    assert!(stderr(&list).contains("not a list of digests"), "{list:?}");
}

/// A server tells lengths, and sends half of what it says. It tells when it does.
fn stalling_server(half: mpsc::Sender<()>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let mut stalled = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut first = String::new();
            BufReader::new(&stream).read_line(&mut first).unwrap();
            let length = if first.contains(".vk") {
                500
            } else {
                3_000_000
            };
            let head =
                format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
            let _ = stream.write_all(head.as_bytes());
            if first.starts_with("GET") {
                let _ = stream.write_all(&vec![7; length / 2]);
                stalled.push(stream);
                let _ = half.send(());
            }
        }
    });
    url
}

#[test]
fn what_came_before_a_signal_is_kept() {
    let place = Place::new();
    let (half, is_half) = mpsc::channel();
    let source = stalling_server(half);
    let arguments = ["fetch", "--kind", "winning-post", "--sector-size", "2KiB"];
    let arguments = [&arguments[..], &["--jobs", "2", "--from", &source]].concat();
    let mut command = place.command(&arguments);
    let child = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    is_half.recv_bounded().unwrap();
    is_half.recv_bounded().unwrap();
    let id = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &id])
            .status()
            .unwrap()
            .success()
    );
    let ended = child.wait_with_output_bounded().unwrap();
    assert_eq!(ended.status.code(), Some(130), "{ended:?}");
    assert!(stderr(&ended).contains("kept"), "{ended:?}");
    let rest = place.fetch(&["--from", text(&place.path("from")), "--json"]);
    assert!(rest.status.success(), "{rest:?}");
}
