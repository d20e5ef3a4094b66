//! `cuzk worker` as daemons meet it: the real program, a real nats-server, real proofs.
//!
//! The daemon is a double: it offers partitions through `cuzk-cluster`, and verifies proofs.
//! `CUZK_NATS_SERVER` is the path of nats-server, which `.ci/nats-server` prints. Tests that
//! need it are ignored by default.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failure in a test fails the test"
)]

mod fixture;
mod keys;
mod proves;
mod refusals;
mod server;
mod trusted;
