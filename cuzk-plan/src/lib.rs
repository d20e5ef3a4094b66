//! A discrete-event model of the proving pipeline, which predicts what machines will do.
//!
//! This is not an engine: nothing is proved here, and no time passes. A partition is a
//! list of stages, and each stage has the time that it takes alone. The order of work
//! and its memory are decided by the real code of [`cuzk_scheduler`], over simulated
//! time. The invariants:
//!
//! * The model knows no result. All that it knows are costs, sizes and capacities.
//! * A run depends on its inputs only. The seed of a load is one of them.
//! * No input makes it panic. A bad file is an error that names the file and the key.
//!
//! # Reading order
//!
//! * [`kind`]: the circuits, by their numbers of constraints.
//! * [`machine`] and [`costs`]: a machine's description, from a file.
//! * [`recipe`]: the stages of a partition on a machine.
//! * [`contention`]: how much stages slow each other.
//! * [`activity`]: the stages that run, and the next one to end.
//! * [`run`] and [`outcome`]: the question and the answer.
//! * [`pipeline`]: workers, queues, locks and memory.
//! * [`capacity`], [`load`] and [`fleet`]: one machine, and many under a load.
//! * [`report`]: the answers.
//! * [`seed`]: the published measurements that the model is held against.

#![forbid(unsafe_code)]

pub mod activity;
pub mod capacity;
pub mod contention;
pub mod costs;
mod devices;
mod entrance;
mod error;
pub mod fleet;
mod freeing;
pub mod kind;
mod line;
pub mod load;
pub mod machine;
pub mod outcome;
pub mod picture;
pub mod pipeline;
pub mod recipe;
pub mod report;
pub mod run;
pub mod seed;
mod slots;
mod table;
mod units;

pub use error::PlanError;
