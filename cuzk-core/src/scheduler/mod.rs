//! How work waits: bounded queues between the stages.

pub mod queue;
