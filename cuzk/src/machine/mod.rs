//! The machine as it describes itself: files of the system, and GPUs.
//!
//! Not a judgement, which is the doctor's. The invariant: a file that cannot be read is a
//! value that is not there.

pub(crate) mod nvidia;
pub(crate) mod system;
