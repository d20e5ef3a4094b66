//! How many threads one kind of work should have while another runs.
//!
//! Reading order: [`beside`] runs two kinds of work at the same time without
//! ever leaving one alone, [`sweep`] judges numbers of threads by what was
//! measured, [`plot`] draws it. The command that tunes an operator's machine
//! and the benches stand on this; what the work is, they bring along.
//!
//! Nothing here is part of the engine, and nothing knows what it measures.

#![forbid(unsafe_code)]

pub mod beside;
pub mod plot;
pub mod sweep;
