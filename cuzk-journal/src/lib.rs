//! A journal of jobs: what was accepted, which partitions are finished, and
//! how each job ended, in one file that survives a crash.
//!
//! Reading order: [`Journal`] is the whole interface; [`JobOptions`], [`End`]
//! and [`State`] are what goes in and comes out; [`Limits`] bounds the file.
//! Inside, `tables` is what is in the file, `change` what can happen to it,
//! `writer` lets the changes of
//! several threads share one durable commit, `row` and `request` are how a
//! value looks on disk, and `lock`, `disk`, `held` and `check` are what happens before
//! an existing file is trusted; `aging` is how old a result is.
//!
//! Requests and proofs are opaque bytes: this crate knows nothing of Filecoin,
//! of circuits or of the engine.
//!
//! Invariants: a call that returned `Ok` is on disk. A file that is refused is
//! not changed. What is read back is what was written, or a typed error: every
//! row has a checksum and every request a digest.

#![deny(unsafe_code)]

mod aging;
mod change;
mod check;
mod disk;
mod error;
mod held;
mod job;
mod journal;
mod limits;
mod lock;
mod request;
mod row;
mod tables;
mod writer;

pub use error::JournalError;
pub use job::{
    Accepted, DamagedJob, End, FAILURE_BYTES_MAX, ID_BYTES_MAX, JobOptions, KIND_BYTES_MAX,
    PARTITION_PROOF_BYTES_MAX, PARTITIONS_MAX, PROOF_BYTES_MAX, PendingJob, Resumable, State,
    Usage,
};
pub use journal::Journal;
pub use limits::Limits;
