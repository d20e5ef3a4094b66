//! Two kinds of work at the same time.
//!
//! Each side has a quota. A side that has met its quota continues until the other has
//! met its own, so that neither is measured while it is alone. The invariant: a side
//! that fails ends both, and no thread is left behind.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// One kind of work, which can be repeated.
pub struct Side<'a, E> {
    quota: usize,
    work: &'a (dyn Fn() -> Result<(), E> + Sync),
    done: AtomicUsize,
    ended: AtomicBool,
}

impl<'a, E: Send> Side<'a, E> {
    /// Makes a side whose work must be done `quota` times, and at least once.
    pub fn new(quota: usize, work: &'a (dyn Fn() -> Result<(), E> + Sync)) -> Self {
        Side {
            quota: quota.max(1),
            work,
            done: AtomicUsize::new(0),
            ended: AtomicBool::new(false),
        }
    }

    fn is_done(&self) -> bool {
        self.done.load(Ordering::Relaxed) >= self.quota || self.ended.load(Ordering::Relaxed)
    }

    /// Works until both sides have met their quotas. Returns the mean time of a piece
    /// of work.
    fn repeat(&self, other: Option<&Self>) -> Result<Duration, E> {
        // The other side must not wait for this one after an error or a panic.
        let _ends = Ends(&self.ended);
        let start = Instant::now();
        let mut done = 0;
        while !(self.is_done() && other.is_none_or(Self::is_done)) {
            (self.work)()?;
            done += 1;
            self.done.fetch_add(1, Ordering::Relaxed);
        }
        Ok(start.elapsed() / done.max(1))
    }
}

struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Returns the mean time of a piece of work that has the machine to itself.
///
/// # Errors
/// The first error of the work.
pub fn alone<E: Send>(side: Side<'_, E>) -> Result<Duration, E> {
    side.repeat(None)
}

/// Returns the mean times of both sides' pieces of work, done at the same time. The
/// second side runs on the calling thread, the first on another.
///
/// # Errors
/// The first side's error, else the second's. `no_thread` makes the error of a system that has no
/// thread left.
pub fn beside<E: Send>(
    first: Side<'_, E>,
    second: Side<'_, E>,
    no_thread: impl FnOnce(io::Error) -> E,
) -> Result<[Duration; 2], E> {
    let (first, second) = (&first, &second);
    thread::scope(|scope| {
        let started = thread::Builder::new().spawn_scoped(scope, || first.repeat(Some(second)));
        let thread = started.map_err(no_thread)?;
        let second = second.repeat(Some(first));
        match thread.join() {
            Ok(first) => Ok([first?, second?]),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleep(count: &AtomicUsize, ms: u64) -> Result<(), ()> {
        count.fetch_add(1, Ordering::Relaxed);
        thread::sleep(Duration::from_millis(ms));
        Ok(())
    }

    #[test]
    fn the_faster_side_goes_on() {
        let (fast, slow) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let (fast_work, slow_work) = (|| sleep(&fast, 1), || sleep(&slow, 50));
        let [fast_time, slow_time] =
            beside(Side::new(1, &fast_work), Side::new(2, &slow_work), |_| ()).unwrap();
        assert_eq!(slow.into_inner(), 2);
        assert!(fast.into_inner() > 2);
        assert!(fast_time < slow_time && slow_time >= Duration::from_millis(50));
    }

    #[test]
    fn alone_does_its_quota() {
        let count = AtomicUsize::new(0);
        let work = || sleep(&count, 1);
        assert!(alone(Side::new(3, &work)).unwrap() >= Duration::from_millis(1));
        assert_eq!(count.into_inner(), 3);
    }

    #[test]
    fn a_side_that_fails_ends_both() {
        let count = AtomicUsize::new(0);
        let fails = || Err("as it must");
        let works = || sleep(&count, 1).map_err(|()| "never");
        let failing = beside(Side::new(1, &fails), Side::new(3, &works), |_| "never");
        assert_eq!(failing, Err("as it must"));
        let failing = beside(Side::new(3, &works), Side::new(1, &fails), |_| "never");
        assert_eq!(failing, Err("as it must"));
    }
}
