//! A compiled circuit: the same rows, as small as their repetition allows.
//!
//! Reading order:
//!
//! * `rows`: distinct rows in relative form.
//! * `symbol`, `folder`, `grammar`, `walk`: the order of the rows, as a grammar that can be
//!   entered at any row.
//! * `tables`, `check_tables`: both as one checked block of words.
//! * `types`: the columns that are boolean; `columns`: the columns that there are.
//! * `compiler`, `compile`: from a circuit, row by row; `comparison`: a circuit's rows held
//!   against those of a program.
//! * `folded`, `body`, `compiled`: the program.
//! * `part`, `prepared`, `stretch`, `drift` and `run`: evaluation.
//! * `flat`: the form for a device; `file`: the form in a file.
//!
//! Rows without repetition would be larger folded than plain. Such a circuit's
//! program keeps them plain, so none is larger than the plain form.
//!
//! Invariant: a program unfolds to exactly the rows that [`crate::record()`] records of the
//! same circuit, with terms in the same order. It is immutable and checked, whether it was
//! compiled or read from a file.

mod body;
mod check_tables;
mod coefficients;
mod columns;
mod comparison;
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
mod prepared;
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
pub use comparison::ShapeDifference;
pub use compile::{compile, compile_while};
pub use compiled::{Program, ROWS_A_LOOK, Sizes, UnfoldError, check};
pub use dimensions::RowTerm;
pub use file::{inspect, map, read, write};
pub use file_header::ProgramHeader;
pub use flat::{BLOCK_ROWS, Flat};

pub(crate) use comparison::{RowComparison, check_variables};
pub(crate) use compile::compile_by;
