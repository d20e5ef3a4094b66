//! The C ABI of the proving engine.
//!
//! Not an API for Rust: that is `cuzk-core`'s. [`engine`] has an engine's functions, [`job`]
//! those of a job and [`aggregate`] those of an aggregate. [`error`] has the codes, and how a
//! thread asks for its last error. The header `include/cuzk.h` is made from the sources.
//!
//! # Invariants
//!
//! * No panic leaves a function: it becomes the code of an internal error.
//! * A NULL, or a length that nothing can have, is an error.
//! * Nothing of the caller is called, and no pointer of the caller is kept.
//! * A function whose name ends with `_new` gives the caller something, which the caller gives
//!   back to the function with `_free` in its place. A function with `lend` in its name
//!   returns something that stays the library's.

pub mod aggregate;
pub mod engine;
pub mod error;
mod input;
pub mod job;
mod options;
pub mod signal;
