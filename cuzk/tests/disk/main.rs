//! Commands and a daemon on a disk that is really full: a small file system in memory. Only the
//! command sees it, because it has mounts of its own.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failure in a test fails the test"
)]

mod commands;
#[path = "../common/mod.rs"]
mod common;
mod daemon;
mod fetch;
mod small_disk;
