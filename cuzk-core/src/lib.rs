//! A Groth16 proving engine for Filecoin storage proofs, to be embedded.
//!
//! A request with a vanilla proof goes in, a verified proof comes out. Start an
//! [`Engine`] from a [`Config`], submit [`ProofRequest`]s, wait on the handles.
//!
//! # Reading order
//!
//! [`request`] (what is asked) → [`kinds`] (what each kind proves, and what
//! verifies it) → [`pipeline`] (the way of one partition, on one screen) →
//! [`backend`] (where a partition becomes a proof) → [`engine`] (threads and
//! lifetimes). [`circuit`] and [`params`] are what partitions share, [`memory`]
//! what they may use, [`config`] what an operator can set, [`timeline`] where the
//! time went, [`metrics`] how it all is doing.
//!
//! # Invariants
//!
//! * Proof bytes leave only through [`verify`].
//! * A job that was accepted ends: with a proof or with an error.
//! * Memory is reserved before it is used, and what can never be is an error.
//! * Input is never trusted: a bad request, file or configuration is a typed
//!   error that says what to do, and never a panic.
//! * Nothing here is constant-time: the witness of a storage proof is no secret
//!   from the machine that proves it.

#![deny(unsafe_code)]

pub mod backend;
pub mod circuit;
pub mod config;
pub mod engine;
pub mod error;
mod file_identity;
pub mod files;
pub mod job;
pub mod kinds;
pub mod memory;
pub mod once_map;
mod panics;
pub mod params;
pub mod pipeline;
pub mod request;
pub mod vanilla;
pub mod verify;

pub use config::Config;
pub use cuzk_scheduler::{self as scheduler, priority::Priority};
pub use cuzk_timeline::{self as timeline, metrics};
pub use engine::Engine;
pub use error::{Culprit, Error, Result};
pub use job::{JobHandle, JobOptions};
pub use request::ProofRequest;
