//! The inputs and outputs of a journal.

use serde::{Deserialize, Serialize};

use crate::JournalError;

/// The longest id, in bytes.
pub const ID_BYTES_MAX: usize = 1024;
/// The longest [`JobOptions::kind`].
pub const KIND_BYTES_MAX: usize = 4096;
/// The most partitions of one job.
pub const PARTITIONS_MAX: u32 = 65_536;
/// The longest proof of one partition.
pub const PARTITION_PROOF_BYTES_MAX: usize = 4096;
/// The longest proof of a job.
pub const PROOF_BYTES_MAX: usize = 1 << 20;
/// The bytes that are kept of the text of a failure.
pub const FAILURE_BYTES_MAX: usize = 16 << 10;

/// The options of a job, beside its request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobOptions {
    /// The kind of the request, opaque here, at most [`KIND_BYTES_MAX`]. Part of the
    /// input that an id stands for.
    pub kind: Vec<u8>,
    /// The number of partitions, 1 to [`PARTITIONS_MAX`]. Part of the input.
    pub partitions: u32,
    /// The urgency; opaque here, and not part of the input.
    pub priority: u8,
    /// The time from which the proof is useless, in milliseconds since 1970. Not part
    /// of the input.
    pub deadline_unix_ms: Option<u64>,
}

/// The way in which a job ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// It was proved; the proof has at most [`PROOF_BYTES_MAX`].
    Done(Vec<u8>),
    /// It failed with this error, of which [`FAILURE_BYTES_MAX`] are kept.
    Failed(String),
    /// It was cancelled.
    Cancelled,
}

/// The state of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It has not ended.
    Pending,
    /// It has ended.
    Ended(End),
}

/// The answer to a submission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// The job is new, and will survive a crash.
    New,
    /// The job was there before, with the same input.
    Attached(State),
}

/// A job to resume. [`Journal::request`](crate::Journal::request) reads its request
/// when its turn has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingJob {
    /// The caller's id.
    pub id: String,
    /// The options that were submitted.
    pub options: JobOptions,
    /// The time of its acceptance, in milliseconds since 1970.
    pub accepted_unix_ms: u64,
    /// The length of its request, uncompressed.
    pub request_bytes: u64,
    /// Its finished partitions and their proofs, in ascending order.
    pub finished: Vec<(u32, Vec<u8>)>,
    /// Finished partitions whose proofs are not what was written. They have to be proved
    /// again.
    pub damaged: Vec<u32>,
}

/// A job that cannot be resumed.
#[derive(Clone, Debug)]
pub struct DamagedJob {
    /// The caller's id, which [`Journal::forget`](crate::Journal::forget) takes.
    pub id: String,
    /// The error of its row.
    pub error: JournalError,
}

/// The jobs that a crash left to do.
#[derive(Clone, Debug, Default)]
pub struct Resumable {
    /// Jobs that have not ended, oldest first.
    pub jobs: Vec<PendingJob>,
    /// Pending jobs whose row cannot be read. They do not hinder other jobs.
    pub damaged: Vec<DamagedJob>,
}

/// The amounts that a journal holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Jobs that have not ended.
    pub jobs: u64,
    /// The length of all their requests, uncompressed.
    pub request_bytes: u64,
    /// Results that are kept.
    pub results: u64,
    /// The length of the file.
    pub file_bytes: u64,
}

impl End {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Done(_) => "done",
            Self::Failed(_) => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Returns the end with its failure text cut to the limit. Fails if the proof is
    /// too long.
    pub(crate) fn bounded(self) -> Result<Self, JournalError> {
        match self {
            Self::Done(proof) => {
                bounded("proof", proof.len(), PROOF_BYTES_MAX).map(|()| Self::Done(proof))
            }
            Self::Failed(mut text) => {
                let mut kept = FAILURE_BYTES_MAX.min(text.len());
                while !text.is_char_boundary(kept) {
                    kept -= 1;
                }
                text.truncate(kept);
                Ok(Self::Failed(text))
            }
            Self::Cancelled => Ok(Self::Cancelled),
        }
    }
}

impl JobOptions {
    pub(crate) fn check(&self) -> Result<(), JournalError> {
        bounded("options.kind", self.kind.len(), KIND_BYTES_MAX)?;
        if !(1..=PARTITIONS_MAX).contains(&self.partitions) {
            return Err(JournalError::InvalidInput {
                field: "options.partitions",
                expected: format!("1 to {PARTITIONS_MAX}"),
                got: self.partitions.to_string(),
            });
        }
        Ok(())
    }
}

/// Fails unless the id is text that can be shown: not empty, bounded, without control
/// characters.
pub(crate) fn check_id(id: &str) -> Result<(), JournalError> {
    let wrong = |got: String| JournalError::InvalidInput {
        field: "id",
        expected: format!("1 to {ID_BYTES_MAX} bytes without control characters"),
        got,
    };
    if id.is_empty() || id.len() > ID_BYTES_MAX {
        return Err(wrong(format!("{} bytes", id.len())));
    }
    match id.chars().find(|c| c.is_control()) {
        Some(c) => Err(wrong(format!("the character {c:?}"))),
        None => Ok(()),
    }
}

pub(crate) fn bounded(field: &'static str, got: usize, max: usize) -> Result<(), JournalError> {
    if got <= max {
        return Ok(());
    }
    Err(JournalError::InvalidInput {
        field,
        expected: format!("at most {max} bytes"),
        got: format!("{got} bytes"),
    })
}
