//! The surroundings of a writer: its instructions, its memory and its checkpoint.
//!
//! Invariant: a writer stops between two pieces that one thread writes. A partition has ten
//! such pieces or more.

use std::fmt;

use cuzk_kernels::Isa;
use cuzk_memory::{ArrayMemory, Checkpoint, NEVER_STOP, Stopped};

/// How a writer works. An [`Isa`] converts into a context in which nothing stops the writer,
/// and the witness is on the heap.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The instructions of the writer's hashes.
    pub isa: Isa,
    /// The memory of the witness.
    pub memory: &'a ArrayMemory,
    /// Pauses or stops the writer, on every thread of the current pool. All of them may be
    /// blocked at once.
    pub checkpoint: &'a Checkpoint<'a>,
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
            memory: &ArrayMemory::HEAP,
            checkpoint: &NEVER_STOP,
        }
    }
}

impl Context<'_> {
    /// Passes the checkpoint.
    ///
    /// # Errors
    /// [`Stopped`].
    pub(crate) fn check(&self) -> Result<(), Stopped> {
        self.checkpoint.check()
    }
}
