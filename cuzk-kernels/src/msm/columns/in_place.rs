//! Additions of points to others of the same slice.
//!
//! The kernel's additions read another slice than the one that they change. So the points
//! that are added are copied first, a batch of them at a time.

use crate::affine::{Addition, BATCH, Kernel};
use crate::error::KernelError;
use cuzk_memory::Checkpoint;

/// Additions in preparation.
pub(super) struct InPlace<'w, K: Kernel> {
    pub(super) kernel: K,
    /// [`BATCH`] points, whatever they are.
    pub(super) sources: &'w mut [K::Point],
    /// [`Kernel::STEPS`], whatever they are.
    pub(super) steps: &'w mut [K::Step],
    /// None, with room for [`BATCH`].
    pub(super) additions: &'w mut Vec<Addition>,
    pub(super) checkpoint: &'w Checkpoint<'w>,
}

impl<K: Kernel> InPlace<'_, K> {
    /// Adds a point of `points` to another one, now or in [`InPlace::finish`]. Neither is
    /// part of another addition before that.
    ///
    /// # Errors
    /// [`KernelError::Stopped`].
    pub(super) fn add(
        &mut self,
        points: &mut [K::Point],
        (target, source): (usize, usize),
    ) -> Result<(), KernelError> {
        let place = self.additions.len();
        self.sources[place] = points[source];
        self.additions.push(Addition::new(target, place, false));
        if place + 1 == BATCH {
            self.finish(points)?;
        }
        Ok(())
    }

    /// Carries out all that was added.
    ///
    /// # Errors
    /// [`KernelError::Stopped`].
    pub(super) fn finish(&mut self, points: &mut [K::Point]) -> Result<(), KernelError> {
        self.kernel
            .accumulate(points, self.sources, self.additions, self.steps);
        self.additions.clear();
        Ok(self.checkpoint.check()?)
    }
}
