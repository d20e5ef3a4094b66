//! The stages of jobs that have not ended: where each partition is now, and the time of
//! its stages so far.
//!
//! This is the present; the spans of a [`Timeline`](crate::Timeline) are the past. The
//! invariants: the times of a job are the sums of its ended stages; a stage that was
//! entered is left, also if it unwinds.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::Stage;

/// A job whose stages are followed.
#[derive(Debug)]
pub struct LiveJob {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    times: StageTimes,
    partitions: Vec<Partition>,
}

#[derive(Clone, Debug, Default)]
struct Partition {
    /// The stages that it is in, the outer ones first.
    open: Vec<Open>,
    /// The wait that it is in, and its begin.
    wait: Option<(Stage, Instant)>,
    synthesis: Duration,
    device: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    stage: Stage,
    device: Option<usize>,
    since: Instant,
}

/// The times of a job's stages, added up over its partitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageTimes {
    /// The begin of the first stage of a partition that is no wait.
    pub first_work: Option<Instant>,
    /// Loading the circuit and the parameters.
    pub srs_load: Duration,
    /// Witnesses and their evaluation.
    pub synthesis: Duration,
    /// Device regions, the MSMs in G2 after them, and sums of several partitions' bits.
    pub device: Duration,
}

/// A partition at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LivePartition {
    /// The innermost stage that it is in; none between stages, and before the first.
    pub stage: Option<Stage>,
    /// The begin of that stage.
    pub since: Option<Instant>,
    /// The device under whose lock it is, and the begin of that.
    pub on_device: Option<(usize, Instant)>,
    /// The time of its witness and evaluation so far.
    pub synthesis: Duration,
    /// The time of its device regions and MSMs in G2 so far.
    pub device: Duration,
}

impl LiveJob {
    /// Returns a job of so many partitions, none of which has begun.
    #[must_use]
    pub fn new(partitions: usize) -> Self {
        let state = State {
            times: StageTimes::default(),
            partitions: vec![Partition::default(); partitions],
        };
        Self {
            state: Mutex::new(state),
        }
    }

    /// Returns the times of the stages that have ended.
    #[must_use]
    pub fn times(&self) -> StageTimes {
        self.lock().times
    }

    /// Returns the partitions as they are now, in order.
    #[must_use]
    pub fn partitions(&self) -> Vec<LivePartition> {
        self.lock().partitions.iter().map(Partition::now).collect()
    }

    fn enter(&self, partition: usize, open: Open) {
        let mut state = self.lock();
        if !open.stage.is_wait() {
            state.times.first_work.get_or_insert(open.since);
        }
        if let Some(partition) = state.partitions.get_mut(partition) {
            partition.wait = None;
            partition.open.push(open);
        }
    }

    fn leave(&self, partition: usize, stage: Stage) {
        if let Some(partition) = self.lock().partitions.get_mut(partition)
            && let Some(at) = partition.open.iter().rposition(|open| open.stage == stage)
        {
            partition.open.remove(at);
        }
    }

    /// Notes that a partition begins to wait in `stage`, or that another machine proves it.
    pub fn waits(&self, partition: usize, stage: Stage) {
        let (mut state, now) = (self.lock(), Instant::now());
        if !stage.is_wait() {
            state.times.first_work.get_or_insert(now);
        }
        if let Some(partition) = state.partitions.get_mut(partition) {
            partition.wait = Some((stage, now));
        }
    }

    /// Adds the time of a stage that has ended.
    fn add(&self, partition: Option<usize>, stage: Stage, time: Duration) {
        let mut state = self.lock();
        let State { times, partitions } = &mut *state;
        let partition = partition.and_then(|partition| partitions.get_mut(partition));
        match stage {
            Stage::Circuit | Stage::Params => times.srs_load += time,
            Stage::Witness | Stage::CircuitWitness | Stage::Evaluate => {
                times.synthesis += time;
                if let Some(partition) = partition {
                    partition.synthesis += time;
                }
            }
            Stage::Device | Stage::Columns | Stage::BG2 => {
                times.device += time;
                if let Some(partition) = partition {
                    partition.device += time;
                }
            }
            stage => {
                if let Some(partition) = partition
                    && partition.wait.is_some_and(|(waits, _)| waits == stage)
                {
                    partition.wait = None;
                }
            }
        }
    }

    // A panic under the lock leaves every list whole.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Partition {
    fn now(&self) -> LivePartition {
        let innermost = self.open.last().map(|open| (open.stage, open.since));
        let now = innermost.or(self.wait);
        let on_device = self.open.iter().find_map(|open| {
            let device = open.device.filter(|_| open.stage.is_busy())?;
            Some((device, open.since))
        });
        LivePartition {
            stage: now.map(|(stage, _)| stage),
            since: now.map(|(_, since)| since),
            on_device,
            synthesis: self.synthesis,
            device: self.device,
        }
    }
}

