//! The paths of the HTTP side, asked without a connection.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failure in a test fails the test"
)]

mod events;
mod made_up;
mod metrics;
mod mutated;
mod params;
mod paths;
mod readiness;
mod status;
