//! Documents and configuration files, held against the sources.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what fails in a test fails the test"
)]

mod architecture;
mod config;
mod mutated;
mod network;
mod programs;
