//! A Groth16 proving engine for Filecoin storage proofs, to be embedded.
//!
//! A request with a vanilla proof goes in, a verified proof comes out. Start an
//! [`Engine`] from a [`Config`], submit [`ProofRequest`]s, wait on the handles.
//!
//! # Reading order
//!
//! [`cuzk_filecoin`] (requests, and what each kind proves) → [`pipeline`] (the way of one
//! partition, on one screen) → [`cuzk_groth16`] (where a partition becomes a proof) →
//! [`engine`] (threads and lifetimes). [`mod@aggregate`] unites proofs. [`circuits`] says how
//! the circuits of the kinds are compiled and found, [`config`] what an operator can set,
//! [`timeline`] where the time went, [`metrics`] how it all is doing.
//!
//! # Invariants
//!
//! * Proof bytes leave only through [`mod@cuzk_groth16::verify`].
//! * A job that was accepted ends: with a proof or with an error.
//! * Memory is reserved before it is used, and what can never be is an error.
//! * Input is never trusted: a bad request, file or configuration is a typed
//!   error that says what to do, and never a panic.
//! * Nothing here is constant-time: the witness of a storage proof is no secret
//!   from the machine that proves it.

#![deny(unsafe_code)]

pub mod aggregate;
pub mod circuits;
pub mod config;
pub mod engine;
pub mod error;
pub mod job;
mod panics;
pub mod pipeline;
#[cfg(test)]
mod planted;
#[cfg(test)]
mod verdicts;

pub use config::Config;
pub use cuzk_filecoin::{AggregateRequest, ProofKind, ProofRequest};
pub use cuzk_groth16::Culprit;
pub use cuzk_scheduler::{self as scheduler, priority::Priority};
pub use cuzk_timeline::{self as timeline, metrics};
pub use engine::Engine;
pub use error::{Error, Result};
pub use job::{JobHandle, JobOptions};
