//! A small register machine over memory cells, and recorded runs of it, to
//! compare cells by.
//!
//! It is an experiment's apparatus: as much of a machine as makes cells be
//! written, read, followed and added up as a real one would.

mod felt;
mod machine;
mod trace;

pub use felt::{Arithmetic, BigFelt, Felt};
pub use machine::{Fault, Machine, Op, Outcome, REGISTERS, Reg, SEGMENT_CELLS_MAX};
pub use trace::{Mismatch, Program, Trace, re_execute};
