//! What measures need whatever they measure.
//!
//! Reading order: [`beside`] runs two kinds of work at the same time without
//! ever leaving one alone, [`sweep`] judges numbers of threads by what was
//! measured, [`child`] does what a process can do only once, [`counters`] are
//! read beside the clock, [`plot`] draws. The commands that measure an
//! operator's machine and the benches stand on this; what the work is, they
//! bring along.
//!
//! Nothing here is part of the engine, and nothing knows what it measures.

#![forbid(unsafe_code)]

pub mod beside;
pub mod child;
pub mod counters;
pub mod plot;
pub mod sweep;
