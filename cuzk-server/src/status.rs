//! The state of the engine, as `GetStatus` tells it.
//!
//! Not the report for operators, which has everything. The invariant: a pure function of
//! the engine's status.

use cuzk_core::engine::Status;
use cuzk_core::{Engine, JobHandle, ProofKind};

use crate::circuit_name::{kind_name, translated, translated_kind};
use crate::wire::v1;

/// Returns the status of an engine in the form of the wire.
pub(crate) fn of(status: &Status) -> v1::GetStatusResponse {
    let count =
        |is_it: fn(&cuzk_core::engine::KindTotals) -> u64| status.totals.iter().map(is_it).sum();
    v1::GetStatusResponse {
        gpus: status
            .devices
            .iter()
            .map(|device| gpu(status, device))
            .collect(),
        loaded_srs: status.assets.iter().map(srs).collect(),
        queues: ProofKind::ALL
            .iter()
            .map(|&kind| queue(status, kind))
            .collect(),
        total_proofs_completed: count(|totals| totals.proved),
        total_proofs_failed: count(|totals| totals.failed),
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a time since the start, in whole seconds"
        )]
        uptime_seconds: status.started_s as u64,
        pinned_memory_bytes: status.memory.used_bytes,
        pinned_memory_limit_bytes: status.memory.total_bytes,
    }
}

/// Returns the number of jobs that were accepted before a job and have not ended.
pub(crate) fn jobs_ahead(engine: &Engine, job: &JobHandle) -> u32 {
    let jobs = engine.status().jobs;
    count(jobs.iter().filter(|other| other.number < job.number()))
}

fn gpu(status: &Status, device: &cuzk_core::engine::DeviceStatus) -> v1::GpuStatus {
    let current = device.job.clone().unwrap_or_default();
    let job = status
        .jobs
        .iter()
        .find(|job| job.id.as_deref() == Some(&current));
    let kind = job.map(|job| translated_kind(job.kind));
    v1::GpuStatus {
        ordinal: u32::try_from(device.device).unwrap_or(u32::MAX),
        name: device.backend.to_owned(),
        vram_total_bytes: 0,
        vram_free_bytes: 0,
        current_job_id: current,
        current_proof_kind: kind.unwrap_or_default().to_owned(),
    }
}

fn srs(asset: &cuzk_core::engine::AssetStatus) -> v1::SrsStatus {
    v1::SrsStatus {
        circuit_id: translated(&asset.circuit),
        tier: v1::srs_status::Tier::Hot.into(),
        size_bytes: asset.parameter_bytes,
        ref_count: u32::try_from(asset.uses).unwrap_or(u32::MAX),
    }
}

fn queue(status: &Status, kind: ProofKind) -> v1::QueueStatus {
    let of_kind = || status.jobs.iter().filter(|job| job.kind == kind.name());
    v1::QueueStatus {
        proof_kind: kind_name(kind).to_owned(),
        pending: count(of_kind().filter(|job| job.state != "running")),
        in_progress: count(of_kind().filter(|job| job.state == "running")),
    }
}

fn count<T>(items: impl Iterator<Item = T>) -> u32 {
    u32::try_from(items.count()).unwrap_or(u32::MAX)
}
