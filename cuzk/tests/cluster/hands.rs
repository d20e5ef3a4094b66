//! A daemon with its cluster, and workers in processes of their own.

use std::process::{Child, Command};
use std::time::{Duration, Instant};

use cuzk_bounded::BoundedChild;
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

/// A `cuzk worker`, which may have ended.
pub(crate) struct Worker {
    folder: TempDir,
    /// More of its configuration.
    config: String,
    arguments: Vec<String>,
    process: Option<Child>,
}

impl Worker {
    pub(crate) fn start(url: &str, name: &str) -> Self {
        Self::start_with(&["--cluster", url, "--name", name])
    }

    /// Starts a worker with these options.
    pub(crate) fn start_with(arguments: &[&str]) -> Self {
        Self::start_configured("", arguments)
    }

    /// Starts a worker with these options, and with more of a configuration.
    pub(crate) fn start_configured(config: &str, arguments: &[&str]) -> Self {
        let arguments = arguments.iter().map(|&argument| argument.into());
        let mut worker = Self {
            folder: tempfile::tempdir().unwrap(),
            config: config.to_owned(),
            arguments: arguments.collect(),
            process: None,
        };
        worker.start_again();
        worker
    }

    /// Starts the worker after it ended.
    pub(crate) fn start_again(&mut self) {
        assert!(self.process.is_none(), "it runs");
        let config = self.folder.path().join("worker.toml");
        // Other tests share its parameters, and expect no multiples.
        let text = format!("{}\n[srs]\nmultiples = []\n", self.config);
        std::fs::write(&config, text).unwrap();
        let file = |name: &str| {
            let mut options = std::fs::OpenOptions::new();
            let opened = options.create(true).append(true);
            opened.open(self.folder.path().join(name)).unwrap()
        };
        let process = Command::new(env!("CARGO_BIN_EXE_cuzk"))
            .args(["worker", "--json", "--config"])
            .arg(config)
            .args(&self.arguments)
            .env("FIL_PROOFS_PARAMETER_CACHE", param_cache())
            .stdout(file("events"))
            .stderr(file("log"))
            .spawn();
        self.process = Some(process.unwrap());
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).unwrap_or_default()
    }

    pub(crate) fn log(&self) -> String {
        self.text("log")
    }

    /// Returns the number of partitions that it has begun in all its lives.
    pub(crate) fn begun(&self) -> usize {
        self.text("events").matches("\"begun\"").count()
    }

    /// Waits until the log has a text.
    pub(crate) fn await_log(&self, text: &str) {
        until(&format!("{text:?} in the log of a worker"), || {
            self.log().contains(text)
        });
    }

    /// Returns the number of the process, if it runs.
    pub(crate) fn process(&self) -> Option<u32> {
        self.process.as_ref().map(Child::id)
    }

    /// Ends the process at once, as a power cut would.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait_bounded().unwrap();
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Sends a signal, such as "STOP", to a process.
pub(crate) fn signal(process: u32, name: &str) {
    let id = process.to_string();
    let sent = Command::new("kill").args(["-s", name, &id]).status();
    assert!(sent.unwrap().success());
}
