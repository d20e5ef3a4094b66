//! The throttle's count while two workers compute an MSM each.

use crate::work::Work;
use benches::Result;
use std::{
    sync::atomic::{AtomicBool, AtomicI32, Ordering},
    thread,
    time::Duration,
};

/// The time after which the count of a worker that is done has fallen. A worker lowers
/// it just before it says that it is done.
const FALL: Duration = Duration::from_millis(2);

/// The counts that were seen.
#[derive(Clone, Copy)]
pub(crate) struct Counts {
    pub(crate) highest: i32,
    /// The lowest between the ends of the two, if there was time for a look.
    pub(crate) lowest: Option<i32>,
}

/// Looks at the throttle while two MSMs run. The second begins when the first is half
/// done.
///
/// # Errors
/// If either count differs from that of two workers.
pub(crate) fn count(work: &Work<'_>) -> Result<Counts> {
    let done = [AtomicBool::new(false), AtomicBool::new(false)];
    let half = work.msm()? / 2;
    thread::scope(|scope| {
        let workers: Vec<_> = (done.iter().zip([Duration::ZERO, half]))
            .map(|(done, wait)| {
                scope.spawn(move || {
                    thread::sleep(wait);
                    let result = work.msm();
                    done.store(true, Ordering::SeqCst);
                    result
                })
            })
            .collect();
        let counts = watch(work.throttle(), &done);
        for worker in workers {
            match worker.join() {
                Ok(result) => result?,
                Err(panic) => std::panic::resume_unwind(panic),
            };
        }
        counts.checked()
    })
}

/// Returns the counts that are seen until both are done.
fn watch(throttle: &AtomicI32, done: &[AtomicBool; 2]) -> Counts {
    let mut counts = Counts {
        highest: 0,
        lowest: None,
    };
    let done = |at: usize| done[at].load(Ordering::SeqCst);
    while !(done(0) && done(1)) {
        let one_out = done(0) || done(1);
        let count = throttle.load(Ordering::SeqCst);
        counts.highest = counts.highest.max(count);
        thread::sleep(FALL);
        if one_out && !(done(0) && done(1)) {
            let lowest = counts.lowest.map_or(count, |lowest| lowest.min(count));
            counts.lowest = Some(lowest);
        }
    }
    counts
}

impl Counts {
    fn checked(self) -> Result<Self> {
        match (self.highest, self.lowest) {
            (2, Some(1) | None) => Ok(self),
            (highest, lowest) => Err(format!(
                "two workers in the MSM: expected a throttle of 2, and of 1 when one is out, \
                 got {highest} and {}",
                lowest.unwrap_or(i32::MAX)
            )
            .into()),
        }
    }
}
