//! The state of a daemon, as far as it is shown.
//!
//! Not the whole document, which `cuzk status --json` prints. The invariant: what a daemon
//! leaves out is empty or zero here, and what it adds is ignored.

use cuzk_core::error::ErrorCode;
use cuzk_server::client::{Client, ClientError};
use cuzk_server::wire::v1::GetStatusResponse;
use cuzk_server::wire::v1::srs_status::Tier;
use serde::{Deserialize, Serialize};

use crate::failure::{Failure, failed};

/// The document of `GET /status`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct DaemonReport {
    pub(super) uptime_secs: u64,
    pub(super) memory: Memory,
    pub(super) pipelines: Vec<Job>,
    pub(super) gpu_workers: Vec<Worker>,
    pub(super) counters: Counters,
    pub(super) cluster: Option<Cluster>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Memory {
    pub(super) total_bytes: u64,
    pub(super) used_bytes: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Job {
    pub(super) job_id: String,
    pub(super) proof_kind: String,
    pub(super) started_secs_ago: u64,
    pub(super) total_partitions: usize,
    pub(super) partitions_done: usize,
    pub(super) partitions: Vec<Partition>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Partition {
    pub(super) state: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Worker {
    pub(super) gpu_ordinal: usize,
    pub(super) state: String,
    pub(super) current_job: Option<String>,
    pub(super) current_partition: Option<usize>,
    pub(super) busy_secs: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Counters {
    pub(super) total_completed: u64,
    pub(super) total_failed: u64,
    pub(super) queue_depth: usize,
}

/// The other machines of a daemon.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Cluster {
    pub(super) servers: Vec<String>,
    pub(super) connected: bool,
    pub(super) problem: Option<String>,
    pub(super) open_partitions: usize,
    pub(super) nodes: Vec<Node>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Node {
    pub(super) name: String,
    pub(super) version: Option<String>,
    pub(super) loaded: Vec<String>,
    pub(super) running: usize,
    pub(super) proved: u64,
    pub(super) failed: u64,
    pub(super) faults: u64,
    pub(super) seen_s_ago: f64,
    pub(super) progress_s_ago: Option<f64>,
}

impl DaemonReport {
    /// Reads the document. Returns none if it is not one.
    pub(super) fn parse(json: &str) -> Option<Self> {
        serde_json::from_str(json).ok()
    }
}

/// The state of any daemon, as GetStatus has it.
#[derive(Debug, Serialize)]
pub(super) struct PlainStatus {
    uptime_seconds: u64,
    total_proofs_completed: u64,
    total_proofs_failed: u64,
    pinned_memory_bytes: u64,
    pinned_memory_limit_bytes: u64,
    gpus: Vec<Gpu>,
    loaded_srs: Vec<Srs>,
    queues: Vec<Queue>,
}

#[derive(Debug, Serialize)]
struct Gpu {
    ordinal: u32,
    name: String,
    vram_total_bytes: u64,
    vram_free_bytes: u64,
    current_job_id: String,
    current_proof_kind: String,
}

#[derive(Debug, Serialize)]
struct Srs {
    circuit_id: String,
    tier: &'static str,
    size_bytes: u64,
    ref_count: u32,
}

#[derive(Debug, Serialize)]
struct Queue {
    proof_kind: String,
    pending: u32,
    in_progress: u32,
}

/// Returns the name of the place where parameters are.
pub(super) fn tier_name(tier: Tier) -> &'static str {
    match tier {
        Tier::Hot => "hot",
        Tier::Warm => "warm",
        Tier::Cold => "cold",
    }
}

impl From<GetStatusResponse> for PlainStatus {
    fn from(status: GetStatusResponse) -> Self {
        let gpus = status.gpus.into_iter().map(|gpu| Gpu {
            ordinal: gpu.ordinal,
            name: gpu.name,
            vram_total_bytes: gpu.vram_total_bytes,
            vram_free_bytes: gpu.vram_free_bytes,
            current_job_id: gpu.current_job_id,
            current_proof_kind: gpu.current_proof_kind,
        });
        let loaded_srs = status.loaded_srs.into_iter().map(|srs| Srs {
            tier: tier_name(srs.tier()),
            circuit_id: srs.circuit_id,
            size_bytes: srs.size_bytes,
            ref_count: srs.ref_count,
        });
        let queues = status.queues.into_iter().map(|queue| Queue {
            proof_kind: queue.proof_kind,
            pending: queue.pending,
            in_progress: queue.in_progress,
        });
        Self {
            uptime_seconds: status.uptime_seconds,
            total_proofs_completed: status.total_proofs_completed,
            total_proofs_failed: status.total_proofs_failed,
            pinned_memory_bytes: status.pinned_memory_bytes,
            pinned_memory_limit_bytes: status.pinned_memory_limit_bytes,
            gpus: gpus.collect(),
            loaded_srs: loaded_srs.collect(),
            queues: queues.collect(),
        }
    }
}

/// Returns the whole document of a cuzk daemon, or none if the daemon has no document.
pub(super) async fn document(client: &Client) -> Result<Option<String>, ClientError> {
    match client.report().await {
        Ok(json) => Ok(Some(json)),
        Err(ClientError::Unsupported { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the state of a daemon as one JSON object: the whole document, or that of GetStatus
/// if the daemon has none.
pub(super) async fn json(client: &Client) -> Result<serde_json::Value, Failure> {
    match document(client).await? {
        Some(document) => serde_json::from_str(&document).map_err(|error| {
            let address = client.address();
            let problem = format!(
                "{address} sent a report that is no JSON: {error}; it may be another program, or a \
                 daemon of another version"
            );
            Failure::new(ErrorCode::Daemon, problem)
        }),
        None => {
            let status = PlainStatus::from(client.status().await?);
            serde_json::to_value(status).map_err(failed)
        }
    }
}
