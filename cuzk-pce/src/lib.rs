//! Circuits as data: recorded once, evaluated many times.
//!
//! Reading order: [`record()`] takes the rows out of a blank circuit,
//! [`CsrMatrix`] and [`R1cs`] hold them, [`witness()`] computes a circuit
//! instance's values, [`evaluate`] multiplies the two under a throttle, and
//! [`disk`] keeps rows in a file. [`naive`] is the slow twin of the
//! evaluation. [`Densities`] and [`Fingerprint`] are what a prover asks about
//! a circuit. [`program`] is the same as [`R1cs`], compiled: a thousandth of
//! the size and quicker to evaluate, made by [`compile`] without the plain
//! form ever existing.
//!
//! This crate knows prime fields and threads, nothing of curves, proofs,
//! Filecoin or configuration. Work runs on rayon's current pool.
//!
//! Invariant: rows, variables and densities are those that bellperson's
//! prover and parameter generator see, in the same order, so parameters made
//! for a circuit fit what is recorded here.

#![deny(unsafe_code)]

mod bytes;
pub mod cell;
mod csr;
#[cfg(test)]
mod damage;
mod density;
pub mod disk;
mod eval;
mod fingerprint;
pub mod naive;
pub mod program;
mod r1cs;
mod record;
mod stream;
mod tables_error;
#[cfg(test)]
mod testing;
mod witness;

pub use csr::{CsrError, CsrMatrix, Row};
pub use density::{Densities, Density};
pub use eval::{CHUNK_ROWS, EvalError, Evaluated, THROTTLE_CHUNKS, check, evaluate, spmv_parallel};
pub use fingerprint::Fingerprint;
pub use program::{Program, compile, compile_while};
pub use r1cs::R1cs;
pub use record::{RecordError, record};
pub use witness::{
    Columns, PackedBuilder, PackedQuery, PackedSlice, PackedWitness, PackedWitnessCs, Witness,
    WitnessCs, WitnessError, packed_witness, witness,
};
