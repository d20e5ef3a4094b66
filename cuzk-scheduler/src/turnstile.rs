//! A limit on the number of threads that do one thing at a time, the most urgent first.
//!
//! This is not a pool: each thread that enters works on its own. The invariants: at
//! most the capacity is inside, not counting critical threads, which never wait. Of the
//! waiting threads the most urgent one is next.

use std::collections::BTreeSet;
use std::fmt;

use crate::priority::Rank;
use crate::sync::{Condvar, Mutex, lock, wait};

/// Lets a limited number of threads inside.
pub struct Turnstile {
    capacity: usize,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    inside: usize,
    waiting: BTreeSet<(Rank, u64)>,
    next_sequence: u64,
}

impl fmt::Debug for Turnstile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turnstile")
            .field("capacity", &self.capacity)
            .finish_non_exhaustive()
    }
}

/// The right to be inside, until this is dropped.
#[derive(Debug)]
pub struct Inside<'a> {
    turnstile: &'a Turnstile,
    counted: bool,
}

impl Turnstile {
    /// Returns a turnstile for `capacity` threads at a time, and at least one.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        let state = State {
            inside: 0,
            waiting: BTreeSet::new(),
            next_sequence: 0,
        };
        Self {
            capacity: capacity.max(1),
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    /// Waits for the turn of `rank`. Critical work does not wait.
    #[must_use]
    pub fn enter(&self, rank: Rank) -> Inside<'_> {
        if rank.is_critical() {
            return Inside {
                turnstile: self,
                counted: false,
            };
        }
        let mut state = lock(&self.state);
        let place = (rank, state.next_sequence);
        state.next_sequence += 1;
        state.waiting.insert(place);
        while state.inside == self.capacity || state.waiting.first() != Some(&place) {
            state = wait(&self.changed, state);
        }
        state.waiting.remove(&place);
        state.inside += 1;
        drop(state);
        // The next waiting thread may fit as well.
        self.changed.notify_all();
        Inside {
            turnstile: self,
            counted: true,
        }
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        if self.counted {
            lock(&self.turnstile.state).inside -= 1;
            self.turnstile.changed.notify_all();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Mutex;
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::priority::{Patience, Priority};

    #[test]
    fn the_most_urgent_of_those_who_wait_is_next_and_the_critical_never_wait() {
        let turnstile = Turnstile::new(1);
        let patience = Patience {
            normal: Duration::from_secs(60),
            low: Duration::from_secs(600),
        };
        let rank = |priority| Rank::new(priority, Instant::now(), 0, patience);
        let order = Mutex::new(Vec::new());
        let inside = turnstile.enter(rank(Priority::Low));
        drop(turnstile.enter(rank(Priority::Critical)));
        thread::scope(|scope| {
            for priority in [Priority::Low, Priority::Normal, Priority::High] {
                let (turnstile, order) = (&turnstile, &order);
                let rank = rank(priority);
                scope.spawn(move || {
                    let _inside = turnstile.enter(rank);
                    order.lock().unwrap().push(priority);
                });
            }
            while lock(&turnstile.state).waiting.len() < 3 {
                thread::yield_now();
            }
            drop(inside);
        });
        let expected = [Priority::High, Priority::Normal, Priority::Low];
        assert_eq!(order.into_inner().unwrap(), expected);
        assert_eq!(lock(&turnstile.state).inside, 0, "all have left");
    }

    /// Each has a place of its own.
    #[test]
    fn all_of_one_rank_get_in() {
        let turnstile = Turnstile::new(1);
        let patience = Patience {
            normal: Duration::ZERO,
            low: Duration::ZERO,
        };
        let rank = Rank::new(Priority::Normal, Instant::now(), 0, patience);
        let inside = turnstile.enter(rank);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| drop(turnstile.enter(rank)));
            }
            while lock(&turnstile.state).waiting.len() < 2 {
                thread::yield_now();
            }
            drop(inside);
        });
        assert!(lock(&turnstile.state).waiting.is_empty());
    }
}
