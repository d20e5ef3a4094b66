//! Several requests on their way through one engine.
//!
//! Not the engine, and not the final report. The invariants:
//!
//! * A request that the queue has no room for is submitted again when it has.
//! * The thread that waits for a job writes its proof. A slow reader of one pipe therefore
//!   delays no other proof.

use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use cuzk_core::Engine;
use cuzk_core::engine::Status;
use cuzk_core::job::{JobHandle, JobOptions, Outcome, ProofOutput};

use super::Order;
use crate::failure::{Failure, Said};
use crate::interrupt::Interrupt;
use crate::place::Place;
use crate::progress;
use crate::signal::Signal;

/// How often the progress line looks at the jobs, and for a signal.
const POLL: Duration = Duration::from_millis(100);

/// How a job ended.
#[derive(Debug)]
pub(super) struct End {
    pub(super) outcome: Outcome,
    /// The result of writing the proof.
    pub(super) kept: Result<(), Failure>,
    /// Since the first was submitted.
    prove_s: f64,
}

impl End {
    /// Returns the failure of a request without a proof, or that of writing its proof.
    fn failure(self) -> Option<Failure> {
        match self.outcome {
            Err(error) => Some(error.into()),
            Ok(_) => self.kept.err(),
        }
    }

    pub(super) fn is_good(&self) -> bool {
        self.outcome.is_ok() && self.kept.is_ok()
    }
}

/// How far a request is.
#[derive(Debug)]
pub(super) enum State {
    /// Not with the engine yet.
    Waits,
    Runs(JobHandle),
    /// Its proof is where it belongs.
    Proved(JobHandle, End),
    /// Why has been said. The job, if it became one.
    Failed(Option<JobHandle>),
}

#[derive(Debug)]
pub(super) struct Entry<'a> {
    pub(super) order: &'a Order,
    pub(super) state: State,
}

impl Entry<'_> {
    pub(super) fn job(&self) -> Option<&JobHandle> {
        match &self.state {
            State::Waits | State::Failed(None) => None,
            State::Runs(job) | State::Proved(job, _) | State::Failed(Some(job)) => Some(job),
        }
    }

    fn fail(&mut self, failure: Failure, said: &mut Said) {
        said.add_request(self.order.name(), &self.order.failed(failure));
        self.state = State::Failed(self.job().cloned());
    }
}

/// A request with its proof.
pub(super) struct Proved<'a> {
    pub(super) order: &'a Order,
    pub(super) job: &'a JobHandle,
    pub(super) proof: &'a ProofOutput,
    pub(super) prove_s: f64,
}

impl<'a> Proved<'a> {
    /// None if the job has ended without a proof.
    pub(super) fn new(order: &'a Order, job: &'a JobHandle, end: &'a End) -> Option<Self> {
        Some(Self {
            order,
            job,
            proof: end.outcome.as_ref().ok()?,
            prove_s: end.prove_s,
        })
    }
}

/// The work of an engine: while it is the same, there is no more room than before.
type Load = (usize, usize);

pub(super) struct Batch<'a> {
    pub(super) orders: &'a [Order],
    entries: Vec<Entry<'a>>,
    started: Instant,
    /// The engine's work when it had no room.
    full_at: Option<Load>,
    end: Sender<(usize, End)>,
    ends: Receiver<(usize, End)>,
}

impl<'a> Batch<'a> {
    pub(super) fn new(orders: &'a [Order]) -> Self {
        let (end, ends) = mpsc::channel();
        let entry = |order| Entry {
            order,
            state: State::Waits,
        };
        Self {
            orders,
            entries: orders.iter().map(entry).collect(),
            started: Instant::now(),
            full_at: None,
            end,
            ends,
        }
    }

    /// Until all have ended, or a signal comes, which is returned.
    pub(super) fn prove(
        &mut self,
        engine: &Engine,
        interrupt: &Interrupt,
        said: &mut Said,
    ) -> Option<Signal> {
        let spinner = progress::spinner("proving");
        self.started = Instant::now();
        let signal = loop {
            if let Some(signal) = interrupt.signal() {
                break Some(signal);
            }
            if spinner.suspend(|| self.submit_next(engine, said)) {
                continue;
            }
            let is_open = |entry: &Entry<'_>| matches!(entry.state, State::Waits | State::Runs(_));
            if !self.entries.iter().any(is_open) {
                break None;
            }
            if let Ok((at, end)) = self.ends.recv_timeout(POLL) {
                spinner.suspend(|| self.ended(at, end, said));
            }
            spinner.set_message(self.progress());
        };
        spinner.finish_and_clear();
        signal
    }

