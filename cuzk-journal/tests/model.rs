//! The journal against its slow twin: a map, with the rules written out.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failure in a test fails the test"
)]

mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use common::{TestClock, noise, options};
use cuzk_journal::{
    Accepted, End, JobOptions, Journal, JournalError, Limits, PendingJob, State, Usage,
};
use proptest::prelude::*;

const LIMITS: Limits = Limits {
    jobs_max: 3,
    request_bytes_max: 1_000_000,
    results_max: 2,
    result_age: Duration::from_millis(1_000),
};

#[derive(Clone, Debug)]
enum Step {
    Accept {
        id: u8,
        partitions: u32,
        request: u8,
    },
    Finish {
        id: u8,
        partition: u32,
        proof: u8,
    },
    End {
        id: u8,
        end: u8,
    },
    Forget {
        id: u8,
    },
    Advance {
        ms: u64,
    },
    Reopen,
}

/// The answer of a step, as far as a caller can distinguish answers.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Accepted(Accepted),
    Done,
    Forgot(bool),
    Full(&'static str),
    OtherInput,
    Invalid(&'static str),
    Unknown,
    Ended(&'static str),
}

#[derive(Clone)]
struct Job {
    options: JobOptions,
    request: Vec<u8>,
    /// Its number in the order of acceptance.
    number: u64,
    accepted_unix_ms: u64,
    finished: BTreeMap<u32, Vec<u8>>,
    ended: Option<(u64, End)>,
}

#[derive(Default)]
struct Model {
    jobs: BTreeMap<String, Job>,
    accepted: u64,
}

impl Model {
    fn apply(&mut self, step: &Step, now: u64) -> Answer {
        self.expire(now);
        let answer = match step {
            Step::Accept {
                id,
                partitions,
                request,
            } => self.accept(name(*id), options(*partitions), body(*request), now),
            Step::Finish {
                id,
                partition,
                proof,
            } => self.finish(*id, *partition, *proof),
            Step::End { id, end } => self.end(*id, ending(*end), now),
            Step::Forget { id } => Answer::Forgot(self.jobs.remove(&name(*id)).is_some()),
            Step::Advance { .. } | Step::Reopen => Answer::Done,
        };
        self.expire(now);
        answer
    }

    fn accept(&mut self, id: String, options: JobOptions, request: Vec<u8>, now: u64) -> Answer {
        if let Some(job) = self.jobs.get(&id) {
            if (&job.options, &job.request) != (&options, &request) {
                return Answer::OtherInput;
            }
            return Answer::Accepted(Accepted::Attached(job.state()));
        }
        let pending = || self.jobs.values().filter(|job| job.ended.is_none());
        if pending().count() as u64 == LIMITS.jobs_max {
            return Answer::Full("jobs");
        }
        let bytes = pending().map(|job| job.request.len()).sum::<usize>() + request.len();
        if bytes as u64 > LIMITS.request_bytes_max {
            return Answer::Full("request bytes");
        }
        self.accepted += 1;
        let job = Job {
            options,
            request,
            number: self.accepted,
            accepted_unix_ms: now,
            finished: BTreeMap::new(),
            ended: None,
        };
        self.jobs.insert(id, job);
        Answer::Accepted(Accepted::New)
    }

    fn finish(&mut self, id: u8, partition: u32, proof: u8) -> Answer {
        let Some(job) = self.jobs.get_mut(&name(id)) else {
            return Answer::Unknown;
        };
        if partition >= job.options.partitions {
            return Answer::Invalid("partition");
        }
        if let Some((_, end)) = &job.ended {
            return Answer::Ended(ended(end));
        }
        let proof = noise(u64::from(proof), 192);
        job.finished.insert(partition, proof);
        Answer::Done
    }

    fn end(&mut self, id: u8, end: End, now: u64) -> Answer {
        let ends = self.jobs.values().filter_map(|job| job.ended.as_ref());
        let now = now.max(ends.map(|(at, _)| at + 1).max().unwrap_or(0));
        match self.jobs.get_mut(&name(id)) {
            None => Answer::Unknown,
            Some(Job {
                ended: Some((_, kept)),
                ..
            }) if *kept == end => Answer::Done,
            Some(Job {
                ended: Some((_, kept)),
                ..
            }) => Answer::Ended(ended(kept)),
            Some(job) => {
                job.ended = Some((now, end));
                Answer::Done
            }
        }
    }

    fn expire(&mut self, now: u64) {
        let age = u64::try_from(LIMITS.result_age.as_millis()).unwrap();
        self.jobs.retain(|_, job| {
            job.ended
                .as_ref()
                .is_none_or(|(at, _)| now.saturating_sub(*at) < age)
        });
        loop {
            let results = || self.jobs.iter().filter(|(_, job)| job.ended.is_some());
            if results().count() as u64 <= LIMITS.results_max {
                return;
            }
            let oldest = results().min_by_key(|(_, job)| job.ended.as_ref().unwrap().0);
            let id = oldest.unwrap().0.clone();
            self.jobs.remove(&id);
        }
    }

    fn pending(&self) -> Vec<PendingJob> {
        let mut jobs: Vec<_> = self
            .jobs
            .iter()
            .filter(|(_, job)| job.ended.is_none())
            .collect();
        jobs.sort_by_key(|(_, job)| job.number);
        jobs.into_iter()
            .map(|(id, job)| PendingJob {
                id: id.clone(),
                options: job.options.clone(),
                accepted_unix_ms: job.accepted_unix_ms,
                request_bytes: job.request.len() as u64,
                finished: job.finished.clone().into_iter().collect(),
                damaged: Vec::new(),
            })
            .collect()
    }
}

impl Job {
    fn state(&self) -> State {
        let end = self.ended.clone();
        end.map_or(State::Pending, |(_, end)| State::Ended(end))
    }
}

fn name(id: u8) -> String {
    format!("job-{id}")
}

/// Returns one of a few bodies, so that they collide. One has several chunks, and two
/// do not fit together.
fn body(request: u8) -> Vec<u8> {
    let len = [0, 10, 1_000, 700_000][usize::from(request)];
    noise(u64::from(request), len)
}

fn ending(end: u8) -> End {
    match end {
        0 => End::Cancelled,
        1 => End::Failed("why".to_owned()),
        n => End::Done(noise(u64::from(n), 1920)),
    }
}

fn ended(end: &End) -> &'static str {
    match end {
        End::Done(_) => "done",
        End::Failed(_) => "failed",
        End::Cancelled => "cancelled",
    }
}

fn real(journal: &Journal, step: &Step) -> Answer {
    let result = match step {
        Step::Accept {
            id,
            partitions,
            request,
        } => journal
            .accept(&name(*id), &options(*partitions), &body(*request))
            .map(Answer::Accepted),
        Step::Finish {
            id,
            partition,
            proof,
        } => journal
            .finish_partition(&name(*id), *partition, &noise(u64::from(*proof), 192))
            .map(|()| Answer::Done),
        Step::End { id, end } => journal.end(&name(*id), ending(*end)).map(|()| Answer::Done),
        Step::Forget { id } => journal.forget(&name(*id)).map(Answer::Forgot),
        Step::Advance { .. } | Step::Reopen => Ok(Answer::Done),
    };
    result.unwrap_or_else(|error| match error {
        JournalError::Full { what, .. } => Answer::Full(what),
        JournalError::OtherInput { .. } => Answer::OtherInput,
        JournalError::InvalidInput { field, .. } => Answer::Invalid(field),
        JournalError::Unknown { .. } => Answer::Unknown,
        JournalError::Ended { end, .. } => Answer::Ended(end),
        other => panic!("{other}"),
    })
}

/// Compares all that the journal can be asked.
fn compare(journal: &Journal, model: &mut Model, now: u64) {
    let pending = journal.pending().unwrap();
    assert!(pending.damaged.is_empty(), "{:?}", pending.damaged);
    assert_eq!(pending.jobs, model.pending());
    let Usage {
        jobs,
        request_bytes,
        ..
    } = journal.usage().unwrap();
    assert_eq!(jobs, pending.jobs.len() as u64);
    assert_eq!(
        request_bytes,
        pending
            .jobs
            .iter()
            .map(|job| job.request_bytes)
            .sum::<u64>()
    );
    model.expire(now);
    for id in (0..6).map(name) {
        let job = model.jobs.get(&id);
        assert_eq!(journal.state(&id).unwrap(), job.map(Job::state), "{id}");
        match (journal.request(&id), job) {
            (Ok(request), Some(job)) => assert!(job.ended.is_none() && request == job.request),
            (Err(JournalError::Ended { .. }), Some(job)) => assert!(job.ended.is_some()),
            (Err(JournalError::Unknown { .. } | JournalError::Ended { .. }), None) => {}
            (other, _) => panic!("{id}: {other:?}"),
        }
    }
}

fn run(path: &Path, steps: &[Step]) {
    let clock = TestClock::at(1_000_000);
    let open = || Journal::open_with_clock(path, LIMITS, clock.read()).unwrap();
    let mut journal = Some(open());
    let mut model = Model::default();
    for step in steps {
        match step {
            Step::Advance { ms } => clock.advance(*ms),
            Step::Reopen => {
                drop(journal.take());
                journal = Some(open());
            }
            _ => {}
        }
        let journal = journal.as_ref().unwrap();
        let now = clock.unix_ms();
        assert_eq!(real(journal, step), model.apply(step, now), "{step:?}");
        compare(journal, &mut model, now);
    }
}

fn step() -> impl Strategy<Value = Step> {
    let id = || 0u8..6;
    prop_oneof![
        8 => (id(), 1u32..3, 0u8..4)
            .prop_map(|(id, partitions, request)| Step::Accept { id, partitions, request }),
        6 => (id(), 0u32..3, 0u8..2)
            .prop_map(|(id, partition, proof)| Step::Finish { id, partition, proof }),
        4 => (id(), 0u8..4).prop_map(|(id, end)| Step::End { id, end }),
        1 => id().prop_map(|id| Step::Forget { id }),
        2 => (0u64..700).prop_map(|ms| Step::Advance { ms }),
        1 => Just(Step::Reopen),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn agrees_with_a_map(steps in prop::collection::vec(step(), 1..60)) {
        let directory = tempfile::tempdir().unwrap();
        run(&directory.path().join("j"), &steps);
    }
}
