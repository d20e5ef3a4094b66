//! A wait that has not ended yet.

use std::time::Instant;

use crate::Stage;
use crate::metrics::InStage;

/// A wait that has begun. It lies in the queue with the work that waits, and counts as
/// being in its stage. [`Trace::ended`](crate::Trace::ended) records it. A wait that is
/// dropped instead is not recorded.
#[derive(Debug)]
pub struct Wait {
    since: Instant,
    inside: InStage,
}

impl Wait {
    /// Begins to wait in `stage`.
    #[must_use]
    pub fn begin(stage: Stage) -> Self {
        Self {
            since: Instant::now(),
            inside: InStage::enter(stage, None),
        }
    }

    /// Returns the stage that waits.
    #[must_use]
    pub fn stage(&self) -> Stage {
        self.inside.stage()
    }

    /// Returns the time at which it began.
    #[must_use]
    pub fn since(&self) -> Instant {
        self.since
    }
}
