//! A daemon in a process of its own, and a client of it.

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use cuzk_bounded::{BoundedChild, BoundedCommand, LIMIT};
use cuzk_server::wire::v1::proving_engine_client::ProvingEngineClient;
use cuzk_server::wire::v1::{self, await_proof_response::Status as JobStatus};
use serde_json::Value;
use tempfile::TempDir;
use tonic::transport::{Channel, Endpoint};

/// Long enough for anything that ends at all, on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(240);

pub(crate) type Client = ProvingEngineClient<Channel>;

pub(crate) fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../data/sector-2kib")
        .join(name)
}

/// Shared with the other tests that prove, and kept between runs.
pub(crate) fn param_cache() -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("parameters");
    std::fs::create_dir_all(&directory).unwrap();
    directory
}

/// Makes the parameters of all kinds once.
fn make_parameters() {
    static MADE: OnceLock<()> = OnceLock::new();
    MADE.get_or_init(|| {
        for kind in ["porep", "winning-post", "window-post", "snap-deals"] {
            let made = Command::new(env!("CARGO_BIN_EXE_cuzk"))
                .args([
                    "params",
                    "generate",
                    "--sector-size",
                    "2KiB",
                    "--kind",
                    kind,
                ])
                .env("FIL_PROOFS_PARAMETER_CACHE", param_cache())
                .output_bounded()
                .unwrap();
            assert!(made.status.success(), "{made:?}");
        }
    });
}

/// A daemon, and what is left of it on disk.
pub(crate) struct Daemon {
    pub(crate) folder: TempDir,
    process: Option<Child>,
    /// The text of its configuration; none for a daemon without a file.
    config: Option<String>,
    /// More options of `cuzk serve`.
    arguments: Vec<String>,
    /// The most files that it may have open, if that is limited.
    files_max: Option<u32>,
    /// The socket that it gets as from systemd. Without it the daemon makes its own.
    handed: Option<UnixListener>,
}

impl Daemon {
    /// Starts a daemon with a journal, on a unix socket. `more` is added to its
    /// configuration.
    pub(crate) fn start(more: &str) -> Self {
        Self::start_with(Some(more), &[], None)
    }

    /// Starts a daemon with more options, without a file if `config` is none, and with at
    /// most `files_max` open files.
    pub(crate) fn start_with(
        config: Option<&str>,
        arguments: &[&str],
        files_max: Option<u32>,
    ) -> Self {
        let mut daemon = Self::not_started(config);
        let arguments = arguments.iter().map(|&argument| argument.into());
        daemon.arguments = arguments.collect();
        daemon.files_max = files_max;
        daemon.start_again();
        daemon
    }

    /// Starts a daemon on a socket that stays open when it ends.
    pub(crate) fn start_handed(config: &str) -> Self {
        let mut daemon = Self::not_started(Some(config));
        daemon.handed = Some(UnixListener::bind(daemon.socket()).unwrap());
        daemon.start_again();
        daemon
    }

    fn not_started(config: Option<&str>) -> Self {
        make_parameters();
        Self {
            folder: tempfile::tempdir().unwrap(),
            process: None,
            config: config.map(str::to_owned),
            arguments: Vec::new(),
            files_max: None,
            handed: None,
        }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("cuzk.sock")
    }

    pub(crate) fn address(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    /// Starts the daemon after it ended, with the same folder.
    pub(crate) fn start_again(&mut self) {
        assert!(self.process.is_none(), "it runs");
        let log = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.folder.path().join("log"))
            .unwrap();
        let mut command = self.program();
        command
            .args(["serve", "--listen", &self.address()])
            .args(["--http", "127.0.0.1:0"])
            .args(&self.arguments);
        if let Some(config) = &self.config {
            self.write_config(config);
            command.arg("--config").arg(self.config_path());
        }
        let process = command
            .env("FIL_PROOFS_PARAMETER_CACHE", param_cache())
            .env("STATE_DIRECTORY", self.folder.path())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        self.process = Some(process.unwrap());
    }

