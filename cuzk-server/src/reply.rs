//! The replies to clients: the end of a job, or the refusal of a call.
//!
//! Not the decision, which was the engine's. The invariants:
//!
//! * INVALID_ARGUMENT is for input that can never be proved.
//! * A job that was accepted and could not be proved is a reply with FAILED.
//! * UNAVAILABLE means that the daemon stops.
//! * The text of an error ends with its code in brackets, as the command line's does.

use std::time::Duration;

use cuzk_core::error::ErrorCode;
use cuzk_core::job::Outcome;
use cuzk_core::{Error, JobHandle};
use tonic::Status;

use crate::wire::v1::{self, await_proof_response::Status as JobStatus};

/// Returns the reply for a job that has ended.
///
/// # Errors
/// UNAVAILABLE for a job that the end of the daemon interrupted: it goes on at the next
/// start, and the client calls again.
pub(crate) fn ended(job: &JobHandle, outcome: &Outcome) -> Result<v1::AwaitProofResponse, Status> {
    let (status, proof, error_message) = match outcome {
        Ok(proof) => (
            JobStatus::Completed,
            proof.as_bytes().to_vec(),
            String::new(),
        ),
        Err(error) => match &**error {
            Error::ShuttingDown => return Err(refused(error)),
            Error::Cancelled => (JobStatus::Cancelled, Vec::new(), coded(error)),
            error => (JobStatus::Failed, Vec::new(), coded(error)),
        },
    };
    Ok(v1::AwaitProofResponse {
        proof,
        error_message,
        ..at(job, status)
    })
}

/// Returns the reply for a job that goes on although the call is over.
pub(crate) fn timed_out(job: &JobHandle) -> v1::AwaitProofResponse {
    v1::AwaitProofResponse {
        error_message: "the job had not ended within timeout_ms; it goes on".to_owned(),
        ..at(job, JobStatus::Timeout)
    }
}

/// Returns the reply for a name that is no job's.
pub(crate) fn unknown(job_id: String) -> v1::AwaitProofResponse {
    v1::AwaitProofResponse {
        error_message: format!(
            "there is no job {job_id:?}; its result may have been kept long enough, submit it again"
        ),
        job_id,
        status: JobStatus::Unknown.into(),
        ..v1::AwaitProofResponse::default()
    }
}

fn at(job: &JobHandle, status: JobStatus) -> v1::AwaitProofResponse {
    let times = job.times();
    v1::AwaitProofResponse {
        job_id: job.id().unwrap_or_default().to_owned(),
        status: status.into(),
        queue_wait_ms: whole_ms(times.queue_wait),
        srs_load_ms: whole_ms(times.srs_load),
        synthesis_ms: whole_ms(times.synthesis),
        gpu_compute_ms: whole_ms(times.device),
        total_ms: whole_ms(times.total),
        ..v1::AwaitProofResponse::default()
    }
}

/// Returns the status of a call that the engine refused.
pub(crate) fn refused(error: &Error) -> Status {
    let message = coded(error);
    match error {
        Error::Filecoin(inner) if inner.is_input() => Status::invalid_argument(message),
        Error::Unsatisfied { .. } => Status::invalid_argument(message),
        Error::ShuttingDown => Status::unavailable(message),
        Error::Conflict { .. } => Status::already_exists(message),
        Error::Cancelled => Status::cancelled(message),
        Error::TooLate { .. } | Error::DeadlinePassed => Status::deadline_exceeded(message),
        error if error.is_busy() => Status::resource_exhausted(message),
        Error::NoMemory(_) => Status::resource_exhausted(message),
        // An operator can mend these, and the input stays as it is.
        Error::Params(_)
        | Error::Config(_)
        | Error::OverBudget(_)
        | Error::TooManyPartitions { .. } => Status::failed_precondition(message),
        _ => Status::internal(message),
    }
}

/// Returns the text of an error with its stable code.
fn coded(error: &Error) -> String {
    ErrorCode::of(error).after(error)
}

fn whole_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
