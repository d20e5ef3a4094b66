//! The place in which the commands of one document run, one after the other.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use cuzk_bounded::bounded_by;
use serde_json::Value;

use crate::blocks::{Shown, difference};
use crate::described::{self, TOKEN};
use crate::parsed;
use crate::place::{FAR, Place};
use crate::process::Process;
use crate::rules::{Ready, Rule, rule_of};
use crate::{param_cache, repository};

/// The longest time that a command of a document may take. Some take minutes on an idle machine.
const LONGEST: Duration = Duration::from_secs(3600);

/// The command of a document that calls a daemon and does not start it.
const SERVE: &str = "cuzk serve --listen unix:///run/cuzk/cuzk.sock --listen tcp://127.0.0.1:9820 \
                     --http 127.0.0.1:9821";

/// The options of a daemon that would listen at the fixed ports.
const ANYWHERE: &str = "--listen tcp://127.0.0.1:9820 --http 127.0.0.1:9821";

/// Returns a folder with links to the parameters and the circuits that are there. A daemon makes
/// multiples beside the parameters, and other tests expect none there.
fn linked_cache(folder: &Path) -> PathBuf {
    let cache = folder.join("parameters");
    std::fs::create_dir_all(&cache).unwrap();
    for entry in std::fs::read_dir(param_cache()).unwrap() {
        let path = entry.unwrap().path();
        let link = cache.join(path.file_name().unwrap());
        let extension = path.extension().and_then(|last| last.to_str());
        if matches!(extension, Some("params" | "vk" | "circuit")) && !link.exists() {
            std::os::unix::fs::symlink(path, link).unwrap();
        }
    }
    cache
}

/// Returns a folder that a command runs in: the bundled data and configurations, and requests
/// under the names that the documents use.
fn scratch() -> tempfile::TempDir {
    let scratch = tempfile::tempdir().unwrap();
    for name in ["configs", "data"] {
        let target = repository().join(name).canonicalize().unwrap();
        std::os::unix::fs::symlink(target, scratch.path().join(name)).unwrap();
    }
    let request = repository().join("data/sector-2kib/winning-post.json");
    for name in ["a.json", "b.json", "porep.json"] {
        std::fs::copy(&request, scratch.path().join(name)).unwrap();
    }
    std::fs::write(scratch.path().join("my.toml"), "").unwrap();
    scratch
}

/// Adds the environment in which a command of a document runs.
pub(crate) fn prepare<'a>(command: &'a mut Command, folder: &Path) -> &'a mut Command {
    let program = Path::new(env!("CARGO_BIN_EXE_cuzk")).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    command
        .current_dir(folder)
        .env("PATH", format!("{}:{path}", program.display()))
        .env("FIL_PROOFS_PARAMETER_CACHE", param_cache())
        .env("TOKEN", TOKEN)
        .env_remove("IPFS_GATEWAY")
}

/// Returns the name of the variable that a command sets, if it only does that.
fn variable(command: &str) -> Option<&str> {
    let command = command.strip_prefix("export ").unwrap_or(command);
    let (name, _) = command.split_once('=')?;
    let is_name = |letter: char| letter == '_' || letter.is_ascii_alphanumeric();
    name.chars().all(is_name).then_some(name)
}

/// Runs a command in the folder. Variables that earlier commands of the document set are set.
pub(crate) fn run(command: &str, folder: &Path) -> Output {
    let keep = variable(command).map(|name| format!("declare -p {name} >> .variables"));
    let keep = keep.unwrap_or_default();
    let script = format!("[ ! -e .variables ] || . ./.variables\n{command}\n{keep}");
    let mut shell = Command::new("bash");
    shell.args(["-euo", "pipefail", "-c", &script]);
    let shell = prepare(&mut shell, folder);
    bounded_by(LONGEST, || shell.output()).unwrap()
}

/// Returns what a command printed if it ended with one of the exit codes.
fn printed(output: &Output, exit_codes: &[i32]) -> Result<String, String> {
    let [stdout, stderr] =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    let code = output.status.code();
    match code.is_some_and(|code| exit_codes.contains(&code)) {
        true => Ok(stdout),
        false => Err(format!("ended with {code:?}:\n{stdout}{stderr}")),
    }
}

