//! Where the tasks of a transform have their rows.
//!
//! A task copies some columns of a transform together. They fit a second-level cache, and
//! tasks hand the memory on to each other. The caller of the transform lends it, for all
//! threads at once. Invariant: rows belong to one task at a time.

use crate::error::KernelError;
use crate::spares::Spares;
use cuzk_memory::{Lent, Memory, Plain};

/// The memory that is lent to the threads of a transform.
pub(crate) struct Area<'m, T> {
    memory: &'m dyn Memory,
    /// Values of a task.
    len: usize,
    values: Lent<'m, T>,
}

impl<'m, T: Plain> Area<'m, T> {
    /// `len` values for each of the threads.
    ///
    /// # Errors
    /// [`KernelError::Memory`].
    pub(crate) fn take(memory: &'m dyn Memory, len: usize) -> Result<Self, KernelError> {
        let values = Lent::take(memory, len * rayon::current_num_threads())?;
        Ok(Self {
            memory,
            len,
            values,
        })
    }

    pub(crate) fn rows(&mut self) -> Rows<'_, T> {
        let values = self.values.chunks_mut(self.len.max(1));
        Rows {
            memory: self.memory,
            len: self.len,
            spares: Spares::of(values.collect()),
        }
    }
}

/// The rows of all tasks.
pub(crate) struct Rows<'a, T> {
    memory: &'a dyn Memory,
    len: usize,
    spares: Spares<&'a mut [T]>,
}

impl<T: Plain> Rows<'_, T> {
    /// Runs a task with rows, whatever is in them.
    ///
    /// # Errors
    /// [`KernelError::Memory`] where there are more tasks at a time than threads.
    pub(crate) fn with<R>(&self, task: impl FnOnce(&mut [T]) -> R) -> Result<R, KernelError> {
        self.spares.with(|rows| match rows {
            Some(rows) => Ok(task(rows)),
            None => Ok(task(&mut Lent::take(self.memory, self.len)?)),
        })
    }
}