    /// Submits the next request. Whether there was one and it needs no more room than
    /// there is.
    fn submit_next(&mut self, engine: &Engine, said: &mut Said) -> bool {
        let waits = |entry: &Entry<'_>| matches!(entry.state, State::Waits);
        let Some(at) = self.entries.iter().position(waits) else {
            return false;
        };
        let status = engine.status();
        if self.full_at == Some(load(&status)) {
            return false;
        }
        let entry = &mut self.entries[at];
        let elapsed = self.started.elapsed();
        let options = JobOptions {
            deadline: (entry.order.options.deadline).map(|left| left.saturating_sub(elapsed)),
            ..entry.order.options.clone()
        };
        match engine.submit_with(&entry.order.request, options) {
            Ok(job) => {
                entry.state = State::Runs(job.clone());
                let (out, started, end) = (entry.order.out.clone(), self.started, self.end.clone());
                // Not looked at when a signal comes, and so not waited for.
                thread::spawn(move || {
                    let ended = wait_and_keep(&job, out.as_ref(), started);
                    // Nobody listens any more after a signal.
                    end.send((at, ended)).ok();
                });
            }
            // Room comes when a job ends; without any it never would.
            Err(error) if error.is_busy() && !status.jobs.is_empty() => {
                self.full_at = Some(load(&status));
                return false;
            }
            Err(error) => entry.fail(error.into(), said),
        }
        self.full_at = None;
        true
    }

    fn ended(&mut self, at: usize, end: End, said: &mut Said) {
        let entry = &mut self.entries[at];
        match &entry.state {
            State::Runs(job) if end.is_good() => {
                entry.state = State::Proved(job.clone(), end);
            }
            _ => {
                if let Some(failure) = end.failure() {
                    entry.fail(failure, said);
                }
            }
        }
    }

    /// Returns the jobs that have ended meanwhile. Waits for as long as `limit` while any
    /// runs. Reports no failures.
    pub(super) fn rest(mut self, limit: Duration) -> Vec<(Entry<'a>, Option<End>)> {
        let until = Instant::now() + limit;
        let mut ends: Vec<Option<End>> = self.entries.iter().map(|_| None).collect();
        let runs = |entry: &&Entry<'_>| matches!(entry.state, State::Runs(_));
        for _ in 0..self.entries.iter().filter(runs).count() {
            let left = until.saturating_duration_since(Instant::now());
            match self.ends.recv_timeout(left) {
                Ok((at, end)) => ends[at] = Some(end),
                Err(_) => break,
            }
        }
        self.entries.drain(..).zip(ends).collect()
    }

    pub(super) fn proved(&self) -> impl Iterator<Item = Proved<'_>> {
        self.entries.iter().filter_map(|entry| match &entry.state {
            State::Proved(job, end) => Proved::new(entry.order, job, end),
            _ => None,
        })
    }

    /// Returns the title of a timeline of these jobs.
    pub(super) fn title(&self) -> String {
        let jobs = self.entries.iter().filter_map(Entry::job);
        let mut circuits: Vec<_> = jobs.map(|job| job.circuit().to_string()).collect();
        circuits.dedup();
        format!("cuzk prove: {}", circuits.join(", "))
    }

    /// Partitions done and partitions, of all jobs.
    fn progress(&self) -> String {
        let each = self.entries.iter().filter_map(Entry::job);
        let (done, all) = each.fold((0, 0), |(done, all), job| {
            let progress = job.progress();
            (done + progress.partitions_done, all + progress.partitions)
        });
        format!("proving: {done} of {all} partitions done")
    }
}

fn load(status: &Status) -> Load {
    (status.partitions_waiting, status.jobs.len())
}

fn wait_and_keep(job: &JobHandle, out: Option<&Place>, started: Instant) -> End {
    let outcome = job.wait();
    let prove_s = started.elapsed().as_secs_f64();
    let kept = match (&outcome, out) {
        (Ok(proof), Some(out)) => out.write(proof.as_bytes()),
        _ => Ok(()),
    };
    End {
        outcome,
        kept,
        prove_s,
    }
}
