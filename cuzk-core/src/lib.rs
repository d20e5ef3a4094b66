//! A Groth16 proving engine for Filecoin storage proofs, to be embedded.
//!
//! To be completed: engine, pipeline, backend and timeline.

#![deny(unsafe_code)]

pub mod config;
pub mod error;
pub mod kinds;
pub mod params;
pub mod request;
pub mod vanilla;

pub use error::{Error, Result};
pub use request::ProofRequest;
