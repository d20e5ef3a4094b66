//! The daemon that the commands of a document start or call.
//!
//! The documents name folders of the system and fixed ports. A test can have neither, so a command
//! is given the test's folder and ports instead.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

/// Long enough for a start and an end on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// The address of gRPC and that of HTTP, as the documents write them.
const GRPC: &str = "127.0.0.1:9820";
const HTTP: &str = "127.0.0.1:9821";

/// The command of a document that calls a daemon and does not start it.
const SERVE: &str = "cuzk serve --listen unix:///run/cuzk/cuzk.sock --http 127.0.0.1:9821";

/// A daemon that runs.
pub(crate) struct Daemon {
    process: Child,
    log: PathBuf,
}

/// Returns a command with the folder of the test, and with the ports of its daemon. A daemon that
/// is to be started gets any free ports.
pub(crate) fn placed(command: &str, folder: &Path, daemon: Option<&Daemon>) -> String {
    let port = |what: &str| {
        let known = daemon.and_then(|daemon| daemon.address(what));
        known.unwrap_or_else(|| "127.0.0.1:0".to_owned())
    };
    let folder = folder.display().to_string();
    command
        .replace("/run/cuzk", &folder)
        .replace("/etc/cuzk", &folder)
        .replace("/var/lib/cuzk", &folder)
        .replace(GRPC, &port("serves clients on tcp://"))
        .replace(HTTP, &port("serves HTTP on tcp://"))
}

impl Daemon {
    /// Starts the daemon that this command starts; without one, that which other documents show.
    /// `prepare` adds the environment of the tests.
    pub(crate) fn start(
        command: Option<&str>,
        folder: &Path,
        prepare: impl Fn(&mut Command) -> &mut Command,
    ) -> Self {
        let listen =
            "[server]\nlisten = [\"unix:///run/cuzk/cuzk.sock\"]\nhttp = \"127.0.0.1:9821\"\n";
        std::fs::write(folder.join("cuzk.toml"), placed(listen, folder, None)).unwrap();
        let command = placed(command.unwrap_or(SERVE), folder, None);
        let log = folder.join("log");
        let mut shell = Command::new("bash");
        shell.args(["-c", &format!("exec {command}")]);
        prepare(&mut shell).stderr(File::create(&log).unwrap());
        let process = shell.env("STATE_DIRECTORY", folder).spawn().unwrap();
        let mut daemon = Self { process, log };
        daemon.wait("listens", |daemon| {
            let log = daemon.log();
            log.contains("serves clients on") && log.contains("serves HTTP on")
        });
        daemon
    }

    fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// Returns the address after a text in the log.
    fn address(&self, what: &str) -> Option<String> {
        let log = self.log();
        let (_, after) = log.split_once(what)?;
        Some(after.split_whitespace().next()?.to_owned())
    }

    fn wait(&mut self, what: &str, is_so: impl Fn(&mut Self) -> bool) {
        let started = Instant::now();
        while !is_so(self) {
            let is_late = started.elapsed() > PATIENCE;
            assert!(!is_late, "the daemon never {what}: {}", self.log());
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Has the daemon stop as the documents say, and returns its exit code.
    pub(crate) fn stop(mut self) -> Option<i32> {
        let id = self.process.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &id]).status();
        assert!(sent.unwrap().success());
        self.wait("ends", |daemon| {
            daemon.process.try_wait().unwrap().is_some()
        });
        self.process.wait().unwrap().code()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It has ended, unless a test failed.
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

#[test]
fn a_command_gets_the_folder_and_the_ports_of_the_test() {
    let command = "cuzk serve --listen unix:///run/cuzk/cuzk.sock --http 127.0.0.1:9821";
    let placed = placed(command, Path::new("/tmp/x"), None);
    let expected = "cuzk serve --listen unix:///tmp/x/cuzk.sock --http 127.0.0.1:0";
    assert_eq!(placed, expected);
}