    /// Returns the program, with its limit of files or the socket that it is given.
    fn program(&self) -> Command {
        let program = env!("CARGO_BIN_EXE_cuzk");
        let shell = |script: &str, zeroth: &str| {
            let mut shell = Command::new("sh");
            shell.args(["-c", script, zeroth, program]);
            shell
        };
        if let Some(files_max) = self.files_max {
            return shell("ulimit -n \"$0\"; exec \"$@\"", &files_max.to_string());
        }
        let Some(handed) = &self.handed else {
            return Command::new(program);
        };
        let script = "export LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=grpc
            exec \"$@\" 3<&0 < /dev/null";
        let mut shell = shell(script, "sh");
        shell.stdin(OwnedFd::from(handed.try_clone().unwrap()));
        shell
    }

    fn config_path(&self) -> PathBuf {
        self.folder.path().join("cuzk.toml")
    }

    /// Replaces the file of the configuration. The daemon makes no multiples, since other
    /// tests share its parameters and expect none.
    pub(crate) fn write_config(&self, text: &str) {
        let text = format!("{text}\n[srs]\nmultiples = []\n");
        std::fs::write(self.config_path(), text).unwrap();
    }

    /// Runs another command of the program, which calls this daemon.
    pub(crate) fn command(&self, arguments: &[&str]) -> std::process::Output {
        Command::new(env!("CARGO_BIN_EXE_cuzk"))
            .args(arguments)
            .args(["--address", &self.address()])
            .output_bounded()
            .unwrap()
    }

