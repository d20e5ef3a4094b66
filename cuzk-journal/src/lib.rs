//! A journal of jobs, in one file that survives a crash. It keeps the accepted jobs,
//! their finished partitions, and how each job ended.
//!
//! Reading order:
//!
//! * [`Journal`] is the whole interface, with an example. [`JobOptions`], [`End`] and
//!   [`State`] are its inputs and outputs. [`Limits`] bounds the file.
//! * `tables` are the contents of the file, `change` are the changes to them.
//! * `writer` lets the changes of several threads share one durable commit.
//! * `row` and `request` define the form of a value on disk.
//! * `opening`, `lock`, `disk`, `held` and `check` do all that happens before an
//!   existing file is trusted.
//! * `store` guards the calls into the embedded store, and `aging` computes the age of
//!   a result.
//!
//! Requests and proofs are opaque bytes. This crate knows nothing of Filecoin, of
//! circuits or of the engine.
//!
//! Invariants:
//!
//! * A change whose call returned `Ok` is on disk.
//! * A file that is refused is not changed.
//! * A value that is read back is the value that was written, or a typed error. Each
//!   row has a checksum and each request a digest.

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
mod opening;
mod pending;
mod request;
mod row;
mod store;
mod tables;
mod writer;

pub use check::other_file_problem;
pub use error::JournalError;
pub use job::{
    Accepted, DamagedJob, End, FAILURE_BYTES_MAX, ID_BYTES_MAX, JobOptions, KIND_BYTES_MAX,
    PARTITION_PROOF_BYTES_MAX, PARTITIONS_MAX, PROOF_BYTES_MAX, PendingJob, Resumable, State,
    Usage,
};
pub use journal::Journal;
pub use limits::Limits;
pub use lock::folder_problem;
