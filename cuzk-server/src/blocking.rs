//! Work of a call that may block, on a thread of its own.
//!
//! Not tokio's pool for such work, which panics where the system gives it no thread. The
//! invariants: a thread that is not to be had is an error of the call. At most
//! [`THREADS_MAX`] threads work for calls that wait for a place.

use std::io;

use cuzk_cluster::runtime;
use cuzk_core::Error;
use tokio::sync::Semaphore;

/// The most calls that have a thread and a place.
const THREADS_MAX: usize = 128;

static PLACES: Semaphore = Semaphore::const_new(THREADS_MAX);

/// Runs `work` on a thread of its own, once one of the places is free. A call that is dropped
/// meanwhile keeps its place until `work` ends.
///
/// # Errors
/// The system has no threads left, or `work` panicked.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> cuzk_core::Result<T> {
    let place = PLACES.acquire().await;
    blocking_at_once(move || {
        let done = work();
        drop(place);
        done
    })
    .await
}

/// Runs `work` on a thread of its own without a place: for submissions, which have places of their
/// own. A WinningPoSt waits for none, so only connections and their streams bound its threads.
///
/// # Errors
/// As [`blocking`].
pub(crate) async fn blocking_at_once<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> cuzk_core::Result<T> {
    let done = runtime::apart("cuzk-call", work).await;
    done.map_err(explained)
}

/// Only an error of the system has a number.
fn explained(error: io::Error) -> Error {
    match error.raw_os_error() {
        Some(_) => Error::no_thread(error),
        None => Error::Internal {
            stage: "a call",
            problem: error.to_string(),
        },
    }
}

#[cfg(test)]
mod tests {
    use cuzk_bounded::bounded;
    use cuzk_core::error::ErrorCode;

    use super::*;

    /// "Resource temporarily unavailable", which Linux says where a user has no thread left.
    const EAGAIN: i32 = 11;

    #[test]
    fn no_thread_and_a_panic_are_different_errors() {
        let of_system = explained(io::Error::from_raw_os_error(EAGAIN));
        assert_eq!(ErrorCode::of(&of_system), ErrorCode::Threads);
        let runtime = runtime::without_threads().unwrap();
        let panics = blocking::<()>(|| std::panic::resume_unwind(Box::new("for the test")));
        let panicked = bounded(|| runtime.block_on(panics)).unwrap_err();
        assert_eq!(ErrorCode::of(&panicked), ErrorCode::Internal);
    }

    /// More calls panic than there are places, so a panic gives its place back.
    #[test]
    fn more_calls_than_places_end() {
        let runtime = runtime::start("cuzk-test", 1).unwrap();
        let work = |panics: bool| {
            move || {
                if panics {
                    // No hook writes that it panics.
                    std::panic::resume_unwind(Box::new("for the test"));
                }
            }
        };
        bounded(|| {
            runtime.block_on(async {
                let calls = (0..2 * THREADS_MAX + 10).map(|number| {
                    let panics = number % 2 == 1;
                    (panics, tokio::spawn(blocking(work(panics))))
                });
                for (panics, call) in calls.collect::<Vec<_>>() {
                    assert_eq!(call.await.unwrap().is_err(), panics);
                }
            });
        });
    }
}
