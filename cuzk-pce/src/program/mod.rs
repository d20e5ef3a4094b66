//! A compiled circuit: the same rows, as small as their repetition allows.
//!
//! Reading order: `rows` (distinct rows in relative form), `sequence` (their
//! order as a grammar that can be entered at any row), `tables` (both as one
//! checked block of words), `compile` (from a blank circuit, streaming),
//! `folded` (these, ready to run), `types` (which columns are boolean), `columns`
//! (which columns there are), `drift` and `run` (evaluation), `flat` (for a device), `file`.
//!
//! Rows without repetition would be larger folded than plain. Such a circuit's
//! program keeps them plain, so none is larger than the plain form.
//!
//! Invariant: a program unfolds to exactly the rows that [`crate::record()`]
//! records of the same circuit, terms in the same order; it is immutable and
//! checked, whether compiled or read from a file.

mod body;
mod check_tables;
mod coefficients;
mod columns;
mod compile;
mod compiled;
mod compiler;
mod dimensions;
mod drift;
mod file;
mod file_header;
mod flat;
mod folded;
mod folder;
mod grammar;
mod interner;
mod known_shape;
mod part;
mod rows;
mod run;
mod stretch;
mod symbol;
mod tables;
#[cfg(test)]
mod tests;
mod types;
mod walk;

pub use crate::tables_error::TablesError;
pub use compile::{compile, compile_while};
pub use compiled::{Program, Sizes, check};
pub use dimensions::RowTerm;
pub use file::{inspect, read, write};
pub use file_header::ProgramHeader;
pub use flat::{BLOCK_ROWS, Flat};
