//! Requests of every kind: what they decode to, and what is refused.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failure here fails the test"
)]

mod aggregate;
mod altered;
mod bad_input;
mod bad_porep;
mod bad_post;
mod bad_snap_deals;
mod bundled;
mod compiled;
mod digests;
mod hostile;
mod mutated;
mod non_interactive;
mod partition;
mod parts;
mod simulated;
mod sparse;
mod vanilla;
mod verify;
mod witnesses;
mod zero;