/// The jobs that are followed, by number.
#[derive(Debug, Default)]
pub(crate) struct LiveJobs {
    jobs: Mutex<HashMap<u64, Arc<LiveJob>>>,
    /// The number of changes of stages, of all jobs.
    changes: AtomicU64,
}

impl LiveJobs {
    pub(crate) fn follow(&self, job: u64, live: Arc<LiveJob>) {
        self.lock().insert(job, live);
    }

    pub(crate) fn unfollow(&self, job: u64) {
        let gone = self.lock().remove(&job);
        drop(gone);
    }

    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    pub(crate) fn enter(
        &self,
        job: u64,
        partition: Option<usize>,
        stage: Stage,
        device: Option<usize>,
    ) {
        if let (Some(job), Some(partition)) = (self.changed(job, stage), partition) {
            let since = Instant::now();
            job.enter(
                partition,
                Open {
                    stage,
                    device,
                    since,
                },
            );
        }
    }

    pub(crate) fn leave(&self, job: u64, partition: Option<usize>, stage: Stage) {
        if let (Some(job), Some(partition)) = (self.changed(job, stage), partition) {
            job.leave(partition, stage);
        }
    }

    pub(crate) fn add(&self, job: u64, partition: Option<usize>, stage: Stage, time: Duration) {
        if let Some(job) = self.changed(job, stage) {
            job.add(partition, stage, time);
        }
    }

    /// Counts a change of this stage. Returns the job, if it is followed. Memory that is
    /// given back later says nothing of a job.
    fn changed(&self, job: u64, stage: Stage) -> Option<Arc<LiveJob>> {
        self.changes.fetch_add(1, Ordering::Relaxed);
        if stage == Stage::Dealloc {
            return None;
        }
        self.lock().get(&job).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Arc<LiveJob>>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Timeline;

    fn follow(timeline: &Timeline, job: u64, partitions: usize) -> Arc<LiveJob> {
        let live = Arc::new(LiveJob::new(partitions));
        timeline.follow(job, Arc::clone(&live));
        live
    }

    fn stages(job: &LiveJob) -> Vec<Option<Stage>> {
        let partitions = job.partitions().into_iter();
        partitions.map(|partition| partition.stage).collect()
    }

    #[test]
    fn the_innermost_stage_is_the_present_one() {
        let timeline = Timeline::default();
        let job = follow(&timeline, 7, 2);
        assert_eq!(stages(&job), [None, None]);
        job.waits(1, Stage::QueueWait);
        assert_eq!(stages(&job), [None, Some(Stage::QueueWait)]);
        assert_eq!(job.times().first_work, None);
        let trace = timeline.trace(7, Some(1)).on_device(3);
        trace.time(Stage::Device, || {
            trace.time(Stage::Msm, || {
                assert_eq!(stages(&job), [None, Some(Stage::Msm)]);
                let on_device = job.partitions()[1].on_device;
                assert_eq!(on_device.map(|(device, _)| device), Some(3));
            });
            assert_eq!(stages(&job), [None, Some(Stage::Device)]);
        });
        assert_eq!(stages(&job), [None, None]);
        assert!(job.times().first_work.is_some());
    }

    #[test]
    fn times_are_sums_and_a_job_that_is_let_go_of_keeps_them() {
        let timeline = Timeline::default();
        let job = follow(&timeline, 7, 2);
        let since = Instant::now();
        let later = |ms| since + Duration::from_millis(ms);
        for partition in 0..2 {
            let trace = timeline.trace(7, Some(partition));
            trace.between(Stage::Params, since, later(1));
            trace.between(Stage::Witness, since, later(10));
            trace.between(Stage::Evaluate, since, later(20));
            trace.between(Stage::Device, since, later(100));
            trace.between(Stage::Msm, since, later(50));
            trace.between(Stage::BG2, since, later(200));
        }
        timeline.unfollow(7);
        let late = timeline.trace(7, Some(0));
        late.between(Stage::Witness, since, later(1000));
        let ms = |time: Duration| time.as_millis();
        let times = job.times();
        let sums = [times.srs_load, times.synthesis, times.device].map(ms);
        assert_eq!(sums, [2, 60, 600]);
        let one = job.partitions()[0];
        assert_eq!([one.synthesis, one.device].map(ms), [30, 300]);
    }

    #[test]
    fn each_change_counts_and_a_stage_that_unwinds_is_left() {
        let timeline = Timeline::default();
        let job = follow(&timeline, 1, 1);
        let before = timeline.changes();
        let trace = timeline.trace(1, Some(0));
        let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            trace.time(Stage::Witness, || panic!("in a stage"));
        }));
        assert!(unwound.is_err());
        assert_eq!(stages(&job), [None]);
        assert!(timeline.changes() > before);
    }
}
