//! Groth16 kernels over BLS12-381 on the CPU:
//!
//! * transforms over the scalar field ([`ntt`]) and the quotient polynomial ([`quotient`]);
//! * multi-scalar multiplication, or MSM, in G1 and G2 ([`msm`]);
//! * multiplication of one base by many scalars ([`fixed_base`]), and of each point of a vector
//!   by its own ([`multiply_add`]);
//! * products of pairings ([`pairing`]);
//! * Poseidon hashes with the intermediate values of their circuit ([`poseidon`]).
//!
//! ```
//! use blstrs::{G1Affine, G1Projective, Scalar};
//! use cuzk_kernels::{msm, ntt::Domain};
//! use group::{Group, prime::PrimeCurveAffine};
//!
//! let bases = [G1Affine::generator(); 2];
//! let sum = msm::g1(&bases, &[Scalar::from(2), Scalar::from(3)])?;
//! assert_eq!(sum, G1Projective::generator() * Scalar::from(5));
//!
//! let domain = Domain::for_len(4)?;
//! let coefficients = [1, 2, 3, 4].map(Scalar::from);
//! let mut values = coefficients;
//! domain.ntt(&mut values)?;
//! assert_eq!(values[0], Scalar::from(1 + 2 + 3 + 4));
//! domain.intt(&mut values)?;
//! assert_eq!(values, coefficients);
//! # Ok::<(), cuzk_kernels::KernelError>(())
//! ```
//!
//! This crate knows nothing of circuits, files or configuration, and it owns no threads.
//! Every kernel runs on the *current* rayon pool, so a caller chooses the threads with
//! `ThreadPool::install`. The caller lends large working memory
//! ([`Memory`](cuzk_memory::Memory)). Tables that are made once belong to their owner: a
//! domain's powers of its root, or the multiples of one base.
//!
//! Invariants: results are exact. Every kernel is tested against a slow twin, most of them
//! in [`naive`]. A wrong length is a [`KernelError`]. The functions' documentation bounds
//! their working memory. The quotient and the MSMs can be paused and stopped
//! ([`Checkpoint`](cuzk_memory::Checkpoint)).
//!
//! The running time depends on the values. Witnesses of storage proofs are no secrets of
//! the machine that proves, so no kernel claims constant time.
//!
//! Reading order: [`ntt`] and [`quotient`] for polynomials. For curves, `affine` (batches
//! of affine additions, private to the crate), then [`msm`] and [`fixed_base`].
//! [`poseidon`] stands alone. Kernels are written twice: over `arithmetic`, one element
//! after the other, and in `ifma`, eight elements at a time. Transforms and additions of points
//! have a third form in `avx2`, sixteen elements at a time. [`Isa`] chooses between them.

#![deny(unsafe_code)]

pub(crate) mod affine;
pub(crate) mod arithmetic;
#[cfg(target_arch = "x86_64")]
mod avx2;
mod bases;
mod context;
pub(crate) mod digits;
mod error;
pub mod fixed_base;
#[cfg(target_arch = "x86_64")]
mod ifma;
mod isa;
mod matrix;
pub mod msm;
pub mod multiply_add;
pub mod naive;
pub mod ntt;
pub mod pairing;
mod plain;
pub mod poseidon;
pub mod quotient;
mod rounds;
mod spares;
#[doc(hidden)]
pub mod testing;
#[cfg(target_arch = "x86_64")]
mod token;

pub use context::Context;
pub use error::KernelError;
pub use isa::{Isa, IsaError};
