//! A configuration with one value of a key, and a daemon that has it.

use std::io::{Read, Write};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use cuzk_bounded::{BoundedChild, BoundedCommand};
use cuzk_core::Config;
use cuzk_server::cluster::settings::ClusterSettings;
use serde_json::Value;
use tempfile::TempDir;

use crate::fixture::PATIENCE;

/// The rest of a file, beside the key of a row.
const BASE: &str = r#"
    [srs]
    param_cache = "FOLDER/parameters"
    multiples = []
    [gpus]
    devices = "cpu"
    [server]
    listen = ["unix://FOLDER/cuzk.sock"]
    http = "127.0.0.1:0"
    state_dir = "FOLDER/state"
"#;

pub(super) struct Case {
    folder: TempDir,
}

impl Case {
    /// Writes a file with the key, with `more` and with what every file here has, of which
    /// the first is in effect. Makes the folder of the parameters, with one file, and a
    /// certificate with its key.
    pub(super) fn new(key: &str, value: &str, more: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path().to_str().unwrap();
        let (section, key) = key.split_once('.').unwrap();
        let own = format!("[{section}]\n{key} = {value}\n");
        let mut file = toml::Table::new();
        for text in [BASE, more, &own] {
            let text: toml::Table = text.replace("FOLDER", here).parse().unwrap();
            for (section, keys) in text {
                let into = file.entry(section);
                let into = into.or_insert_with(|| toml::Table::new().into());
                let into = into.as_table_mut().unwrap();
                into.extend(keys.as_table().unwrap().clone());
            }
        }
        let text = toml::to_string(&file).unwrap();
        std::fs::write(folder.path().join("cuzk.toml"), text).unwrap();
        std::fs::create_dir(folder.path().join("parameters")).unwrap();
        std::fs::write(folder.path().join("parameters/a.vk"), "a key").unwrap();
        let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let pem = [own.cert.pem(), own.signing_key.serialize_pem()];
        for (name, pem) in ["certificate.pem", "key.pem"].into_iter().zip(pem) {
            std::fs::write(folder.path().join(name), pem).unwrap();
        }
        Self { folder }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cuzk"));
        command.args(arguments).arg("--config");
        command.arg(self.path("cuzk.toml")).stdin(Stdio::null());
        command.env_remove("IPFS_GATEWAY");
        command
    }

    /// Returns what a command writes that ends by itself.
    pub(super) fn says(&self, arguments: &[&str]) -> String {
        let log = std::fs::File::create(self.path("said")).unwrap();
        let mut command = self.command(arguments);
        command.stdout(log.try_clone().unwrap()).stderr(log);
        let mut process = command.spawn().unwrap();
        let until = Instant::now() + PATIENCE;
        while process.try_wait().unwrap().is_none() {
            if Instant::now() > until {
                process.kill().unwrap();
                panic!("{arguments:?} does not end: {}", self.said());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.said()
    }

    fn said(&self) -> String {
        std::fs::read_to_string(self.path("said")).unwrap()
    }

    /// Returns what the transport between machines is told.
    pub(super) fn cluster(&self) -> ClusterSettings {
        let config = Config::load(&self.path("cuzk.toml")).unwrap();
        ClusterSettings::of(&config.cluster).unwrap().unwrap()
    }
}

/// A daemon that serves, or that has ended because it could not.
pub(super) struct Served {
    pub(super) case: Case,
    process: Child,
    /// The place of the messages for systemd.
    notified: UnixDatagram,
}

impl Served {
    pub(super) fn start(case: Case) -> Self {
        let notified = UnixDatagram::bind(case.path("notify")).unwrap();
        let log = std::fs::File::create(case.path("said")).unwrap();
        let mut command = case.command(&["serve"]);
        command.env("NOTIFY_SOCKET", case.path("notify"));
        command.stdout(Stdio::null()).stderr(log);
        let mut process = command.spawn().unwrap();
        let until = Instant::now() + PATIENCE;
        while !case.is_served() && process.try_wait().unwrap().is_none() {
            if Instant::now() > until {
                process.kill().unwrap();
                panic!("it does not serve: {}", case.said());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Self {
            case,
            process,
            notified,
        }
    }

    pub(super) fn log(&self) -> String {
        self.case.said()
    }

    /// Returns the number of threads whose names begin so. The system keeps 15 letters of a
    /// name.
    pub(super) fn threads(&self, name: &str) -> String {
        let tasks = format!("/proc/{}/task", self.process.id());
        let tasks = std::fs::read_dir(tasks).unwrap();
        let names = tasks.filter_map(|task| {
            // A thread may have ended.
            std::fs::read_to_string(task.unwrap().path().join("comm")).ok()
        });
        names
            .filter(|found| found.starts_with(name))
            .count()
            .to_string()
    }

    /// Gets a page: its status line and its content.
    pub(super) fn page(&self, path: &str) -> (String, String) {
        let log = self.log();
        let (_, rest) = log.rsplit_once("serves HTTP on tcp://").unwrap();
        let address = rest.split_whitespace().next().unwrap();
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        let request = format!("GET {path} HTTP/1.0\r\nhost: a\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        let (head, content) = reply.split_once("\r\n\r\n").unwrap();
        (head.lines().next().unwrap().to_owned(), content.to_owned())
    }

    /// Returns the part of the status with the cluster.
    pub(super) fn cluster(&self) -> Value {
        let (_, text) = self.page("/status");
        let status: Value = serde_json::from_str(&text).unwrap();
        status["cluster"].clone()
    }

    /// Asks the daemon to stop, and returns the time within which it tells systemd that it
    /// will have stopped, in microseconds.
    pub(super) fn stops_within_us(&self) -> String {
        let id = self.process.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &id]).status().unwrap();
        assert!(sent.success());
        self.notified.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut message = [0; 4096];
        loop {
            let length = self.notified.recv(&mut message).unwrap();
            let text = String::from_utf8_lossy(&message[..length]).into_owned();
            let mut lines = text.lines();
            let within = lines.find_map(|line| line.strip_prefix("EXTEND_TIMEOUT_USEC="));
            if let Some(within) = within {
                return within.to_owned();
            }
        }
    }
}

impl Case {
    /// Returns true once a daemon answers.
    fn is_served(&self) -> bool {
        let socket = self.path("cuzk.sock");
        let address = format!("unix://{}", socket.display());
        let asks = || {
            self.command(&["status", "--address", &address])
                .output_bounded()
        };
        socket.exists() && asks().unwrap().status.success()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait_bounded().ok();
    }
}

/// Waits until a daemon shows something. Some of what it shows comes a moment after it serves.
pub(super) fn until_shown(
    what: &str,
    served: &Served,
    show: fn(&Served) -> String,
    expected: &str,
) {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let shown = show(served);
        if shown == expected {
            return;
        }
        let log = served.log();
        assert!(
            Instant::now() < until,
            "{what}: {shown:?} and not {expected:?}: {log}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Returns the one of two names of which there is a file in a folder.
pub(super) fn which(folder: &Path, names: [&str; 2]) -> String {
    let found = names.into_iter().filter(|name| folder.join(name).exists());
    found.collect::<Vec<_>>().join(" and ")
}
