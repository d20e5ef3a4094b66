//! The proving engine as a daemon: gRPC for clients, HTTP for people and monitoring.
//!
//! Not the engine, which is in `cuzk-core`: this crate decides nothing about proofs. It is
//! the only crate with an async runtime. The invariant: a call that was accepted ends with
//! a reply that says how its job stands.

pub mod access;
mod blocking;
pub mod check;
mod circuit_name;
pub mod client;
pub mod cluster;
mod daemon;
pub mod http;
pub mod intake;
mod jobs;
pub mod life;
pub mod listen;
mod operator;
pub mod proxy;
mod reply;
mod request;
mod server;
mod service;
pub mod state;
mod status;
pub mod tls;
pub mod wire;
pub mod worker;

pub use daemon::SetLogLevel;
pub use request::decoder;
pub use server::{Hooks, ServeError, serve};
