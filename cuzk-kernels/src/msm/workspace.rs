//! The working memory of the threads of an MSM.
//!
//! A task of an MSM needs points and a batch of its own. Only as many tasks run at a time
//! as there are threads, so tasks hand these on to each other. The caller of the MSM lends
//! the large memory, for all threads at once and before the first task. Lists of numbers
//! are on the heap. Invariant: a workspace belongs to one task at a time.

use super::batch::{Batch, TERMS_MAX};
use super::collapse::points_for;
use super::sorted::Sorted;
use crate::affine::{Addition, Kernel};
use crate::error::KernelError;
use crate::spares::Spares;
use cuzk_memory::{Lent, Memory};

/// Points of a workspace: with the steps of a batch they fit a second-level cache in G1.
pub(super) const POINTS: usize = points_for(TERMS_MAX);

/// Half of them, that the other half is added to.
pub(super) const SUMS: usize = POINTS / 2;

/// The memory that is lent to the threads of an MSM.
pub(super) struct Area<'m, K: Kernel> {
    memory: &'m dyn Memory,
    steps: Lent<'m, K::Step>,
    points: Lent<'m, K::Point>,
}

impl<'m, K: Kernel> Area<'m, K> {
    /// Enough for so many threads.
    ///
    /// # Errors
    /// [`KernelError::Memory`].
    pub(super) fn take(memory: &'m dyn Memory, threads: usize) -> Result<Self, KernelError> {
        Ok(Self {
            memory,
            steps: Lent::take(memory, threads * K::STEPS)?,
            points: Lent::take(memory, threads * POINTS)?,
        })
    }

    /// Bytes of the blocks that it takes.
    pub(super) fn blocks(threads: usize) -> [usize; 2] {
        [
            threads * K::STEPS * size_of::<K::Step>(),
            threads * POINTS * size_of::<K::Point>(),
        ]
    }

    /// Cut into workspaces, one a thread.
    pub(super) fn workspaces(&mut self) -> Workspaces<'_, K> {
        let steps = self.steps.chunks_mut(K::STEPS);
        let points = self.points.chunks_mut(POINTS);
        let workspaces = steps.zip(points).map(Workspace::new);
        Workspaces {
            memory: self.memory,
            spares: Spares::of(workspaces.collect()),
        }
    }
}

/// The workspaces of an MSM.
pub(super) struct Workspaces<'a, K: Kernel> {
    memory: &'a dyn Memory,
    spares: Spares<Workspace<'a, K>>,
}

impl<K: Kernel> Workspaces<'_, K> {
    /// Runs a task with a workspace, which is as the task before left it.
    ///
    /// # Errors
    /// The task's, and [`KernelError::Memory`] where there are more tasks at a time than
    /// threads.
    pub(super) fn with<R>(
        &self,
        task: impl FnOnce(&mut Workspace<'_, K>) -> Result<R, KernelError>,
    ) -> Result<R, KernelError> {
        self.spares.with(|workspace| match workspace {
            Some(workspace) => task(workspace),
            None => {
                let mut area = Area::<K>::take(self.memory, 1)?;
                task(&mut Workspace::new((&mut area.steps, &mut area.points)))
            }
        })
    }
}

/// The working memory of one task.
pub(super) struct Workspace<'a, K: Kernel> {
    pub(super) scratch: Scratch<'a, K>,
    pub(super) batch: Batch,
    pub(super) sorted: Sorted,
}

/// Where points are added to each other.
pub(super) struct Scratch<'a, K: Kernel> {
    /// [`Kernel::STEPS`], whatever they are.
    pub(super) steps: &'a mut [K::Step],
    /// [`POINTS`], whatever they are.
    pub(super) points: &'a mut [K::Point],
    /// `i += i` for i below [`SUMS`].
    pub(super) pairs: Vec<Addition>,
}

impl<'a, K: Kernel> Workspace<'a, K> {
    fn new((steps, points): (&'a mut [K::Step], &'a mut [K::Point])) -> Self {
        let pairs = (0..SUMS).map(|i| Addition::new(i, i, false)).collect();
        Self {
            scratch: Scratch {
                steps,
                points,
                pairs,
            },
            batch: Batch::default(),
            sorted: Sorted::default(),
        }
    }
}

/// The bytes that a workspace has on the heap, without the marks of a set's buckets.
pub(super) const HEAP_BYTES: usize =
    SUMS * size_of::<Addition>() + Batch::HEAP_BYTES + Sorted::HEAP_BYTES;