/// A block's later commands use the files of its earlier ones, and so do the blocks of a document.
pub(crate) struct Scene {
    document: String,
    folder: tempfile::TempDir,
    daemon: Option<Process>,
    /// Returns true if the daemon takes calls over TLS only.
    is_protected: bool,
    /// The workers of the cluster, and then all else that goes on.
    workers: Vec<Process>,
    others: Vec<Process>,
    place: Place,
    /// The block of the last command, and all that its commands printed.
    printed: (usize, String),
    /// Returns true if commands are run that take minutes.
    pub(crate) has_time: bool,
}

impl Scene {
    pub(crate) fn new(document: &str) -> Self {
        let folder = scratch();
        let place = Place::new(folder.path());
        Self {
            document: document.to_owned(),
            folder,
            daemon: None,
            is_protected: false,
            workers: Vec::new(),
            others: Vec::new(),
            place,
            printed: (0, String::new()),
            has_time: false,
        }
    }

    /// Starts a process. `command` has the places of the test already.
    fn start(&self, command: &str, name: &str) -> Process {
        let folder = self.folder.path();
        Process::start(command, folder.join(format!("{name}.log")), |shell| {
            prepare(shell, folder)
                .env("FIL_PROOFS_PARAMETER_CACHE", linked_cache(folder))
                .env("STATE_DIRECTORY", folder)
        })
    }

    /// Starts the daemon of this command, and ends the one before.
    pub(crate) fn serve(&mut self, command: &str) -> Result<(), String> {
        let ended = self.end_daemon();
        let command = command.trim_end_matches('&').trim_end();
        let is_told = command.contains("--config") || command.contains("--listen");
        let more = if is_told { "" } else { ANYWHERE };
        described::write(&self.document, command, self.folder.path(), &self.place);
        let command = self.place.placed(&format!("{command} {more}"));
        let listeners = self.listeners(&command);
        let mut daemon = self.start(&command, "daemon");
        daemon.wait("listeners", |daemon| {
            let log = daemon.log();
            log.matches("serves clients on").count() == listeners && log.contains("serves HTTP on")
        })?;
        self.place.grpc = daemon.word_after("serves clients on tcp://");
        self.place.http = daemon.word_after("serves HTTP on tcp://");
        self.daemon = Some(daemon);
        self.is_protected = false;
        ended
    }

    /// Returns the address of the daemon's HTTP.
    pub(crate) fn http(&self) -> String {
        self.place.http.clone().unwrap()
    }

    /// Returns the number of listeners for clients that a daemon of this command has.
    fn listeners(&self, command: &str) -> usize {
        let Some((_, config)) = command.split_once("--config ") else {
            return command.matches("--listen").count();
        };
        let config = config.split_whitespace().next().unwrap();
        let text = std::fs::read_to_string(self.folder.path().join(config)).unwrap();
        let config: toml::Table = text.parse().unwrap();
        config["server"]["listen"].as_array().unwrap().len()
    }

    /// Has the daemon run that a command calls: one on another machine takes calls over TLS.
    fn serve_for(&mut self, command: &str) -> Result<(), String> {
        let is_far = command.contains(FAR);
        if self.daemon.is_some() && self.is_protected == is_far {
            return Ok(());
        }
        if !is_far {
            return self.serve(SERVE);
        }
        described::write_certificates(self.folder.path());
        let ended = self.end_daemon();
        self.serve("cuzk --config far.toml serve")?;
        self.is_protected = true;
        ended
    }

    /// Starts what goes on beside the commands that follow.
    fn begin(&mut self, command: &str, ready: &Ready) -> Result<(), String> {
        let mut more = String::new();
        match ready {
            Ready::Server(_) => {
                self.stop()?;
                std::fs::remove_dir_all(self.folder.path().join("nats-store")).ok();
                // It takes a free port, and says which.
                more = "--addr 127.0.0.1 --port -1".to_owned();
            }
            // Two workers of a document are two machines.
            Ready::Worker => more = format!("--name w{}", self.workers.len() + 1),
            Ready::Socket(_) => self.serve_for(command)?,
        }
        described::write(&self.document, command, self.folder.path(), &self.place);
        let command = command.trim_end_matches('&').trim_end();
        let command = self.place.placed(&format!("{command} {more}"));
        let number = self.workers.len() + self.others.len();
        let mut process = self.start(&command, &format!("process-{number}"));
        match ready {
            Ready::Server(says) => {
                process.wait(says, |process| process.log().contains(says))?;
                let port = process.word_after("for client connections on 127.0.0.1:");
                let port = port.and_then(|port| port.parse().ok());
                self.place.nats = Some(port.ok_or("the server says no port")?);
            }
            Ready::Worker => {
                let says = "connected to the server of the cluster";
                process.wait(says, |process| process.log().contains(says))?;
                self.workers.push(process);
                return Ok(());
            }
            Ready::Socket(socket) => {
                let socket = self.place.placed(socket);
                let look = format!("cuzk status --address unix://{socket}");
                // It is there for a moment before it listens.
                process.wait("socket that answers", |_| {
                    Path::new(&socket).exists()
                        && printed(&run(&look, self.folder.path()), &[0]).is_ok()
                })?;
            }
        }
        self.others.push(process);
        Ok(())
    }

