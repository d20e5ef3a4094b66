//! A daemon with its cluster, and workers in processes of their own.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::fixture::{Daemon, PATIENCE, param_cache};

/// Starts a daemon of a cluster. `more` are further options.
pub(crate) fn daemon(url: &str, more: &[&str]) -> Daemon {
    let arguments = [&["--cluster", url], more].concat();
    Daemon::start_with(Some(""), &arguments, None)
}

/// Returns the part of a daemon's status with the cluster.
pub(crate) fn cluster(daemon: &Daemon) -> Value {
    status(daemon)["cluster"].clone()
}

pub(crate) fn status(daemon: &Daemon) -> Value {
    let (_, text) = daemon.page("/status");
    serde_json::from_str(&text).unwrap()
}

/// Returns the number of partitions that a node proved, by the daemon's count.
pub(crate) fn proved_by(daemon: &Daemon, name: &str) -> u64 {
    let nodes = cluster(daemon)["nodes"].as_array().cloned();
    let nodes = nodes.unwrap_or_default();
    let node = nodes.iter().find(|node| node["name"] == name);
    node.map_or(0, |node| node["proved"].as_u64().unwrap())
}

/// Returns the number of partitions that the daemon proved on its own devices.
pub(crate) fn proved_here(daemon: &Daemon) -> u64 {
    let status = status(daemon);
    let devices = status["engine"]["devices"].as_array().unwrap();
    let proved = devices.iter().map(|device| device["proved"].as_u64());
    proved.map(Option::unwrap).sum()
}

/// Waits until `is_so` returns true.
pub(crate) fn until(what: &str, is_so: impl Fn() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < until, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A `cuzk worker`.
pub(crate) struct Worker {
    folder: TempDir,
    process: Child,
}

impl Worker {
    pub(crate) fn start(url: &str, name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("worker.toml");
        // Other tests share its parameters, and expect no multiples.
        std::fs::write(&config, "[srs]\nmultiples = []\n").unwrap();
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let process = Command::new(env!("CARGO_BIN_EXE_cuzk"))
            .args(["worker", "--cluster", url, "--name", name, "--config"])
            .arg(config)
            .env("FIL_PROOFS_PARAMETER_CACHE", param_cache())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        Self {
            process: process.unwrap(),
            folder,
        }
    }

    fn log_path(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    /// Waits until the log has a text.
    pub(crate) fn await_log(&self, text: &str) {
        until(&format!("{text:?} in the log of a worker"), || {
            self.log().contains(text)
        });
    }

    /// Ends the process at once, as a power cut would.
    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}
