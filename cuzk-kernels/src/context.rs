//! The surroundings of a kernel: its instructions, its checkpoint and its memory.

use cuzk_memory::{Checkpoint, Mapped, Memory, NEVER_STOP};

use crate::error::KernelError;
use crate::isa::Isa;

/// How a kernel runs.
///
/// A kernel passes the checkpoint on every thread that computes, between pieces of work that
/// take a thread a millisecond or a few. It holds no lock there, because other kernels may
/// run meanwhile, on another pool. A stopped kernel returns [`KernelError::Stopped`].
///
/// An [`Isa`] converts into a context in which nothing stops the kernel, and memory is mapped
/// for each call.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The instructions that the kernel uses.
    pub isa: Isa,
    /// Pauses or stops the kernel.
    pub checkpoint: &'a Checkpoint<'a>,
    /// The source of large working memory.
    pub memory: &'a dyn Memory,
}

impl Context<'_> {
    /// Passes the checkpoint.
    ///
    /// # Errors
    /// [`KernelError::Stopped`].
    #[inline]
    pub(crate) fn check(&self) -> Result<(), KernelError> {
        Ok(self.checkpoint.check()?)
    }
}

impl From<Isa> for Context<'_> {
    fn from(isa: Isa) -> Self {
        Context {
            isa,
            checkpoint: &NEVER_STOP,
            memory: &Mapped,
        }
    }
}

impl std::fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context")
            .field("isa", &self.isa)
            .finish_non_exhaustive()
    }
}