    /// Gets a page, and returns its status line and its content.
    pub(crate) fn page(&self, path: &str) -> (String, String) {
        let log = self.log();
        let (_, rest) = log.rsplit_once("serves HTTP on tcp://").unwrap();
        let address = rest.split_whitespace().next().unwrap();
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        let request = format!("GET {path} HTTP/1.0\r\nhost: a\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        let (head, content) = reply.split_once("\r\n\r\n").unwrap();
        let line = head.lines().next().unwrap().to_owned();
        (line, content.to_owned())
    }

    /// Waits until the log has a text.
    pub(crate) fn await_log(&self, text: &str) {
        let until = Instant::now() + PATIENCE;
        while !self.log().contains(text) {
            assert!(Instant::now() < until, "{text:?} is not in: {}", self.log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Ends the process at once, as a power cut would.
    pub(crate) fn kill(&mut self) {
        let mut process = self.process.take().unwrap();
        process.kill().unwrap();
        process.wait_bounded().unwrap();
    }

    /// Sends a signal, such as "TERM".
    pub(crate) fn signal(&self, name: &str) {
        let id = self.process.as_ref().unwrap().id().to_string();
        let sent = Command::new("kill")
            .args([&format!("-{name}"), &id])
            .status();
        assert!(sent.unwrap().success());
    }

    /// Returns the number of the process, if it runs.
    #[allow(dead_code, reason = "the tests of the cluster use it")]
    pub(crate) fn process_id(&self) -> Option<u32> {
        self.process.as_ref().map(Child::id)
    }

    /// Waits for the end of the process, and returns its exit code.
    pub(crate) fn wait_bounded(&mut self) -> Option<i32> {
        let mut process = self.process.take().unwrap();
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = process.try_wait().unwrap() {
                return status.code();
            }
            assert!(Instant::now() < until, "it does not end: {}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Returns the path of a file about the process.
    fn process_path(&self, name: &str) -> PathBuf {
        let id = self.process.as_ref().unwrap().id();
        Path::new("/proc").join(id.to_string()).join(name)
    }

    /// Returns the number of files and sockets that it has open.
    pub(crate) fn descriptors(&self) -> usize {
        std::fs::read_dir(self.process_path("fd")).unwrap().count()
    }

    /// Returns its resident memory.
    pub(crate) fn resident_kib(&self) -> u64 {
        self.memory_kib("VmRSS:")
    }

    /// Returns the most resident memory that it has had.
    pub(crate) fn peak_kib(&self) -> u64 {
        self.memory_kib("VmHWM:")
    }

    fn memory_kib(&self, key: &str) -> u64 {
        let text = std::fs::read_to_string(self.process_path("status")).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(key));
        let kib = line.unwrap().trim().strip_suffix(" kB").unwrap();
        kib.parse().unwrap()
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Returns a client once the daemon answers.
    pub(crate) async fn client(&mut self) -> Client {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Ok(mut client) = connect(&self.address()).await
                && client.get_status(v1::GetStatusRequest {}).await.is_ok()
            {
                return client;
            }
            let ended = self
                .process
                .as_mut()
                .and_then(|process| process.try_wait().unwrap());
            assert!(ended.is_none(), "it ended: {ended:?}: {}", self.log());
            assert!(Instant::now() < until, "it does not answer: {}", self.log());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            process.kill().ok();
            process.wait_bounded().ok();
        }
    }
}

/// Returns a client with a connection of its own.
pub(crate) async fn connect(address: &str) -> Result<Client, tonic::transport::Error> {
    let endpoint = Endpoint::from_shared(address.to_owned()).unwrap();
    // A call that gets no answer fails its test.
    let endpoint = endpoint.timeout(LIMIT);
    let client = ProvingEngineClient::new(endpoint.connect().await?);
    Ok(client
        .max_decoding_message_size(256 << 20)
        .max_encoding_message_size(256 << 20))
}

/// Reads a bundled request as a client sends it.
pub(crate) fn request(kind: &str) -> v1::SubmitProofRequest {
    let text = std::fs::read(data(&format!("{kind}.json"))).unwrap();
    let json: Value = serde_json::from_slice(&text).unwrap();
    let number = |key: &str| json[key].as_u64().unwrap_or(0);
    let bytes = |value: &Value| base64(value.as_str().unwrap_or_default()).into();
    let kinds = v1::ProofKind::from_str_name(json["proof_kind"].as_str().unwrap());
    v1::SubmitProofRequest {
        request_id: json["request_id"].as_str().unwrap().to_owned(),
        proof_kind: kinds.unwrap().into(),
        sector_size: number("sector_size"),
        registered_proof: number("registered_proof"),
        vanilla_proof: bytes(&json["vanilla_proof"]),
        vanilla_proofs: json["vanilla_proofs"]
            .as_array()
            .map(|proofs| proofs.iter().map(bytes).collect())
            .unwrap_or_default(),
        sector_number: number("sector_number"),
        miner_id: number("miner_id"),
        randomness: bytes(&json["randomness"]),
        comm_r_old: bytes(&json["comm_r_old"]),
        comm_r_new: bytes(&json["comm_r_new"]),
        comm_d_new: bytes(&json["comm_d_new"]),
        ..v1::SubmitProofRequest::default()
    }
}

fn base64(text: &str) -> Vec<u8> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD
        .decode(text)
        .unwrap()
}

/// Proves a request, and returns the end of its job.
pub(crate) async fn prove(
    client: &mut Client,
    request: v1::SubmitProofRequest,
) -> Result<v1::AwaitProofResponse, tonic::Status> {
    let request = v1::ProveRequest {
        submit: Some(request),
    };
    Ok(client.prove(request).await?.into_inner().result.unwrap())
}

/// Has the reference verifier look at a proof of a bundled request.
pub(crate) fn verify(kind: &str, response: &v1::AwaitProofResponse) {
    assert_eq!(response.status(), JobStatus::Completed, "{response:?}");
    let folder = tempfile::tempdir().unwrap();
    let proof = folder.path().join("proof");
    std::fs::write(&proof, &response.proof).unwrap();
    let verified = Command::new(env!("CARGO_BIN_EXE_cuzk"))
        .args(["verify", "--reference", "--request"])
        .arg(data(&format!("{kind}.json")))
        .arg("--proof")
        .arg(&proof)
        .env("FIL_PROOFS_PARAMETER_CACHE", param_cache())
        .output_bounded()
        .unwrap();
    assert!(verified.status.success(), "{verified:?}");
}
