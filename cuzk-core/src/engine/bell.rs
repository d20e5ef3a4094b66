//! A bell for who waits for something that has no lock of its own.
//!
//! Not a queue: it says that something changed, and not what. The invariant: who begins
//! to wait after what it waits for has come, or while it comes, does not miss it, if the
//! bell is rung after that.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

#[derive(Debug, Default)]
pub(super) struct Bell {
    rope: Mutex<()>,
    rung: Condvar,
}

impl Bell {
    /// Waits until `has_come` says so, which is asked at once and whenever the bell
    /// rings, but no longer than `timeout`.
    pub(super) fn wait(&self, timeout: Duration, has_come: impl Fn() -> bool) {
        let rope = self.rope.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .rung
            .wait_timeout_while(rope, timeout, |()| !has_come());
        drop(waited);
    }

    pub(super) fn ring(&self) {
        // Who has asked and not begun to wait holds it.
        drop(self.rope.lock().unwrap_or_else(PoisonError::into_inner));
        self.rung.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn who_waits_hears_the_bell_and_looks_for_itself() {
        const LONG: Duration = Duration::from_secs(3600);
        let (bell, has_come) = (Bell::default(), AtomicBool::new(false));
        let has_come = &has_come;
        bell.wait(Duration::from_millis(1), || false);
        thread::scope(|scope| {
            for _ in 0..100 {
                has_come.store(false, Ordering::Relaxed);
                let waits = scope.spawn(|| bell.wait(LONG, || has_come.load(Ordering::Relaxed)));
                // For another reason, before or after it waits.
                bell.ring();
                has_come.store(true, Ordering::Relaxed);
                bell.ring();
                waits.join().unwrap();
            }
        });
        bell.wait(LONG, || true);
    }
}
