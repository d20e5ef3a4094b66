//! Evaluation of a compiled circuit: a = A·w, b = B·w and, to check a witness,
//! c = C·w.
//!
//! Reading order:
//!
//! * `lane`: one part on rows that follow a pattern; `row`: one row of any part.
//! * `tile`: many rows of all parts; `plain`: rows that are not folded.
//! * `runner`, `evaluation`, `check`.
//!
//! Work is split as in [`crate::spmv_parallel`]: blocks of [`CHUNK_ROWS`](crate::CHUNK_ROWS) rows
//! on rayon's current pool. Every block passes the checkpoint, and not only every
//! [`crate::THROTTLE_CHUNKS`]th as there. Only the thread that looks at the throttle
//! stands aside, and on a few threads almost none would look while the others
//! compute on. A look costs an atomic load, a block of rows hundreds of thousands
//! of times that. A block enters the grammar at its first row.
//!
//! The witness is asked for every value if it is a bit, so the result is exact for *any*
//! witness. A caller may say that a witness satisfies the rows, and is trusted. Then, where
//! a row says that a long sum is a variable, the variable is read. Poseidon's rows are of
//! this kind.
//!
//! Invariant: results are those of [`crate::naive`] on the unfolded rows; of
//! [`Program::evaluate_satisfied`](crate::Program::evaluate_satisfied), on every row that holds.

mod check;
mod evaluation;
mod lane;
mod plain;
mod row;
mod runner;
mod tile;

pub(super) use check::check;
pub(super) use evaluation::{evaluate_ab, evaluate_abc};
