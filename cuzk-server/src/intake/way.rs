//! The way that calls with large messages give to critical work.
//!
//! Not a budget: nothing is held or counted. The invariant: a call stands still only while
//! critical work runs, and for a bounded time. So work that never ends keeps no call out.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// The time between two looks at whether critical work still runs. A WinningPoSt takes at least
/// some hundred times as long.
pub(super) const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// The longest time for which a call stands still at once. A WinningPoSt of 32 GiB takes 2 s.
const STANDS_MAX: Duration = Duration::from_secs(10);

/// Says whether critical work runs now.
#[derive(Clone)]
pub struct Way {
    is_taken: Arc<dyn Fn() -> bool + Send + Sync>,
}

impl Way {
    /// Returns a way that is taken while `is_taken` returns true.
    pub fn new(is_taken: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self {
            is_taken: Arc::new(is_taken),
        }
    }

    /// Waits while the way is taken, for [`STANDS_MAX`] at most.
    pub(crate) async fn give(&self) {
        let mut stand = Stand::default();
        while stand.gives(self) {
            sleep(LOOK_AGAIN).await;
        }
    }

    /// Waits as [`Way::give`] does, on a thread that may block.
    pub(crate) fn give_here(&self) {
        let mut stand = Stand::default();
        while stand.gives(self) {
            std::thread::sleep(LOOK_AGAIN);
        }
    }
}

impl Default for Way {
    /// A way that nobody takes.
    fn default() -> Self {
        Self::new(|| false)
    }
}

impl fmt::Debug for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Way").finish_non_exhaustive()
    }
}

/// The time for which one call has stood still.
#[derive(Debug, Default)]
pub(super) struct Stand {
    since: Option<Instant>,
}

impl Stand {
    /// Returns true if the call stands still now.
    pub(super) fn gives(&mut self, way: &Way) -> bool {
        if !(way.is_taken)() {
            self.since = None;
            return false;
        }
        self.since.get_or_insert_with(Instant::now).elapsed() < STANDS_MAX
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use cuzk_bounded::Bound;

    #[tokio::test(start_paused = true)]
    async fn a_call_stands_still_while_the_way_is_taken() {
        let _bound = Bound::default();
        Way::default().give().await;
        let taken = Arc::new(AtomicBool::new(true));
        let is_taken = Arc::clone(&taken);
        let way = Way::new(move || is_taken.load(Ordering::SeqCst));
        let gives = tokio::spawn({
            let way = way.clone();
            async move { way.give().await }
        });
        sleep(STANDS_MAX / 2).await;
        assert!(!gives.is_finished());
        taken.store(false, Ordering::SeqCst);
        gives.await.unwrap();
    }

    /// It goes on beside work that does not end, until other work begins.
    #[tokio::test(start_paused = true)]
    async fn a_call_stands_still_for_a_bounded_time() {
        let _bound = Bound::default();
        let taken = Arc::new(AtomicBool::new(true));
        let is_taken = Arc::clone(&taken);
        let way = Way::new(move || is_taken.load(Ordering::SeqCst));
        let began = Instant::now();
        let mut stand = Stand::default();
        while stand.gives(&way) {
            sleep(LOOK_AGAIN).await;
        }
        assert!(began.elapsed() >= STANDS_MAX);
        assert!(!stand.gives(&way));
        taken.store(false, Ordering::SeqCst);
        assert!(!stand.gives(&way));
        taken.store(true, Ordering::SeqCst);
        assert!(stand.gives(&way));
    }
}
