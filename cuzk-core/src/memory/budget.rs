//! Memory as something that is asked for before it is used.
//!
//! Not an allocator: it counts. The invariants: what is reserved and held never
//! exceeds the budget; a request that could never be met is an error at once,
//! not a wait; whoever waits holds nothing that others wait for, since a
//! partition reserves once, for all it will need.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// More memory than there can ever be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{needed_bytes} bytes of memory are needed and the budget leaves {available_bytes}; \
     raise [memory] total_budget, or use a machine with more memory"
)]
pub struct OverBudget {
    /// What was asked for.
    pub needed_bytes: u64,
    /// What there would be with nothing else running.
    pub available_bytes: u64,
}

/// The memory that the engine may use.
#[derive(Debug)]
pub struct Budget {
    total_bytes: u64,
    used: Mutex<Used>,
    freed: Condvar,
}

#[derive(Debug, Default)]
struct Used {
    /// For as long as the engine lives.
    held_bytes: u64,
    /// Until its reservation is dropped.
    reserved_bytes: u64,
}

/// Memory that may be used until this is dropped.
#[derive(Debug)]
pub struct Reservation {
    budget: Arc<Budget>,
    bytes: u64,
}

impl Budget {
    /// A budget of `total_bytes`.
    #[must_use]
    pub fn new(total_bytes: u64) -> Arc<Self> {
        Arc::new(Self {
            total_bytes,
            used: Mutex::default(),
            freed: Condvar::new(),
        })
    }

    /// Takes `bytes` for as long as the budget lives.
    ///
    /// # Errors
    /// [`OverBudget`] when what is already held leaves less.
    pub fn hold(&self, bytes: u64) -> Result<(), OverBudget> {
        let mut used = self.lock();
        self.check(&used, bytes)?;
        used.held_bytes += bytes;
        // Whoever waits may have to learn that it waits in vain.
        self.freed.notify_all();
        Ok(())
    }

    /// Waits until `bytes` are free, and takes them.
    ///
    /// # Errors
    /// [`OverBudget`] when they can never be.
    pub fn reserve(self: &Arc<Self>, bytes: u64) -> Result<Reservation, OverBudget> {
        let mut used = self.lock();
        loop {
            self.check(&used, bytes)?;
            if used.held_bytes + used.reserved_bytes + bytes <= self.total_bytes {
                used.reserved_bytes += bytes;
                let budget = Arc::clone(self);
                return Ok(Reservation { budget, bytes });
            }
            used = self
                .freed
                .wait(used)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// What is held and reserved now.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        let used = self.lock();
        used.held_bytes + used.reserved_bytes
    }

    /// What could be reserved now.
    #[must_use]
    pub fn free_bytes(&self) -> u64 {
        self.total_bytes.saturating_sub(self.used_bytes())
    }

    fn check(&self, used: &Used, bytes: u64) -> Result<(), OverBudget> {
        let available_bytes = self.total_bytes.saturating_sub(used.held_bytes);
        if bytes > available_bytes {
            return Err(OverBudget {
                needed_bytes: bytes,
                available_bytes,
            });
        }
        Ok(())
    }

    // Every change under the lock is one addition or subtraction.
    fn lock(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.lock().reserved_bytes -= self.bytes;
        self.budget.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn more_than_everything_is_an_error_at_once() {
        let budget = Budget::new(100);
        let over = OverBudget {
            needed_bytes: 101,
            available_bytes: 100,
        };
        assert_eq!(budget.reserve(101).unwrap_err(), over);
        budget.hold(60).unwrap();
        let over = OverBudget {
            needed_bytes: 41,
            available_bytes: 40,
        };
        assert_eq!(budget.reserve(41).unwrap_err(), over);
        assert_eq!(budget.hold(41).unwrap_err(), over);
        assert_eq!(budget.reserve(40).unwrap().budget.used_bytes(), 100);
        assert_eq!(budget.used_bytes(), 60);
    }

    #[test]
    fn holding_tells_who_then_waits_in_vain() {
        let budget = Budget::new(100);
        let first = budget.reserve(50).unwrap();
        thread::scope(|scope| {
            let waiting = scope.spawn(|| budget.reserve(60).map(drop));
            // Whether it waits already or comes later, the answer is the same.
            budget.hold(50).unwrap();
            assert!(waiting.join().unwrap().is_err());
        });
        drop(first);
    }

    #[test]
    fn many_threads_never_exceed_the_budget_and_all_get_their_turn() {
        let budget = Budget::new(10);
        let inside = AtomicU64::new(0);
        thread::scope(|scope| {
            for worker in 0..8_u64 {
                let (budget, inside) = (&budget, &inside);
                scope.spawn(move || {
                    for round in 0..200 {
                        let bytes = 1 + (worker * 7 + round) % 10;
                        let reservation = budget.reserve(bytes).unwrap();
                        let now = inside.fetch_add(bytes, Ordering::SeqCst) + bytes;
                        assert!(now <= 10);
                        inside.fetch_sub(bytes, Ordering::SeqCst);
                        drop(reservation);
                    }
                });
            }
        });
        assert_eq!(budget.used_bytes(), 0);
    }
}
