//! Working memory that tasks hand on to each other.
//!
//! Tasks of a parallel loop each need some, but only as many at a time as there
//! are threads. The invariant: a value belongs to one task at a time.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Values that no task uses at the moment.
pub(crate) struct Spares<T>(Mutex<Vec<T>>);

impl<T> Spares<T> {
    /// One for each thread.
    pub(crate) fn of(values: Vec<T>) -> Self {
        Self(Mutex::new(values))
    }

    /// Runs a task with a value, which is as the task before left it. If more tasks run at
    /// a time than there are values, the task has none.
    pub(crate) fn with<R>(&self, task: impl FnOnce(Option<&mut T>) -> R) -> R {
        let mut spare = self.lock().pop();
        let result = task(spare.as_mut());
        self.lock().extend(spare);
        result
    }

    // Every change under the lock leaves a list of values.
    fn lock(&self) -> MutexGuard<'_, Vec<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rayon::prelude::*;

    #[test]
    fn one_for_each_thread_is_enough() {
        let spares = Spares::of(vec![Vec::new(); rayon::current_num_threads()]);
        (0..1000_usize).into_par_iter().for_each(|task| {
            spares.with(|tasks| tasks.unwrap().push(task));
        });
        let mut tasks = spares.0.into_inner().unwrap().concat();
        tasks.sort_unstable();
        assert!(tasks.iter().copied().eq(0..1000));
    }

    #[test]
    fn more_tasks_than_values_have_none() {
        let spares = Spares::of(vec![1]);
        spares.with(|first| {
            assert_eq!(first, Some(&mut 1));
            spares.with(|second| assert_eq!(second, None));
        });
        spares.with(|first| assert_eq!(first, Some(&mut 1)));
    }
}
