//! A process that a document starts and that goes on: a daemon, a worker, a proxy or a server.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use cuzk_bounded::BoundedChild;

/// Long enough for a start and an end on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A process that runs, and what it writes to standard error.
pub(crate) struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a command that is no list of commands. `prepare` adds the environment of the tests.
    pub(crate) fn start(
        command: &str,
        log: PathBuf,
        prepare: impl Fn(&mut Command) -> &mut Command,
    ) -> Self {
        let mut shell = Command::new("bash");
        shell.args(["-c", &format!("exec {command}")]);
        prepare(&mut shell).stderr(File::create(&log).unwrap());
        let child = shell.spawn().unwrap();
        Self { child, log }
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// Returns the word after a text in the log.
    pub(crate) fn word_after(&self, what: &str) -> Option<String> {
        let log = self.log();
        let (_, after) = log.split_once(what)?;
        Some(after.split_whitespace().next()?.to_owned())
    }

    /// Waits until `is_so` returns true. The process must not end before.
    pub(crate) fn wait(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) -> Result<(), String> {
        let started = Instant::now();
        while !is_so(self) {
            let ended = self.child.try_wait().unwrap();
            let is_late = started.elapsed() > PATIENCE;
            if is_late || ended.is_some() {
                return Err(format!("no {what}: {ended:?} {}", self.log()));
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Has the process stop as the documents say, and returns its exit code.
    pub(crate) fn stop(mut self) -> Option<i32> {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &id]).status();
        assert!(sent.unwrap().success());
        let started = Instant::now();
        loop {
            if let Some(ended) = self.child.try_wait().unwrap() {
                return ended.code();
            }
            let is_late = started.elapsed() > PATIENCE;
            assert!(!is_late, "it does not stop: {}", self.log());
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It has ended, unless a test failed.
        self.child.kill().ok();
        self.child.wait_bounded().ok();
    }
}
