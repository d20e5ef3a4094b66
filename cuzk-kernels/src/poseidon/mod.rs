//! Poseidon over the scalar field, with every intermediate value that an
//! arithmetic circuit has a variable for.
//!
//! The hash is that of Grassi, Khovratovich, Rechberger, Roy and Schofnegger, "Poseidon: A
//! New Hash Function for Zero-Knowledge Proof Systems" (2019/458), with x⁵ S-boxes. The
//! schedule is the optimised one of its appendix B. Round keys are moved behind the
//! S-boxes, and the matrices of the partial rounds are sparse.
//!
//! This module derives no constants, and it is no sponge: one permutation is one hash.
//! Batches run eight at a time where the machine can, on the calling thread.
//!
//! Invariant: a trace is the same whatever the instructions, the batch's
//! length, and the place in it.

mod hash;
mod serial;

pub use crate::rounds::{MAX_WIDTH, PoseidonConstants, SparseMatrix};
pub use hash::{BATCH, Poseidon};
