//! The daemon's life: how it tells systemd how it stands, how it reloads, and how it stops.
//!
//! Not the server, which is known here by small traits only. The invariant: nothing here
//! ends a job. A watchdog that is not pinged ends the process, and the journal keeps its jobs.

pub mod notify;
pub mod reload;
pub mod signals;
pub mod stopping;
pub mod watchdog;
