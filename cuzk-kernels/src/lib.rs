//! Groth16 kernels over BLS12-381 on the CPU: transforms of the scalar field,
//! the quotient polynomial, multi-scalar and fixed-base multiplication in G1
//! and G2, and Poseidon hashes with their circuit's values.
//!
//! What it is not: it knows nothing of circuits, files or configuration, and
//! it owns no threads. Everything runs on the *current* rayon pool, so a
//! caller chooses the threads with `ThreadPool::install`; a sum's large working
//! memory is lent by the caller ([`Memory`](cuzk_memory::Memory)). What is made once is its maker's: a
//! domain's powers of its root, a table of multiples of one base.
//!
//! Invariants: results are exact (every kernel has a slow twin that it is tested
//! against, most of them in [`naive`]), lengths are checked and answered with a
//! [`KernelError`], and working memory is bounded by the functions'
//! documentation. The quotient and the sums can be paused and stopped
//! ([`Checkpoint`](cuzk_memory::Checkpoint)). Running time depends on the values: witnesses of storage
//! proofs are not secret from the machine that proves, and no constant-time
//! claim is made.
//!
//! Reading order: [`ntt`] and [`quotient`] for the polynomial half, `affine`
//! (crate-private: batches of affine additions, which everything about curves
//! is made of), then [`msm`] and [`fixed_base`]; [`poseidon`] stands alone. What
//! takes one element after the other is written over `arithmetic`, and `ifma` is
//! the same eight at a time; [`Isa`] says which.

#![deny(unsafe_code)]

pub(crate) mod affine;
pub(crate) mod arithmetic;
mod bases;
mod context;
pub(crate) mod digits;
mod error;
pub mod fixed_base;
#[cfg(target_arch = "x86_64")]
mod ifma;
mod isa;
pub mod msm;
pub mod naive;
pub mod ntt;
mod plain;
pub mod poseidon;
pub mod quotient;
mod spares;

pub use context::Context;
pub use error::KernelError;
pub use isa::{Isa, IsaError};
