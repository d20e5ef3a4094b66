//! The replies to clients: the end of a job, or the refusal of a call.
//!
//! Not the decision, which was the engine's. The invariants:
//!
//! * INVALID_ARGUMENT is for input that can never be proved.
//! * A job that was accepted and could not be proved is a reply with FAILED.
//! * UNAVAILABLE means that the daemon stops.
//! * RESOURCE_EXHAUSTED means that the same call may succeed later.
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
        Error::NoMemory(_) | Error::InUse { .. } => Status::resource_exhausted(message),
        // An operator makes room on the disk, and the journal is opened again. Threads come back
        // when other programs end theirs.
        error
            if matches!(
                ErrorCode::of(error),
                ErrorCode::JournalFailing | ErrorCode::Threads
            ) =>
        {
            Status::resource_exhausted(message)
        }
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

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::sync::Arc;

    use cuzk_journal::JournalError;
    use tonic::Code;

    use super::*;

    fn of_journal(error: JournalError) -> Code {
        refused(&Error::Journal(error)).code()
    }

    #[test]
    fn an_eviction_is_repeated_while_the_circuit_is_in_use() {
        for (partitions, makes_multiples) in [(2, false), (0, true), (2, true)] {
            let status = refused(&Error::InUse {
                circuit: "porep-32GiB".to_owned(),
                partitions,
                makes_multiples,
            });
            assert_eq!(status.code(), Code::ResourceExhausted);
            let message = status.message();
            assert!(message.starts_with("circuit porep-32GiB: "), "{message}");
            assert_eq!(message.contains("2 partition(s)"), partitions > 0);
            assert_eq!(message.contains("multiples"), makes_multiples);
            assert!(message.ends_with("[CUZK-0026]"), "{message}");
        }
    }

    #[test]
    fn a_call_is_repeated_while_the_journal_has_no_room() {
        let (path, what) = ("folder/jobs".into(), "full".to_owned());
        let failed = JournalError::Store { path, what };
        let status = refused(&Error::Journal(failed));
        assert_eq!(status.code(), Code::ResourceExhausted);
        let message = status.message();
        assert!(message.contains("folder/jobs") && message.ends_with("[CUZK-0022]"));

        let io = |kind: ErrorKind| JournalError::Io {
            path: "folder/jobs".into(),
            action: "write",
            source: Arc::new(kind.into()),
        };
        assert_eq!(
            of_journal(io(ErrorKind::StorageFull)),
            Code::ResourceExhausted
        );
        let full = JournalError::Full {
            what: "jobs",
            used: 1,
            more: 1,
            max: 1,
        };
        assert_eq!(of_journal(full), Code::ResourceExhausted);
        // Another call meets the same file.
        assert_eq!(of_journal(io(ErrorKind::PermissionDenied)), Code::Internal);
        let damaged = JournalError::Damaged {
            path: "folder/jobs".into(),
            what: "cut".to_owned(),
        };
        assert_eq!(of_journal(damaged), Code::Internal);
    }
}
