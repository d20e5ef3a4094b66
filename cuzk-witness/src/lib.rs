//! Witnesses of the Filecoin circuits without the circuits.
//!
//! A writer takes the values of a decoded vanilla proof. It writes every auxiliary
//! variable, in the order in which the circuit of `storage-proofs-*` allocates them. Where
//! the native computation has words, it writes words of bits.
//!
//! ```
//! use blstrs::Scalar;
//! use cuzk_witness::{Builder, num::write_bits};
//!
//! let mut builder = Builder::default();
//! builder.push_input(Scalar::from(1));
//! write_bits(&Scalar::from(5), &mut builder);
//! let witness = builder.finish()?.to_plain();
//! assert_eq!(witness.aux()[..3], [1, 0, 1].map(Scalar::from));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! This crate synthesises no circuit, verifies no statement and reads no request. Work runs
//! on rayon's current pool.
//!
//! Invariant: a writer's witness is bit for bit that of bellperson's witness constraint
//! system for the same circuit instance. That holds for any inputs of the right shape,
//! satisfying or not.
//!
//! Reading order: [`mod@poseidon`] and [`insertion`], [`por`] which is made
//! of them, [`sha256_path`] with the hash below it, then one kind: [`post`]
//! (the shortest), [`snap_deals`], [`porep`].

#![deny(unsafe_code)]

mod bits;
mod context;
mod error;
pub mod insertion;
mod label;
pub mod num;
mod pack;
pub mod por;
pub mod porep;
pub mod poseidon;
pub mod post;
mod sha256;
pub mod sha256_path;
pub mod snap_deals;
#[cfg(test)]
mod testing;
mod uint32;

pub use context::Context;
pub use cuzk_kernels::Isa;
pub use cuzk_memory::ArrayMemory;
pub use cuzk_pce::{PackedBuilder, PackedWitness};
pub use error::{ShapeError, WriteError};

/// A packed witness over BLS12-381's scalar field, while it is being written.
pub type Builder = PackedBuilder<blstrs::Scalar>;
