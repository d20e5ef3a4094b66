//! Jobs of a pool that may wait for one another.

use std::sync::mpsc::channel;
use std::time::Duration;

use rayon::ThreadPoolBuilder;
use rayon::prelude::*;

/// For jobs that take moments unless they never end, also where other programs have the cores.
const MOMENTS: Duration = Duration::from_secs(600);

/// Runs jobs in a pool that has one thread, and returns their results. While a job waits for
/// rayon, the thread begins the next one.
///
/// # Panics
/// If a job panics. If the jobs have not ended after ten minutes: then one holds something that
/// the next one, on the same thread, waits for.
pub fn jobs_of_one_thread<T: Send + 'static>(
    count: usize,
    job: impl Fn(usize) -> T + Send + Sync + 'static,
) -> Vec<T> {
    let builder = ThreadPoolBuilder::new().num_threads(1);
    let pool = builder.panic_handler(|_| ()).build().unwrap();
    let (send, ended) = channel();
    pool.spawn(move || {
        let jobs = (0..count).into_par_iter().with_max_len(1);
        let results: Vec<T> = jobs.map(job).collect();
        drop(send.send(results));
    });
    let results = ended.recv_timeout(MOMENTS);
    assert!(results.is_ok(), "a job waits for itself, or panicked");
    results.unwrap()
}
