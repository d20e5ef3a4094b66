//! Poseidon over the scalar field, with every intermediate value that an
//! arithmetic circuit has a variable for.
//!
//! Grassi, Khovratovich, Rechberger, Roy, Schofnegger, "Poseidon: A New Hash
//! Function for Zero-Knowledge Proof Systems" (2019/458), x⁵ S-boxes, in the
//! optimised schedule of its appendix B: round keys are moved behind the
//! S-boxes, and the matrices of the partial rounds are sparse.
//!
//! What it is not: it derives no constants, and it is no sponge. One
//! permutation is one hash; batches run eight at a time where the machine can,
//! on the calling thread.
//!
//! Invariant: a trace is the same whatever the instructions, the batch's
//! length, and the place in it.

mod constants;
mod hash;
pub(crate) mod schedule;
mod serial;

pub use constants::{MAX_WIDTH, PoseidonConstants, SparseMatrix};
pub use hash::{BATCH, Poseidon};
