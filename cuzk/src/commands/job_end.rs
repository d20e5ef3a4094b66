//! The end of a job in a daemon, as `cuzk submit` and `cuzk await` report it.

use std::path::PathBuf;

use cuzk_core::error::ErrorCode;
use cuzk_server::wire::v1::AwaitProofResponse;
use cuzk_server::wire::v1::await_proof_response::Status;
use serde::Serialize;

use crate::failure::Failure;
use crate::output;
use crate::output_path::OutputPath;

/// A proof that a daemon made. Times of stages are sums over partitions.
#[derive(Debug, Serialize)]
struct JobReport {
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<String>,
    out: String,
    job_id: String,
    proof_bytes: usize,
    queue_wait_ms: u64,
    srs_load_ms: u64,
    synthesis_ms: u64,
    compute_ms: u64,
    total_ms: u64,
}

/// Writes the proof of a job and prints its report. `request` is its file.
///
/// # Errors
/// A job that ended without a proof, or that has not ended.
pub(super) fn finish(
    json: bool,
    request: Option<&PathBuf>,
    out: &OutputPath,
    end: &AwaitProofResponse,
) -> Result<(), Failure> {
    let (job, reason) = (&end.job_id, &end.error_message);
    match end.status() {
        Status::Completed => {}
        Status::Failed => {
            // A daemon of an older version names no code.
            let (reason, code) = ErrorCode::split(reason);
            let problem = format!("{job} failed: {reason}");
            return Err(Failure::new(code.unwrap_or(ErrorCode::Failed), problem));
        }
        Status::Cancelled => {
            let problem = format!("{job} was cancelled; submit the request again to prove it");
            return Err(Failure::new(ErrorCode::Ended, problem));
        }
        Status::Timeout => {
            let problem = format!("{job} has not ended; it goes on, so await it again");
            return Err(Failure::failed(problem));
        }
        Status::Unknown => {
            let problem = format!("the daemon knows no job {job:?}; submit the request again");
            return Err(Failure::input(problem));
        }
    }
    out.write(&end.proof)?;
    let report = JobReport {
        request: request.map(|path| output::shown(path)),
        out: output::shown(out.path()),
        job_id: job.clone(),
        proof_bytes: end.proof.len(),
        queue_wait_ms: end.queue_wait_ms,
        srs_load_ms: end.srs_load_ms,
        synthesis_ms: end.synthesis_ms,
        compute_ms: end.gpu_compute_ms,
        total_ms: end.total_ms,
    };
    output::print_beside(out.is_stdout(), json, &report, |report| {
        format!(
            "{}: {} bytes in {} ms (waited {} ms, parameters {} ms, synthesis {} ms, transforms \
             and MSMs {} ms)",
            report.out,
            report.proof_bytes,
            report.total_ms,
            report.queue_wait_ms,
            report.srs_load_ms,
            report.synthesis_ms,
            report.compute_ms
        )
    })
}
