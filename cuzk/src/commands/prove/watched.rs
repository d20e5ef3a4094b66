//! The progress of jobs while they are proved: a spinner on a terminal, elsewhere a line for
//! each partition.
//!
//! Not the report, which comes when all have ended. The invariant: a partition is told once,
//! when it is proved.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use cuzk_core::Engine;
use cuzk_core::job::JobHandle;
use cuzk_core::timeline::{Span, Stage};
use indicatif::{HumanDuration, ProgressBar};

use crate::progress::{self, time_left};

/// The stages of a line. They follow each other, and none is a part of another.
const STAGES: [Stage; 9] = [
    Stage::CircuitWitness,
    Stage::Witness,
    Stage::Columns,
    Stage::Evaluate,
    Stage::Prepare,
    Stage::Staging,
    Stage::LockWait,
    Stage::Device,
    Stage::Finish,
];

/// The display of jobs that are proved.
pub(super) struct Watched {
    spinner: ProgressBar,
    started: Instant,
    /// By the number of the job: its partitions that were told.
    told: BTreeMap<u64, BTreeSet<usize>>,
}

impl Watched {
    pub(super) fn begin() -> Self {
        Self {
            spinner: progress::spinner("proving"),
            started: Instant::now(),
            told: BTreeMap::new(),
        }
    }

    /// Does something that may print.
    pub(super) fn suspend<T>(&self, work: impl FnOnce() -> T) -> T {
        self.spinner.suspend(work)
    }

    /// Shows the jobs as they are now.
    pub(super) fn look<'a>(
        &mut self,
        engine: &Engine,
        jobs: impl Iterator<Item = (String, &'a JobHandle)>,
    ) {
        let jobs: Vec<_> = jobs.collect();
        let each = jobs.iter().map(|(_, job)| job.progress());
        let (done, all) = each.fold((0, 0), |(done, all), progress| {
            (done + progress.partitions_done, all + progress.partitions)
        });
        let left = left(self.started.elapsed(), done, all);
        if !self.spinner.is_hidden() {
            let stage = stage_of_first(engine).unwrap_or_default();
            let message = format!("proving: {done} of {all} partitions done{stage}{left}");
            self.spinner.set_message(message);
            return;
        }
        for (name, job) in jobs {
            let told = self.told.entry(job.number()).or_default();
            if told.len() >= job.progress().partitions_done {
                continue;
            }
            for (partition, times) in proved(&engine.timeline().of_job(job.number())) {
                if told.insert(partition) {
                    let partitions = job.progress().partitions;
                    tracing::info!(
                        "{name}: partition {} of {partitions} is proved: {times}; {done} of {all} \
                         done{left}",
                        partition + 1
                    );
                }
            }
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.spinner.finish_and_clear();
    }
}

/// Returns the time left in words, if it can be told.
fn left(spent: Duration, done: usize, all: usize) -> String {
    if done == 0 || done >= all {
        return String::new();
    }
    let left = time_left(spent, done as u64, all as u64);
    format!(", about {} left", HumanDuration(left))
}

/// Returns the stage of the first partition that is in one, in words.
fn stage_of_first(engine: &Engine) -> Option<String> {
    let jobs = engine.status().jobs;
    let mut stages = jobs.iter().flat_map(|job| &job.parts);
    let stage = stages.find_map(|part| part.stage.filter(|_| !part.done))?;
    Some(format!(", {stage}"))
}

/// Returns the partitions that were finished, with the times of their stages in words.
fn proved(spans: &[Span]) -> Vec<(usize, String)> {
    let is_finish = |span: &&Span| span.stage == Stage::Finish;
    let finished = spans.iter().filter(is_finish);
    let partitions: BTreeSet<_> = finished.filter_map(|span| span.partition).collect();
    let times = |partition: usize| {
        let of_stage = |stage: Stage| {
            let is_it = |span: &&Span| span.stage == stage && span.partition == Some(partition);
            let time: Duration = spans.iter().filter(is_it).map(Span::length).sum();
            (!time.is_zero()).then(|| format!("{stage} {:.2} s", time.as_secs_f64()))
        };
        let times: Vec<_> = STAGES.into_iter().filter_map(of_stage).collect();
        times.join(", ")
    };
    partitions.into_iter().map(|p| (p, times(p))).collect()
}

#[cfg(test)]
mod tests {
    use cuzk_core::timeline::Lane;

    use super::*;

    #[test]
    fn a_partition_is_told_with_its_stages_when_it_is_finished() {
        let span = |partition, stage, start_ms, end_ms| Span {
            job: Some(1),
            partition,
            device: None,
            stage,
            served: None,
            stood_aside: None,
            lane: Lane::new("test"),
            start: Duration::from_millis(start_ms),
            end: Duration::from_millis(end_ms),
        };
        let spans = [
            span(None, Stage::Decode, 0, 100),
            span(Some(0), Stage::Witness, 100, 600),
            span(Some(1), Stage::Witness, 600, 1200),
            span(Some(0), Stage::QueueWait, 0, 100),
            span(Some(0), Stage::Device, 600, 2600),
            span(Some(0), Stage::Finish, 2600, 2850),
        ];
        let told = proved(&spans);
        let expected = "witness 0.50 s, device 2.00 s, finish 0.25 s";
        assert_eq!(told, [(0, expected.to_owned())]);
    }

    #[test]
    fn the_time_left_is_that_of_the_rest() {
        let minute = Duration::from_secs(60);
        assert_eq!(left(minute, 0, 10), "");
        assert_eq!(left(minute, 10, 10), "");
        assert_eq!(left(minute, 1, 4), ", about 3 minutes left");
    }
}
