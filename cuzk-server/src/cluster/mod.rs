//! The machines that prove together: the daemon and the workers, over `cuzk-cluster`.
//!
//! Not the protocol between them, which is `cuzk-cluster`'s. The invariant: two machines share
//! work only on circuits of equal [`identity`].
//!
//! # Reading order
//!
//! * [`settings`]: the configuration, as the transport takes it.
//! * [`identity`]: the circuits that this machine has parameters for, as others know them.
//! * [`Place`]: the daemon's side, over a table of the partitions that other machines may prove.
//! * [`prover`]: an engine that proves the partitions of others.

mod home;
pub mod identity;
mod inputs;
mod place;
pub mod prover;
pub mod settings;
mod status;
mod table;

pub use place::Place;
pub use status::{ClusterStatus, NodeStatus};
