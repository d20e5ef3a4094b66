//! Proofs with some in flight: a number of callers that each ask again when theirs is made.
//!
//! It measures nothing and knows no engine. The invariant: no more than `j` calls run at a
//! time, and no more than `c` are made in all.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::failure::{Failure, failed};
use crate::threads::none_left;

/// Calls `prove` `c` times, at most `j` at a time, and returns what the calls returned.
///
/// # Errors
/// The first failure of a call, or a system without threads. Each caller stops at its own first failure.
pub(crate) fn in_flight<T: Send>(
    c: usize,
    j: usize,
    prove: impl Fn() -> Result<T, Failure> + Sync,
) -> Result<Vec<T>, Failure> {
    let begun = AtomicUsize::new(0);
    let caller = || {
        let mut made = Vec::new();
        while begun.fetch_add(1, Ordering::Relaxed) < c {
            made.push(prove()?);
        }
        Ok::<_, Failure>(made)
    };
    thread::scope(|scope| {
        let mut callers = Vec::new();
        for _ in 0..j.min(c) {
            let started = thread::Builder::new().spawn_scoped(scope, caller);
            callers.push(started.map_err(|error| none_left(&error))?);
        }
        let mut made = Vec::with_capacity(c);
        for caller in callers {
            made.extend(caller.join().unwrap_or_else(|_| {
                Err(failed(
                    "a thread that asks for proofs panicked; please report it",
                ))
            })?);
        }
        Ok(made)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calls_are_counted_and_bounded() {
        let (running, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let numbers = AtomicUsize::new(0);
        let made = in_flight(20, 3, || {
            most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            thread::yield_now();
            running.fetch_sub(1, Ordering::SeqCst);
            Ok(numbers.fetch_add(1, Ordering::SeqCst))
        });
        let mut made = made.expect("no call fails");
        made.sort_unstable();
        assert_eq!(made, (0..20).collect::<Vec<_>>());
        assert!(most.load(Ordering::SeqCst) <= 3);
    }

    #[test]
    fn a_failure_is_the_result() {
        let made = in_flight(4, 2, || Err::<(), _>(failed("no proof")));
        assert!(made.is_err());
    }
}
