//! Circuits as data: recorded once, evaluated many times.
//!
//! * [`compile`] makes a [`Program`] of a blank circuit: its rows, compiled. It is a
//!   thousandth of the size of the plain rows, and faster to evaluate. The plain rows never
//!   exist side by side.
//! * [`witness()`] computes the values of a circuit instance, and [`packed_witness`] packs
//!   them. [`packed_witness_of`] also compares the rows of the instance with the compiled
//!   ones, and [`compile_with_witness`] compiles them.
//! * [`Program::evaluate_satisfied`] multiplies the two, under a checkpoint.
//! * [`Densities`], [`VariableCounts`] and [`Fingerprint`] are the properties of a circuit that a
//!   prover needs.
//! * [`record()`] takes the plain rows out of a blank circuit. [`CsrMatrix`] and [`R1cs`]
//!   hold them, [`evaluate`] multiplies them, and [`disk`] keeps them in a file.
//! * [`row_name`] tells in which part of a circuit a row is.
//! * [`ErasedCircuit`] saves a compiler from translating a large circuit for each of them.
//! * [`naive`] is the slow twin of the evaluation. [`digest_circuit`] digests what bellperson's
//!   prover computes of a circuit that is too large for it.
//!
//! ```
//! use bellperson::{Circuit, ConstraintSystem, SynthesisError};
//! use blstrs::Scalar;
//! use cuzk_memory::NEVER_STOP;
//! use cuzk_pce::{compile, packed_witness};
//!
//! /// Knows the square root of a public number.
//! struct Root(Option<Scalar>);
//!
//! impl Circuit<Scalar> for Root {
//!     fn synthesize<CS>(self, cs: &mut CS) -> Result<(), SynthesisError>
//!     where
//!         CS: ConstraintSystem<Scalar>,
//!     {
//!         let value = || self.0.ok_or(SynthesisError::AssignmentMissing);
//!         let root = cs.alloc(|| "root", value)?;
//!         let square = cs.alloc_input(|| "square", || Ok(value()? * value()?))?;
//!         cs.enforce(|| "root²", |lc| lc + root, |lc| lc + root, |lc| lc + square);
//!         Ok(())
//!     }
//! }
//!
//! let program = compile(Root(None))?;
//! let witness = packed_witness(Root(Some(Scalar::from(3))))?;
//! let len = program.rows() + program.num_inputs();
//! let mut a = vec![Scalar::from(0); len];
//! let mut b = a.clone();
//! program.evaluate_satisfied(&witness, [&mut a, &mut b], &NEVER_STOP)?;
//! assert_eq!(a[0] * b[0], Scalar::from(9));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! This crate knows prime fields and threads, nothing of curves, proofs,
//! Filecoin or configuration. Work runs on rayon's current pool.
//!
//! Invariant: rows, variables and densities are those that bellperson's prover and
//! parameter generator see, in the same order. So parameters made for a circuit fit the
//! rows here.

#![deny(unsafe_code)]

mod bytes;
pub mod cell;
mod csr;
#[cfg(test)]
mod damage;
mod density;
mod digest;
mod digested;
pub mod disk;
mod erased;
mod eval;
mod fingerprint;
mod instance;
pub mod naive;
mod nameless;
pub mod program;
mod r1cs;
mod record;
mod row_name;
mod stream;
mod tables_error;
#[cfg(test)]
mod testing;
mod variable_counts;
mod witness;

pub use csr::{CsrError, CsrMatrix, Row};
pub use density::{Densities, Density};
pub use digest::Digest;
pub use digested::{DigestedCircuit, digest_circuit};
pub use erased::ErasedCircuit;
pub use eval::{
    CHUNK_ROWS, EvalError, Evaluated, THROTTLE_CHUNKS, check, evaluate, spmv_parallel,
    spmv_parallel_into,
};
pub use fingerprint::Fingerprint;
pub use instance::{InstanceError, compile_with_witness, counted_witness_of, packed_witness_of};
pub use program::{Program, ShapeDifference, compile, compile_while};
pub use r1cs::R1cs;
pub use record::{RecordError, record};
pub use row_name::{row_name, row_name_while};
pub use variable_counts::VariableCounts;
pub use witness::{
    Columns, PackedBuilder, PackedQuery, PackedSlice, PackedWitness, PackedWitnessCs, Witness,
    WitnessCs, WitnessError, packed_witness, witness, write_query_bits,
};