    /// Waits until the daemon knows all workers. Each says every five seconds that it lives.
    fn await_workers(&mut self) -> Result<(), String> {
        if self.workers.is_empty() {
            return Ok(());
        }
        let address = self.place.grpc.clone().ok_or("no daemon for the worker")?;
        let look = format!("cuzk --json status --address tcp://{address}");
        let until = Instant::now() + Duration::from_secs(120);
        loop {
            let text = printed(&run(&look, self.folder.path()), &[0])?;
            let status: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
            let cluster = &status["cluster"];
            let nodes = cluster["nodes"].as_array().map_or(0, Vec::len);
            if cluster["connected"] == true && nodes == self.workers.len() {
                return Ok(());
            }
            if Instant::now() > until {
                let logs = self.workers.iter().map(Process::log);
                return Err(format!("{text}{}", logs.collect::<String>()));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn end_daemon(&mut self) -> Result<(), String> {
        (self.place.grpc, self.place.http) = (None, None);
        match self.daemon.take().map(Process::stop) {
            None | Some(Some(0)) => Ok(()),
            Some(code) => Err(format!("a daemon ended with {code:?}")),
        }
    }

    /// Ends all that goes on, once the last daemon knows all workers.
    pub(crate) fn end(&mut self) -> Result<(), String> {
        let known = self.await_workers();
        known.and(self.stop())
    }

    /// Ends all that goes on. A server ends after those who are connected to it.
    fn stop(&mut self) -> Result<(), String> {
        let mut ended = Ok(());
        for worker in self.workers.drain(..) {
            match worker.stop() {
                Some(0) => {}
                code => ended = Err(format!("a worker ended with {code:?}")),
            }
        }
        let daemon = self.end_daemon();
        for other in self.others.drain(..) {
            other.stop();
        }
        ended.and(daemon)
    }

    /// Does what a document shows.
    pub(crate) fn act(&mut self, shown: &Shown) -> Result<(), String> {
        let rule = rule_of(&shown.command);
        let exit_codes = match rule {
            Some(Rule::Long(_)) if self.has_time => &[0][..],
            Some(Rule::NotRun(_) | Rule::Long(_)) => {
                return parsed::problem(&shown.command).map_or(Ok(()), Err);
            }
            Some(Rule::Serves(_)) => return self.serve(&shown.command),
            Some(Rule::Starts(_, ready)) => return self.begin(&shown.command, ready),
            Some(Rule::Calls(_)) => {
                self.serve_for(&shown.command)?;
                &[0][..]
            }
            Some(Rule::Ends(codes)) => {
                // 2 is also the exit code of a mistake in the arguments.
                if codes.contains(&2) {
                    parsed::problem(&shown.command).map_or(Ok(()), Err)?;
                }
                *codes
            }
            Some(Rule::Needs(_) | Rule::With(..)) | None => &[0][..],
        };
        let folder = self.folder.path();
        described::write(&self.document, &shown.command, folder, &self.place);
        let command = match rule {
            Some(Rule::With(_, option)) => shown.command.replacen(' ', &format!(" {option} "), 1),
            _ => self.place.placed(&shown.command),
        };
        let output = run(&command, folder);
        let stdout = printed(&output, exit_codes)?;
        // A call can succeed and tell that the proof did not.
        if stdout.contains("\"status\": \"FAILED\"") {
            return Err(format!("prints\n{stdout}"));
        }
        if self.printed.0 != shown.block {
            self.printed = (shown.block, String::new());
        }
        self.printed.1.push_str(&stdout);
        difference(&shown.prints, &self.printed.1).map_or(Ok(()), Err)
    }
}
