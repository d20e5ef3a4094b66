//! Several requests on their way through one engine.
//!
//! Not the engine, and not the final report. The invariants:
//!
//! * A request that the queue has no room for is submitted again when it has.
//! * The thread that waits for a job writes its proof. A slow reader of one pipe therefore
//!   delays no other proof.

use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use cuzk_core::Engine;
use cuzk_core::engine::Status;
use cuzk_core::job::{JobHandle, JobOptions, Outcome, ProofOutput};

use super::order::Order;
use super::watched::Watched;
use crate::failure::Failure;
use crate::failure_report::Failures;
use crate::interrupt::Interrupt;
use crate::output_path::OutputPath;
use crate::signal::Signal;
use crate::threads;

/// The time between two looks at the jobs, and for a signal.
const POLL: Duration = Duration::from_millis(100);

/// The end of a job.
#[derive(Debug)]
pub(super) struct End {
    pub(super) outcome: Outcome,
    /// The result of writing the proof.
    pub(super) written: Result<(), Failure>,
    /// The time since the first job was submitted.
    prove_s: f64,
}

impl End {
    /// Returns the failure of a request without a proof, or that of writing its proof.
    fn failure(self) -> Option<Failure> {
        match self.outcome {
            Err(error) => Some(error.into()),
            Ok(_) => self.written.err(),
        }
    }

    pub(super) fn is_good(&self) -> bool {
        self.outcome.is_ok() && self.written.is_ok()
    }
}

/// The progress of a request.
#[derive(Debug)]
pub(super) enum State {
    /// The engine has not got it yet.
    Waits,
    Runs(JobHandle),
    /// Its proof is where it belongs.
    Proved(JobHandle, End),
    /// The failure has been reported. The job is there if the engine accepted it.
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

    fn fail(&mut self, failure: Failure, failures: &mut Failures) {
        failures.add_request(self.order.name(), &self.order.failed(failure));
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
    /// Returns none if the job has ended without a proof.
    pub(super) fn new(order: &'a Order, job: &'a JobHandle, end: &'a End) -> Option<Self> {
        Some(Self {
            order,
            job,
            proof: end.outcome.as_ref().ok()?,
            prove_s: end.prove_s,
        })
    }
}

/// The work of an engine. While it stays the same, there is no more room than before.
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

    /// Proves until all jobs have ended, or a signal comes. Returns the signal.
    pub(super) fn prove(
        &mut self,
        engine: &Engine,
        interrupt: &Interrupt,
        failures: &mut Failures,
    ) -> Option<Signal> {
        let mut watched = Watched::begin();
        self.started = Instant::now();
        let signal = loop {
            if let Some(signal) = interrupt.signal() {
                break Some(signal);
            }
            if watched.suspend(|| self.submit_next(engine, failures)) {
                continue;
            }
            let is_open = |entry: &Entry<'_>| matches!(entry.state, State::Waits | State::Runs(_));
            if !self.entries.iter().any(is_open) {
                break None;
            }
            if let Ok((at, end)) = self.ends.recv_timeout(POLL) {
                watched.suspend(|| self.ended(at, end, failures));
            }
            watched.look(engine, self.named_jobs());
        };
        watched.look(engine, self.named_jobs());
        signal
    }

    /// Returns the jobs that the engine has got, with their names.
    fn named_jobs(&self) -> impl Iterator<Item = (String, &JobHandle)> {
        let named = |entry: &Entry<'_>| entry.job().map(|job| entry.order.name_of(Some(job)));
        let names = self.entries.iter().filter_map(named);
        names.zip(self.entries.iter().filter_map(Entry::job))
    }

    /// Submits the next request. Returns true if there was one and the engine had room for
    /// it.
    fn submit_next(&mut self, engine: &Engine, failures: &mut Failures) -> bool {
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
                let waited_for = job.clone();
                // After a signal the command does not wait for this thread.
                let waits = threads::start("cuzk-waits", move || {
                    let ended = wait_and_write(&waited_for, out.as_ref(), started);
                    // The receiver is gone after a signal.
                    end.send((at, ended)).ok();
                });
                if let Err(failure) = waits {
                    job.cancel();
                    entry.fail(failure, failures);
                }
            }
            // Room comes when a job ends. Without any job it would never come.
            Err(error) if error.is_busy() && !status.jobs.is_empty() => {
                self.full_at = Some(load(&status));
                return false;
            }
            Err(error) => entry.fail(error.into(), failures),
        }
        self.full_at = None;
        true
    }

    fn ended(&mut self, at: usize, end: End, failures: &mut Failures) {
        let entry = &mut self.entries[at];
        match &entry.state {
            State::Runs(job) if end.is_good() => {
                entry.state = State::Proved(job.clone(), end);
            }
            _ => {
                if let Some(failure) = end.failure() {
                    entry.fail(failure, failures);
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
}

fn load(status: &Status) -> Load {
    (status.partitions_waiting, status.jobs.len())
}

fn wait_and_write(job: &JobHandle, out: Option<&OutputPath>, started: Instant) -> End {
    let outcome = job.wait();
    let prove_s = started.elapsed().as_secs_f64();
    let written = match (&outcome, out) {
        (Ok(proof), Some(out)) => out.write(proof.as_bytes()),
        _ => Ok(()),
    };
    End {
        outcome,
        written,
        prove_s,
    }
}
