//! Witnesses of the Filecoin circuits without the circuits.
//!
//! A writer takes the values of a decoded vanilla proof and writes every
//! auxiliary variable in the order in which the circuit of `storage-proofs-*`
//! allocates them, as bits where the native computation has words.
//!
//! What it is not: it synthesises no circuit, verifies no statement and reads
//! no request. Work runs on rayon's current pool.
//!
//! Invariant: for any inputs of the right shape, satisfying or not, what a
//! writer gives is bit for bit what bellperson's witness constraint system
//! gives for the same circuit instance.

#![deny(unsafe_code)]

pub use cuzk_pce::{PackedBuilder, PackedWitness};
