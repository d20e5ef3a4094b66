//! Working memory that tasks hand on to each other.
//!
//! Tasks of a parallel loop each need some, but only as many at a time as there
//! are threads. The invariant: a value belongs to one task at a time.

use std::sync::{Mutex, PoisonError};

/// Values that no task uses at the moment.
pub(crate) struct Spares<T>(Mutex<Vec<T>>);

impl<T> Default for Spares<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Default> Spares<T> {
    /// Runs a task with a value, which is as the task before left it.
    pub(crate) fn with<R>(&self, task: impl FnOnce(&mut T) -> R) -> R {
        let spare = self.lock().pop();
        let mut value = spare.unwrap_or_default();
        let result = task(&mut value);
        self.lock().push(value);
        result
    }

    // Every change under the lock leaves a list of values.
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rayon::prelude::*;

    #[test]
    fn there_are_no_more_than_tasks_at_a_time() {
        let spares = Spares::<Vec<usize>>::default();
        (0..1000_usize).into_par_iter().for_each(|task| {
            spares.with(|tasks| tasks.push(task));
        });
        let values = spares.0.into_inner().unwrap();
        assert!((1..=rayon::current_num_threads()).contains(&values.len()));
        let mut tasks = values.concat();
        tasks.sort_unstable();
        assert!(tasks.iter().copied().eq(0..1000));
    }
}
