//! Listeners, access and the budget, together under a real service and real clients.

#![allow(clippy::unwrap_used, reason = "a failure in a test fails the test")]

mod handed;
mod message_size;
mod service;
mod trust;
