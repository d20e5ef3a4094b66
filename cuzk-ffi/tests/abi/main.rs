//! The functions as C calls them, and the header.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failure in a test fails the test"
)]

mod aggregates;
mod arguments;
mod calls;
mod header;
mod jobs;
