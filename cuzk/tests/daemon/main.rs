//! `cuzk serve` as clients meet it: the real program, real sockets, real proofs.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failure in a test fails the test"
)]

mod activation;
mod alerts;
mod figures;
mod files;
mod fixture;
mod flood;
mod gone;
mod identity;
mod killed;
mod kinds;
mod lines;
mod malformed;
mod params;
mod refused;
mod reload;
mod settings;
mod soak;
mod stopping;
