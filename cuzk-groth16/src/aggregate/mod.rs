//! Aggregates of Groth16 proofs: SnarkPack, as Filecoin's chain verifies it.
//!
//! Gailly, Maller and Nitulescu: "SnarkPack: Practical SNARK Aggregation", eprint 2021/529.
//! An aggregate of `n` proofs of one circuit has about `log n` elements.
//!
//! | module | content |
//! |---|---|
//! | `srs`, `srs_file` | the inner-product SRS, and its files |
//! | `key` | the part of it that `n` proofs need |
//! | `transcript` | challenges |
//! | `commitment` | a commitment |
//! | `vectors` | the vectors that a round halves |
//! | `sums` | sums of scaled points |
//! | `recursion` | the rounds |
//! | `opening` | openings of the last commitment keys |
//! | `proof` | the aggregate and its bytes |
//! | `prove` | all of that in order |
//! | `verify` | bellperson's verifier, which lets an aggregate out |
//! | `memory` | the bytes that all of that takes |
//!
//! The invariants:
//!
//! * An aggregate is bellperson's byte for byte, for the same SRS, proofs and version.
//! * A file of an SRS is hostile input: no point of it is used before it was checked.
//!
//! ```no_run
//! use cuzk_groth16::aggregate::{AggregateVersion, AggregationKey, aggregate, open_srs};
//! use cuzk_kernels::Isa;
//!
//! # fn example(proofs: Vec<bellperson::groth16::Proof<blstrs::Bls12>>) -> Result<(), Box<dyn std::error::Error>> {
//! let srs = open_srs("v28-fil-inner-product-v1.srs".as_ref(), proofs.len())?;
//! let key = AggregationKey::new(&srs, proofs.len())?;
//! let aggregate = aggregate(Isa::best(), &key, AggregateVersion::V2, b"inputs", &proofs)?;
//! std::fs::write("aggregate.bin", aggregate.to_bytes()?)?;
//! # Ok(())
//! # }
//! ```

mod commitment;
mod error;
mod key;
mod memory;
mod opening;
mod proof;
mod prove;
mod recursion;
mod srs;
mod srs_file;
mod sums;
mod transcript;
mod vectors;
mod verify;
mod version;

pub use error::{AggregateError, SrsError};
pub use key::AggregationKey;
pub use memory::{keys_bytes, work_bytes};
pub use proof::AggregateProof;
pub use prove::aggregate;
pub use srs::InnerProductSrs;
pub use srs_file::{open_srs, write_new_srs, write_srs};
pub use verify::{Claim, VerifiedAggregate, verify, verify_bytes};
pub use version::AggregateVersion;
