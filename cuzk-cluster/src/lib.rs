//! The partitions of proving jobs, shared among machines, so that each one ends once.
//!
//! One daemon accepts a job and owns its partitions. Any number of workers prove them. This
//! crate is not an engine: it proves nothing, verifies nothing and keeps no journal. Its core
//! consists of state machines without threads, sockets or a clock. A caller tells them what
//! happened and at which time, and carries out the actions that they return.
//!
//! The invariants:
//!
//! * The owner's ledger is the truth. The stream between the machines only carries work, so a
//!   stream that is lost costs work and loses no partition.
//! * A partition ends once. Its first verified proof counts, and later ones are dropped.
//! * A proof of another machine is an answer only after the owner has verified it.
//! * Machines of different versions never share work, because the subject has the schema and
//!   the circuit's fingerprint.
//! * No message makes a machine panic, or takes more memory than its bound.
//!
//! # Reading order
//!
//! * [`name`], [`subject`] and [`message`]: what the machines say to each other.
//! * [`ledger`]: the partitions of the owner, from the offer to the end.
//! * [`worker`]: which work a worker pulls, and when.
//! * [`leases`]: which leases a worker keeps.
//! * [`nats`]: the transport, which carries out what these decide. [`runtime`]: its threads.

#![forbid(unsafe_code)]

pub mod leases;
pub mod ledger;
pub mod message;
pub mod name;
pub mod nats;
pub mod runtime;
pub mod subject;
pub mod worker;
