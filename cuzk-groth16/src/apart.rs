//! Work of rayon, for threads that hold something.
//!
//! A thread of a pool that waits for rayon begins other jobs of its pool meanwhile, also if it
//! waits for another pool. If it holds a lock, and such a job wants that lock, the thread waits
//! for itself and never ends. A value that is being made once, a place in a limited number of
//! them, and reserved memory are locks as well.
//!
//! Here a thread waits for another pool and begins nothing meanwhile. Not for work of the
//! caller's own pool: it would need a thread of the pool while others may stand still. The
//! invariant of this crate and of the engine: a thread that holds a lock waits for rayon by
//! these functions only.

use std::io;
use std::panic::resume_unwind;
use std::thread;

use rayon::{ThreadPool, ThreadPoolBuilder};

/// The system has no more threads.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot start {threads} thread{s}: {source}; raise the limit of this user's processes \
     (ulimit -u), or of the control group's (pids.max)",
    s = if *threads == 1 { "" } else { "s" }
)]
pub struct NoThreads {
    /// Threads asked for.
    pub threads: usize,
    /// Why.
    pub source: io::Error,
}

/// Runs `work` in `pool`, as [`ThreadPool::install`]. The caller begins nothing else meanwhile,
/// if it does not belong to `pool`. A panic of `work` is the caller's.
///
/// A caller that belongs to `pool` runs `work` itself, and may begin other jobs of the pool. So
/// these must not want what it holds.
///
/// # Errors
/// [`NoThreads`], if the caller belongs to another pool: it waits for a new thread.
pub fn install<T: Send>(
    pool: &ThreadPool,
    work: impl FnOnce() -> T + Send,
) -> Result<T, NoThreads> {
    let is_of_a_pool = rayon::current_thread_index().is_some();
    if !is_of_a_pool || pool.current_thread_index().is_some() {
        return Ok(pool.install(work));
    }
    thread::scope(|scope| {
        let named = thread::Builder::new().name("cuzk-apart".to_owned());
        let waiting = named.spawn_scoped(scope, || pool.install(work));
        let waiting = waiting.map_err(|source| NoThreads { threads: 1, source })?;
        Ok(waiting.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}

/// Runs `work` on so many new threads, which are named after `name`. They have no other work,
/// so `work` waits for nobody. The caller begins nothing else meanwhile, whatever pool it
/// belongs to. A panic of `work` is the caller's.
///
/// # Errors
/// [`NoThreads`].
pub fn on_new_threads<T: Send>(
    name: &'static str,
    threads: usize,
    work: impl FnOnce() -> T + Send,
) -> Result<T, NoThreads> {
    let builder = ThreadPoolBuilder::new().num_threads(threads);
    let named = builder.thread_name(move |index| format!("cuzk-{name}-{index}"));
    let pool = named.build().map_err(|error| NoThreads {
        threads,
        source: io::Error::other(error),
    })?;
    install(&pool, work)
}

/// Returns the number of threads of the caller's pool; outside of a pool, those that the system
/// offers. It starts no thread, which the number of rayon's global pool would.
pub(crate) fn current_threads() -> usize {
    match rayon::current_thread_index() {
        Some(_) => rayon::current_num_threads(),
        None => thread::available_parallelism().map_or(1, usize::from),
    }
}

/// Runs `work` on as many new threads as `pool` has. The pool's own threads may all stand still
/// for urgent work, and that work may be waiting for this. They run it only if the system has
/// no other threads.
///
/// # Errors
/// [`NoThreads`], as [`install`].
pub(crate) fn on_threads_like<T: Send>(
    pool: &ThreadPool,
    name: &'static str,
    work: impl Fn() -> T + Sync,
) -> Result<T, NoThreads> {
    on_new_threads(name, pool.current_num_threads(), &work).or_else(|_| install(pool, &work))
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn pool() -> ThreadPool {
        ThreadPoolBuilder::new().num_threads(1).build().unwrap()
    }

    /// Returns the number of other jobs of its pool that a thread has begun after `waits`.
    fn begun_after(waits: impl FnOnce() + Send) -> usize {
        let begun = Arc::new(AtomicUsize::new(0));
        let other = Arc::clone(&begun);
        pool().install(|| {
            rayon::spawn(move || {
                other.fetch_add(1, Ordering::Relaxed);
            });
            waits();
            begun.load(Ordering::Relaxed)
        })
    }

    #[test]
    fn a_thread_that_waits_begins_nothing_else_of_its_pool() {
        let other = pool();
        // Without the function, rayon begins the other job.
        assert_eq!(begun_after(|| other.install(|| ())), 1);
        assert_eq!(begun_after(|| install(&other, || ()).unwrap()), 0);
        let on_new = || on_new_threads("test", 2, || ()).unwrap();
        assert_eq!(begun_after(on_new), 0);
        let like = || on_threads_like(&other, "test", || ()).unwrap();
        assert_eq!(begun_after(like), 0);
    }

    #[test]
    fn the_work_has_the_threads_that_are_asked_for() {
        let (first, second) = (pool(), pool());
        let index = || second.current_thread_index();
        assert_eq!(install(&second, index).unwrap(), Some(0));
        let from = |pool: &ThreadPool| pool.install(|| install(&second, index).unwrap());
        assert_eq!([from(&first), from(&second)], [Some(0); 2]);
        let name = || {
            let name = thread::current().name().map(str::to_owned);
            (name, rayon::current_num_threads())
        };
        for (name, threads) in [
            on_new_threads("test", 3, name).unwrap(),
            first.install(|| on_new_threads("test", 3, name).unwrap()),
        ] {
            assert!(name.unwrap().starts_with("cuzk-test-"));
            assert_eq!(threads, 3);
        }
        let like = on_threads_like(&first, "test", current_threads);
        assert_eq!((like.unwrap(), first.install(current_threads)), (1, 1));
        let cores = thread::available_parallelism().unwrap().get();
        assert_eq!(current_threads(), cores);
    }

    #[test]
    fn a_panic_is_the_callers() {
        let (first, second) = (pool(), pool());
        let panics = || -> u8 { panic!("as a test asks") };
        let caught = |work: &(dyn Fn() -> u8 + Sync)| {
            let panic = catch_unwind(AssertUnwindSafe(work)).unwrap_err();
            *panic.downcast::<&str>().unwrap()
        };
        let from_outside = || install(&second, panics).unwrap();
        let from_a_pool = || first.install(from_outside);
        assert_eq!(caught(&from_outside), "as a test asks");
        assert_eq!(caught(&from_a_pool), "as a test asks");
    }

    #[test]
    fn a_lack_of_threads_names_the_limit() {
        let source = io::ErrorKind::WouldBlock.into();
        let told = NoThreads { threads: 7, source }.to_string();
        assert!(told.starts_with("cannot start 7 threads: "), "{told}");
        assert!(told.contains("ulimit -u"), "{told}");
    }
}
