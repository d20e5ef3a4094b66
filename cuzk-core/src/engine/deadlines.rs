//! The durations of partitions, and the deadlines that cannot be met.
//!
//! Not the measuring, and not the queues. The invariant: a job is refused only on
//! measurements of undisturbed partitions of its circuit.

use std::sync::Arc;
use std::time::Duration;

use cuzk_filecoin::CircuitId;
use cuzk_scheduler::estimate::{Estimates, Times, Width};
use cuzk_scheduler::priority::Rank;

use super::attempt::Attempt;
use crate::job::JobState;
use crate::{Error, Result};

/// The key of a duration estimate. Partitions of one circuit take equally long; critical
/// ones, which run alone, are estimated apart.
type EstimateKey = (CircuitId, bool);

pub(super) struct Deadlines {
    estimates: Estimates<EstimateKey>,
    partition_workers: usize,
}

impl Deadlines {
    /// `partition_workers` is the number of partitions that are synthesized at a time.
    pub(super) fn new(partition_workers: usize) -> Self {
        Self {
            estimates: Estimates::default(),
            partition_workers,
        }
    }

    /// Returns an error for a deadline that cannot be met, as far as durations are known.
    /// `live` are the jobs that have not ended.
    pub(super) fn check(
        &self,
        id: CircuitId,
        partitions: usize,
        rank: Rank,
        deadline: Duration,
        (live, num_devices): (&[Arc<JobState>], usize),
    ) -> Result<()> {
        let ahead = live.iter().filter(|job| job.rank() <= rank);
        let ahead = ahead.flat_map(|job| {
            let progress = job.progress();
            let missing = progress.partitions - progress.partitions_done;
            let key = (job.circuit(), job.is_critical());
            std::iter::repeat_n(key, missing)
        });
        let critical = rank.is_critical();
        let width = Width {
            // Critical work has a worker of its own.
            workers: if critical { 1 } else { self.partition_workers },
            devices: num_devices,
        };
        let key = (id, critical);
        match self.estimates.until_end(&key, partitions, ahead, width) {
            Some(estimate) if estimate > deadline => Err(Error::TooLate {
                deadline_ms: whole_ms(deadline),
                estimate_ms: whole_ms(estimate),
            }),
            _ => Ok(()),
        }
    }

    /// Notes how long a partition took, unless it was paused meanwhile. `quiet` is the
    /// number of pauses so far, if nothing is paused now. `whole_way` is true if one worker
    /// took the partition all the way.
    pub(super) fn record(
        &self,
        attempt: &Attempt,
        quiet: Option<u64>,
        on_device: Duration,
        whole_way: bool,
    ) {
        let critical = attempt.is_critical();
        let was_quiet = attempt.quiet_at.is_some() && attempt.quiet_at == quiet;
        if critical || was_quiet {
            let on_worker = if whole_way {
                attempt.spent
            } else {
                attempt.synthesized_in
            };
            let times = Times {
                total: attempt.spent,
                on_worker,
                on_device,
            };
            let key = (attempt.job.circuit(), critical);
            self.estimates.measured(key, times);
        }
    }
}

fn whole_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
