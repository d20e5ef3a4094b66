//! The machine as it describes itself: files of the system, and GPUs.
//!
//! Not a judgement, which is the doctor's. The invariant: a file that cannot be read is a
//! value that is not there.

pub(crate) mod nvidia;
pub(crate) mod system;

use cuzk_tune::machine::Host;
use serde::Serialize;

/// A row of a result as an object, which has the machine that reports it under `machine`.
#[derive(Serialize)]
pub(crate) struct OnMachine<'a, R> {
    #[serde(flatten)]
    pub(crate) row: &'a R,
    pub(crate) machine: &'a Host,
}
