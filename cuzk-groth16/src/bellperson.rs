//! bellperson's own names and signatures, over the provers of this crate.
//!
//! A program that proves with `bellperson::groth16` changes its `use` line:
//!
//! ```
//! // use bellperson::groth16::{create_random_proof, generate_random_parameters};
//! use cuzk_groth16::bellperson::{create_random_proof, generate_random_parameters};
//! ```
//!
//! With the same random generator, parameters and proofs have bellperson's bytes. The
//! differences:
//!
//! * The pairing is [`Bls12`](blstrs::Bls12), and functions that are generic in it have the
//!   bound [`Bls12381`].
//! * Each proof is verified before it is returned. A witness that does not satisfy the circuit
//!   is an error, where bellperson returns a proof that does not verify.
//! * The first proof with some [`Parameters`] compiles its circuit, and later ones use it.
//!   So one value of [`Parameters`] is for one circuit. An instance of another shape is an
//!   error that names the row.
//! * Errors that bellperson does not know are [`SynthesisError::IoError`]. Its inner error is
//!   a [`ProveError`](crate::ProveError).
//! * Points stay as they are in the file, so [`Parameters`] has no public field but its key.
//!
//! Not a second prover. The invariant: nothing here makes a proof by itself.

mod create;
mod error;
mod pairing;
mod parameters;

pub use bellperson::SynthesisError;
pub use bellperson::groth16::{
    PreparedVerifyingKey, Proof, VerifyingKey, prepare_verifying_key, verify_proof,
    verify_proofs_batch,
};

pub use create::{
    create_proof, create_proof_batch, create_proof_batch_in_priority, create_proof_in_priority,
    create_random_proof, create_random_proof_batch, create_random_proof_batch_in_priority,
    create_random_proof_in_priority,
};
pub use pairing::Bls12381;
pub use parameters::{
    MappedParameters, ParameterSource, Parameters, generate_parameters, generate_random_parameters,
};
