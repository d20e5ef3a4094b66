//! The machines that prove together: the daemon and the workers, over `cuzk-cluster`.
//!
//! Not the protocol between them, which is `cuzk-cluster`'s. The invariant: two machines share
//! work only on circuits of equal [`identity`].
//!
//! # Reading order
//!
//! * [`settings`]: the configuration, as the transport takes it.
//! * [`identity`]: the circuits that this machine has parameters for, as others know them.
//! * [`prover`]: an engine that proves the partitions of others.
//! * [`worker`]: a worker from its start to its end.

pub mod identity;
pub mod prover;
pub mod settings;
pub mod worker;
