//! The transport against a real server on the loopback address, with made-up partitions.
//!
//! `CUZK_NATS_SERVER` is the path of nats-server, which `.ci/nats-server` prints. Only
//! `cargo test -- --ignored` runs these tests, because they need that program.

#![allow(clippy::unwrap_used, reason = "a failure in a test fails the test")]
#![allow(clippy::panic, reason = "a failure in a test fails the test")]

mod bad_input;
mod faults;
mod limits;
mod machines;
mod replicas;
mod seen;
mod server;
mod sharing;
