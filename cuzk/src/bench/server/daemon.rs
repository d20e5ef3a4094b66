//! A daemon in a process of its own.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use cuzk_core::config::{Address, Config};
use cuzk_server::client::{Client, Credentials};
use cuzk_server::wire::v1::{AwaitProofResponse, SubmitProofRequest};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::failure::{Failure, failed};
use crate::threads::no_runtime;

/// The longest time that a daemon takes to start.
const START_MAX: Duration = Duration::from_secs(60);

/// The longest time after a reply until the daemon shows the times of the job.
const NOTED_MAX: Duration = Duration::from_secs(10);

/// The time between two looks at it.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A daemon, and a connection to it. Dropped, it ends.
pub(super) struct Daemon {
    process: Child,
    socket: PathBuf,
    client: Client,
    runtime: Runtime,
}

impl Daemon {
    /// Starts a daemon with its files in `folder`, and waits until it answers.
    pub(super) fn start(mut config: Config, folder: &Path) -> Result<Self, Failure> {
        let socket = folder.join("cuzk.sock");
        let address = Address::Unix(socket.clone());
        config.server.listen = vec![address.clone()];
        config.server.http = None;
        let path = folder.join("daemon.toml");
        std::fs::write(&path, config.to_toml()).map_err(failed)?;
        let log_path = folder.join("daemon.log");
        let log = std::fs::File::create(&log_path).map_err(failed)?;
        let mut process = Command::new(std::env::current_exe().map_err(failed)?)
            .arg("--config")
            .arg(&path)
            .args(["serve", "--while-stdin"])
            // It ends with this process, which has the other end.
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(failed)?;
        let runtime = runtime()?;
        let client = match connect(&runtime, &address, &mut process) {
            Ok(client) => client,
            Err(failure) => {
                process.kill().ok();
                process.wait().ok();
                let log = std::fs::read_to_string(log_path).unwrap_or_default();
                let problem = format!("the daemon does not start: {failure}: {log}");
                return Err(Failure::failed(problem));
            }
        };
        Ok(Self {
            process,
            socket,
            client,
            runtime,
        })
    }

    /// Returns the path of its socket.
    pub(super) fn socket(&self) -> &Path {
        &self.socket
    }

    /// Has it prove a request, and waits for the proof.
    pub(super) fn prove(&self, request: SubmitProofRequest) -> Result<AwaitProofResponse, Failure> {
        let response = self.runtime.block_on(self.client.prove(request))?;
        if response.proof.is_empty() {
            return Err(Failure::failed(response.error_message));
        }
        Ok(response)
    }

    /// Gives it a request, and does not wait for the proof.
    pub(super) fn submit(&self, request: SubmitProofRequest) -> Result<(), Failure> {
        self.runtime.block_on(self.client.submit(request))?;
        Ok(())
    }

    /// Returns the number of jobs of a kind that have not ended.
    pub(super) fn jobs_left(&self, kind: &str) -> Result<u64, Failure> {
        let status = self.runtime.block_on(self.client.status())?;
        let queue = status.queues.iter().find(|queue| queue.proof_kind == kind);
        Ok(queue.map_or(0, |queue| u64::from(queue.pending + queue.in_progress)))
    }

    /// Returns the time between the acceptance and the end of a job that has just ended.
    pub(super) fn job_s(&self, id: &str) -> Result<f64, Failure> {
        let until = Instant::now() + NOTED_MAX;
        // The daemon replies before it notes the times.
        while Instant::now() < until {
            let report = self.runtime.block_on(self.client.report())?;
            let report: Value = serde_json::from_str(&report).map_err(failed)?;
            let ended = report["engine"]["ended"].as_array().into_iter().flatten();
            let mut times = ended.filter(|job| job["id"] == id);
            if let Some(time) = times.next().and_then(|job| job["total_s"].as_f64()) {
                return Ok(time);
            }
            std::thread::sleep(LOOK_EVERY);
        }
        let problem = format!("the daemon does not know the job {id}");
        Err(Failure::failed(problem))
    }

    /// Returns its highest resident memory so far, in bytes.
    pub(super) fn peak_bytes(&self) -> Result<u64, Failure> {
        let path = format!("/proc/{}/status", self.process.id());
        let text = std::fs::read_to_string(path).map_err(failed)?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        let kib = kib.ok_or_else(|| Failure::failed("the system gives no resident memory"))?;
        Ok(kib << 10)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// Returns a runtime for a client, with a thread of its own. The daemon closes a connection that
/// does not answer its questions, and the caller's thread may prove for minutes.
pub(super) fn runtime() -> Result<Runtime, Failure> {
    cuzk_cluster::runtime::start("cuzk-bench", 1).map_err(|error| no_runtime(&error))
}

/// Connects once the daemon answers.
fn connect(runtime: &Runtime, address: &Address, process: &mut Child) -> Result<Client, Failure> {
    let until = Instant::now() + START_MAX;
    loop {
        let connected = runtime.block_on(async {
            let client = Client::connect(address, &Credentials::default()).await?;
            client.status().await?;
            Ok(client)
        });
        let error: Failure = match connected {
            Ok(client) => return Ok(client),
            Err::<_, cuzk_server::client::ClientError>(error) => error.into(),
        };
        let has_ended = process.try_wait().map_err(failed)?.is_some();
        if has_ended || Instant::now() > until {
            return Err(error);
        }
        std::thread::sleep(LOOK_EVERY);
    }
}
