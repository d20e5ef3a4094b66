//! Where the time of a proving engine goes, and how it is doing.
//!
//! Reading order: [`Stage`] says what a partition goes through, a [`Span`] is one
//! stage that has ended, and a [`Timeline`] keeps the spans that a [`Trace`]
//! records. [`metrics`] are the numbers that a monitoring system scrapes; the
//! timeline emits those of the stages by itself.
//!
//! This crate knows times and names, nothing of proofs, and it writes no log and
//! links no exporter. Its invariant: a span is recorded for every stage that ran,
//! also when it failed or unwound, and what is kept is bounded.

#![forbid(unsafe_code)]

pub mod metrics;
mod span;
mod stage;
mod timeline;

pub use span::{Lane, Span};
pub use stage::Stage;
pub use timeline::{SPANS_MAX, TimedDrop, Timeline, Trace, Wait};
