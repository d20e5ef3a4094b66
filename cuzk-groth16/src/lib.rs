//! Groth16 proofs over BLS12-381 of any circuit.
//!
//! A [`Circuit`] is compiled once. Its parameters are files, mapped by
//! [`params`]. A [`backend`] makes a proof of a witness, on the CPU or on a GPU, and
//! [`mod@verify`] lets it out.
//!
//! This crate knows nothing of Filecoin, of jobs and queues, of a configuration or of a
//! command line. A circuit has a name, files have paths, and a backend gets its needs by
//! value.
//!
//! # Reading order
//!
//! [`circuit`] and [`params`] (what proofs of one circuit share) → [`evaluate`] (A and B on
//! a witness) → [`backend`] (where a witness becomes a proof) → [`mod@verify`]. [`memory`]
//! says how much memory a proof needs, and keeps the memory that proofs recycle.
//! A [`Prover`] puts them together for one circuit, and [`mod@bellperson`] has the names of that
//! library over it. [`mod@aggregate`] unites many proofs in one. [`once_map`] has values that are
//! made once and shared. [`apart`] is how a thread waits for rayon while it holds something.
//!
//! # Invariants
//!
//! * A proof is verified by [`mod@verify`] before it is returned as one, and has another type
//!   if it was not.
//! * A file is checked against its real length, and a checksum or a circuit's dimensions,
//!   before it is used.
//! * A thread that holds a lock waits for work of rayon by [`apart`] only.
//! * Nothing here is constant-time.
//!
//! # Example
//!
//! ```
//! use cuzk_groth16::params::ParamCache;
//!
//! // Nothing is read before a circuit's parameters are asked for.
//! let cache = ParamCache::new("/var/tmp/filecoin-proof-parameters");
//! assert!(cache.dir().is_absolute());
//! ```

#![deny(unsafe_code)]

pub mod aggregate;
pub mod apart;
pub mod backend;
pub mod bellperson;
pub mod circuit;
mod error;
pub mod evaluate;
pub mod memory;
pub mod once_map;
pub mod params;
mod prover;
mod query_lengths;
pub mod verify;

pub use circuit::{Circuit, CircuitForm};
pub use error::{Culprit, Error, Result};
pub use prover::{ProveError, Prover, ProvingDevice, RowCheck, compile, prove, prove_batch, setup};
pub use verify::verify;

/// Has the programs of the page compiled and run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../docs/any-circuit.md")]
struct AnyCircuitPage;
