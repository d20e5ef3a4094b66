//! How a writer works: with which instructions, in which memory, and how long.
//!
//! The invariant: where a writer is stopped is between pieces that one thread writes, of
//! which a partition has ten or more.

use std::fmt;

use cuzk_kernels::{Checkpoint, Isa, Unhindered};
use cuzk_pce::WitnessMemory;

use crate::error::WriteError;

/// How a writer works. An [`Isa`] is one that nothing hinders, and that writes to the
/// heap.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The instructions of its hashes.
    pub isa: Isa,
    /// Where the witness goes.
    pub memory: &'a WitnessMemory,
    /// What may pause or stop it: asked on every thread of the current pool, which may
    /// all be blocked in there.
    pub checkpoint: &'a dyn Checkpoint,
}

impl fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("isa", &self.isa)
            .finish_non_exhaustive()
    }
}

impl From<Isa> for Context<'_> {
    fn from(isa: Isa) -> Self {
        Context {
            isa,
            memory: &WitnessMemory::HEAP,
            checkpoint: &Unhindered,
        }
    }
}

impl Context<'_> {
    /// # Errors
    /// [`WriteError::Stopped`].
    pub(crate) fn pass(&self) -> Result<(), WriteError> {
        if self.checkpoint.pass() {
            Ok(())
        } else {
            Err(WriteError::Stopped)
        }
    }
}
