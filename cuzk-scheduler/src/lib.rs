//! Which work is next, what memory it may use, and which device may do it.
//!
//! Not an engine: nothing here knows of proofs, starts a thread or allocates
//! what it counts. Small monitors, each with one lock, so that each can be
//! checked on its own; [`admission`] and what waits beside it are model-checked
//! over all interleavings (`RUSTFLAGS="--cfg loom"`).
//!
//! # Reading order
//!
//! [`priority`] (the order of work) → [`admission`] (work and its memory) →
//! [`queue`] (between stages) → [`pause`], [`turnstile`] (urgent work goes
//! first) → [`health`], [`estimate`] (what is known of devices and of time).

#![forbid(unsafe_code)]

pub mod admission;
pub mod estimate;
pub mod health;
pub mod pause;
pub mod priority;
pub mod queue;
mod sync;
pub mod turnstile;
