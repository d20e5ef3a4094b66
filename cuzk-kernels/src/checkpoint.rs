//! Where a long computation can be paused, or stopped.
//!
//! Kernels look at a [`Checkpoint`] between pieces of work that take a thread
//! a millisecond or a few. They hold no lock there, so that whoever pauses
//! them may run other kernels meanwhile, on another pool.

use crate::error::KernelError;
use crate::isa::Isa;
use crate::memory::{Mapped, Memory};

/// Asked by a kernel, again and again, whether it may go on.
pub trait Checkpoint: Sync {
    /// Called on every thread that computes, between pieces of its work.
    ///
    /// May block while something more urgent runs, on threads of another pool
    /// than the current one, whose threads may all be blocked in here. `false`
    /// stops the kernel, which then returns [`KernelError::Stopped`].
    fn pass(&self) -> bool;
}

/// Nothing pauses or stops the kernel.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unhindered;

impl Checkpoint for Unhindered {
    #[inline]
    fn pass(&self) -> bool {
        true
    }
}

impl dyn Checkpoint + '_ {
    /// # Errors
    /// [`KernelError::Stopped`].
    #[inline]
    pub(crate) fn check(&self) -> Result<(), KernelError> {
        if self.pass() {
            Ok(())
        } else {
            Err(KernelError::Stopped)
        }
    }
}

/// How a kernel runs. An [`Isa`] is one that nothing hinders, and whose memory is
/// mapped for it.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The instructions it uses.
    pub isa: Isa,
    /// What may pause or stop it.
    pub checkpoint: &'a dyn Checkpoint,
    /// Where large working memory comes from.
    pub memory: &'a dyn Memory,
}

impl Context<'_> {
    /// # Errors
    /// [`KernelError::Stopped`].
    #[inline]
    pub(crate) fn check(&self) -> Result<(), KernelError> {
        self.checkpoint.check()
    }
}

impl From<Isa> for Context<'_> {
    fn from(isa: Isa) -> Self {
        Context {
            isa,
            checkpoint: &Unhindered,
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
