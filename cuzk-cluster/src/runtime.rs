//! Runtimes of async code, on a system that may have no threads or file descriptors left.
//!
//! Not their tasks. The invariant: a thread or a descriptor that is not to be had is an error, and
//! no panic. Where tokio gets no thread, or no descriptor for signals, it panics. The threads that
//! it has started by then keep the process from ending.

use std::fs;
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

/// The threads of this process, each an entry.
const TASKS: &str = "/proc/self/task";

/// The pairs of descriptors that a runtime takes. Three descriptors are for its events, and three
/// for signals.
const DESCRIPTOR_PAIRS: usize = 3;

/// How often, and how far apart, the system is asked if the threads of the trial are gone.
const LOOKS: u32 = 100;
const LOOK_PAUSE: Duration = Duration::from_millis(1);

/// Starts a runtime with `workers` threads of that name.
///
/// # Errors
/// The system has no threads or no file descriptors left. A thread that another program starts at
/// the same moment can still take the last one, and so can a file that this process opens. Then
/// tokio panics.
pub fn start(name: &'static str, workers: usize) -> io::Result<Runtime> {
    try_descriptors()?;
    try_threads(workers)?;
    Builder::new_multi_thread()
        .worker_threads(workers)
        .thread_name(name)
        .enable_all()
        .build()
}

/// Returns a runtime without threads of its own. It runs on the thread that blocks on it.
///
/// # Errors
/// The system has no file descriptors left, as in [`start`].
pub fn without_threads() -> io::Result<Runtime> {
    try_descriptors()?;
    Builder::new_current_thread().enable_all().build()
}

/// Runs `work` on a thread of its own, which the runtime does not wait for. tokio panics where it
/// gets no thread for blocking work.
///
/// # Errors
/// The system has no threads left, or `work` panicked.
pub async fn apart<T: Send + 'static>(
    name: &'static str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    let (told, result) = oneshot::channel();
    let thread = thread::Builder::new().name(name.to_owned());
    thread.spawn(move || told.send(work()).is_ok())?;
    result
        .await
        .map_err(|_| io::Error::other(format!("the thread {name} panicked")))
}

/// Opens as many file descriptors as a runtime takes, and closes them again.
fn try_descriptors() -> io::Result<()> {
    let pairs = (0..DESCRIPTOR_PAIRS).map(|_| UnixStream::pair());
    pairs.collect::<io::Result<Vec<_>>>().map(drop)
}

/// Starts `count` threads at a time, and ends them again.
fn try_threads(count: usize) -> io::Result<()> {
    let before = tasks();
    let mut started = Vec::with_capacity(count);
    let all = (0..count).try_for_each(|_| {
        let (end, ended) = mpsc::channel::<()>();
        let thread = thread::Builder::new().name("cuzk-trial".to_owned());
        // It waits until the other end is dropped.
        let thread = thread.spawn(move || ended.recv().ok())?;
        started.push((end, thread));
        Ok(())
    });
    for (end, thread) in started {
        drop(end);
        // It cannot panic.
        thread.join().ok();
    }
    // The system counts a thread for a moment after it was joined.
    for _ in 0..LOOKS {
        if tasks() <= before {
            break;
        }
        thread::sleep(LOOK_PAUSE);
    }
    all
}

/// Returns the number of this process' threads; 0 on a system that does not list them.
fn tasks() -> usize {
    fs::read_dir(TASKS).map_or(0, Iterator::count)
}

#[cfg(test)]
mod tests {
    use cuzk_bounded::bounded;

    use super::*;

    #[test]
    fn a_runtime_has_its_threads_after_the_trial() {
        let runtime = start("cuzk-test", 2).unwrap();
        let task = async { thread::current().name().map(str::to_owned) };
        let name = bounded(|| runtime.block_on(runtime.spawn(task))).unwrap();
        assert_eq!(name.as_deref(), Some("cuzk-test"));
        try_threads(8).unwrap();
    }

    #[test]
    fn a_runtime_without_threads_runs_on_the_callers() {
        let runtime = without_threads().unwrap();
        let here = thread::current().id();
        let there = bounded(|| runtime.block_on(async { thread::current().id() }));
        assert_eq!(there, here);
    }

    #[test]
    fn work_apart_has_a_result_or_an_error() {
        let runtime = start("cuzk-test", 1).unwrap();
        let name = || thread::current().name().map(str::to_owned);
        let name = bounded(|| runtime.block_on(apart("cuzk-apart", name))).unwrap();
        assert_eq!(name.as_deref(), Some("cuzk-apart"));
        let panics = apart::<()>("cuzk-apart", || panic!("for the test"));
        let panicked = bounded(|| runtime.block_on(panics));
        let panicked = panicked.unwrap_err().to_string();
        assert_eq!(panicked, "the thread cuzk-apart panicked");
    }
}
