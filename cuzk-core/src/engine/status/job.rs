//! A job that has not ended, as a status shows it: where it is, and what it waits for.
//!
//! Not the job. The invariant: the reason for a wait is a whole sentence, which a person
//! reads.

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use cuzk_scheduler::admission::{Usage, WaitingWork};
use cuzk_timeline::{LivePartition, Stage};
use serde::Serialize;

use crate::engine::core::Core;
use crate::engine::entrance::is_held;
use crate::job::JobState;

/// A job that has not ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JobStatus {
    /// Its number in the timeline.
    pub number: u64,
    /// The caller's name for it.
    pub id: Option<String>,
    /// The circuit of its partitions.
    pub circuit: String,
    /// The name of its kind.
    pub kind: &'static str,
    /// Its priority, as it was set last.
    pub priority: &'static str,
    /// `journal` if it waits there for room in the queue, `waiting` before the first work on
    /// it, and `running` from then on.
    pub state: &'static str,
    /// The time since it was accepted, in seconds.
    pub accepted_s_ago: f64,
    /// The reason for which nothing of it runs now; none while a part of it runs.
    pub waits_for: Option<String>,
    /// Partitions proved.
    pub partitions_done: usize,
    /// All its partitions.
    pub partitions: usize,
    /// Its partitions, in order.
    pub parts: Vec<PartitionStatus>,
}

/// A partition of a job that has not ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PartitionStatus {
    /// Its index in the job, from 0.
    pub index: usize,
    /// The name of the stage that it is in, as in the timeline; none between stages.
    pub stage: Option<&'static str>,
    /// The time since that stage began, in seconds; 0 without one.
    pub since_s: f64,
    /// The time of its witness and evaluation, in seconds.
    pub synthesis_s: f64,
    /// The time of its device regions and MSMs in G2, in seconds.
    pub device_s: f64,
    /// True if it is proved.
    pub done: bool,
}

/// Figures of the whole engine, for the status of each job.
pub(super) struct Survey<'a> {
    core: &'a Core,
    now: Instant,
    in_journal: HashSet<u64>,
    /// By number of the job: its waiting partition that is next, and how many wait.
    queued: HashMap<u64, (WaitingWork, usize)>,
    /// The memory that is free for a job, or is given up for it: for one that is critical,
    /// and for any other.
    free_bytes: [u64; 2],
}

impl<'a> Survey<'a> {
    pub(super) fn of(core: &'a Core, usage: Usage) -> Self {
        let mut queued: HashMap<u64, (WaitingWork, usize)> = HashMap::new();
        let admission = &core.dispatch.admission;
        admission.visit_waiting(|attempt, work| {
            let first = queued.entry(attempt.job.number()).or_insert((work, 0));
            first.1 += 1;
        });
        let used_bytes = usage.used_bytes.saturating_sub(usage.idle_bytes);
        let free_bytes = usage.total_bytes.saturating_sub(used_bytes);
        let reserve_bytes = admission.limits().critical_reserve_bytes;
        Self {
            core,
            now: Instant::now(),
            in_journal: core.jobs.waiting.numbers(),
            queued,
            free_bytes: [free_bytes, free_bytes.saturating_sub(reserve_bytes)],
        }
    }

    pub(super) fn job(&self, job: &JobState) -> JobStatus {
        let done = job.done();
        let live = job.live();
        let in_journal = self.in_journal.contains(&job.number());
        let state = match live.times().first_work {
            _ if in_journal => "journal",
            None => "waiting",
            Some(_) => "running",
        };
        let partitions_done = done.iter().filter(|done| **done).count();
        let parts = live.partitions().into_iter().zip(&done).enumerate();
        let parts = parts.map(|(index, (live, done))| self.partition(index, live, *done));
        JobStatus {
            number: job.number(),
            id: job.id().map(str::to_owned),
            circuit: job.circuit().to_string(),
            kind: job.circuit().kind.name(),
            priority: job.priority().name(),
            state,
            accepted_s_ago: self.seconds_since(job.accepted()),
            waits_for: self.waits_for(job, done.len() - partitions_done, in_journal),
            partitions_done,
            partitions: done.len(),
            parts: parts.collect(),
        }
    }

    fn partition(&self, index: usize, live: LivePartition, done: bool) -> PartitionStatus {
        let stage = live.stage.filter(|_| !done);
        PartitionStatus {
            index,
            stage: stage.map(Stage::name),
            since_s: live.since.map_or(0.0, |since| self.seconds_since(since)),
            synthesis_s: live.synthesis.as_secs_f64(),
            device_s: live.device.as_secs_f64(),
            done,
        }
    }

    fn seconds_since(&self, at: Instant) -> f64 {
        self.now.saturating_duration_since(at).as_secs_f64()
    }

    /// Returns the reason for which nothing of a job runs, of which so many partitions are
    /// missing.
    fn waits_for(&self, job: &JobState, missing: usize, in_journal: bool) -> Option<String> {
        let draining = || "the engine is draining".to_owned();
        let elsewhere = || "other machines prove it, or are to begin it".to_owned();
        if in_journal {
            let room = || "waits in the journal until the queue has room".to_owned();
            return Some(if is_held(self.core, job) {
                draining()
            } else {
                room()
            });
        }
        let (work, queued) = self.queued.get(&job.number())?;
        // A partition that is neither done nor queued runs.
        if *queued < missing {
            return None;
        }
        let free_bytes = self.free_bytes[usize::from(!job.is_critical())];
        Some(match work.ahead {
            _ if work.is_held && is_held(self.core, job) => draining(),
            _ if work.is_held => elsewhere(),
            1 => "waits for 1 partition that is ahead".to_owned(),
            0 if work.needed_bytes > free_bytes => format!(
                "waits for {} of memory; {} are free",
                amount(work.needed_bytes),
                amount(free_bytes)
            ),
            0 => "waits for a worker".to_owned(),
            ahead => format!("waits for {ahead} partitions that are ahead"),
        })
    }
}

/// Returns an amount of memory as a person reads it.
fn amount(bytes: u64) -> String {
    const MIB: f64 = 1_048_576.0;
    let mib = bytes as f64 / MIB;
    if mib >= 1024.0 {
        format!("{:.1} GiB", mib / 1024.0)
    } else {
        format!("{mib:.1} MiB")
    }
}

#[cfg(test)]
mod tests {
    use super::amount;

    #[test]
    fn amounts_have_the_unit_that_a_person_reads() {
        for (bytes, expected) in [
            (3 << 19, "1.5 MiB"),
            (1023 << 20, "1023.0 MiB"),
            (1 << 30, "1.0 GiB"),
            (40 << 30, "40.0 GiB"),
        ] {
            assert_eq!(amount(bytes), expected);
        }
    }
}
