//! The rounds of a Poseidon hash: its constants, checked and laid out.

mod constants;
pub(crate) mod schedule;

pub use constants::{MAX_WIDTH, PoseidonConstants, SparseMatrix};
