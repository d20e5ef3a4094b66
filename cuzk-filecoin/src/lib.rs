//! Filecoin's proofs, as requests and as statements to prove: proofs of replication (PoRep),
//! WinningPoSt, WindowPoSt and SnapDeals.
//!
//! A [`ProofRequest`] says what is to be proved, with a vanilla proof that it is true.
//! [`decode`] checks it and makes it a [`Statement`], which gives circuits, witnesses and
//! public inputs, partition by partition.
//!
//! This crate proves nothing, and knows nothing of queues, of memory budgets or of devices.
//!
//! # Reading order
//!
//! [`request`] (what is asked) → [`kinds`] (what each kind proves) → [`verify`] (proof bytes
//! against a statement) and [`reference`](mod@reference) (the same with the chain's own
//! functions). [`vanilla`] makes requests to try a prover with.
//!
//! # Invariants
//!
//! * A statement that was decoded holds a vanilla proof that was verified.
//! * Input is never trusted: a bad request is a typed error that says what to do, and never
//!   a panic.
//! * Statements of one [`CircuitId`] share rows, parameters and verifying key.
//!
//! # Example
//!
//! ```
//! use cuzk_filecoin::{ProofRequest, decode};
//!
//! let error = ProofRequest::from_json(b"{}").and_then(|request| decode(&request)).err();
//! assert!(error.is_some_and(|error| error.is_input()));
//! ```

#![deny(unsafe_code)]

mod circuit_id;
mod error;
pub mod kinds;
mod library_settings;
mod proof_kind;
pub mod reference;
mod registered;
pub mod request;
mod sector_size;
mod tree;
pub mod vanilla;
pub mod verify;

/// The list of the networks' parameters, as the proofs crates ship it: JSON with name,
/// content identifier, digest and sector size.
pub const PARAMETERS_JSON: &str = storage_proofs_core::parameter_cache::PARAMETERS_DATA;

/// The list of the networks' inner-product SRS, in the form of [`PARAMETERS_JSON`].
pub const SRS_JSON: &str = storage_proofs_core::parameter_cache::SRS_PARAMETERS_DATA;

pub use circuit_id::{CircuitId, srs_file_name};
pub use cuzk_witness::Context as WitnessContext;
pub use error::{Error, Result};
pub use kinds::{
    PARTITION_FORMAT, PartitionHeader, ReferenceStatement, Statement, Writer, blank, decode,
    decode_partition, decode_reference, variables_apart,
};
pub use proof_kind::ProofKind;
pub use request::{AggregateRequest, ProofRequest};
pub use sector_size::SectorSize;
