//! `cuzk serve --cluster` with workers: the real programs, a real nats-server, real proofs.
//!
//! `CUZK_NATS_SERVER` is the path of nats-server, which `.ci/nats-server` prints. Tests that
//! need it are ignored by default.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failure in a test fails the test"
)]

mod bench;
mod doubles;
mod faults;
#[path = "../daemon/fixture.rs"]
#[allow(dead_code, reason = "other tests use the rest of it")]
mod fixture;
mod hands;
#[path = "../worker/keys.rs"]
#[allow(dead_code, reason = "other tests use the rest of it")]
mod keys;
mod outage;
mod refusals;
#[path = "../worker/server.rs"]
#[allow(dead_code, reason = "other tests use the rest of it")]
mod server;
mod sharing;
mod storm;
mod three;
