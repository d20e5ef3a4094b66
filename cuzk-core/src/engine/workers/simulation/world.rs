//! A run: an engine, its disk and its clocks, with the faults that the seed allows.
//!
//! The invariant: all that is random comes from the seed.

use std::collections::HashSet;
use std::time::{Duration, Instant, SystemTime};

use cuzk_scheduler::clock;
use cuzk_scheduler::clock::simulated::{Time, set};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::bench::Bench;
use super::checks::{Tracked, Violation};
use super::device::{Deed, FAULTS};
use super::disk::{SimulatedDisk, Trouble, pass};
use super::life::{Life, Sizes};
use super::report::Report;
use super::request::Request;

/// The steps of a run before its end.
const STEPS: usize = 150;

/// The rounds of all workers in which a run has to end.
const ROUNDS: usize = 1000;

/// The time between two rounds at the end.
const ROUND: Duration = Duration::from_secs(7);

/// The ids that jobs of a run have.
const IDS: usize = 4;

/// The faults that a run has. Each run has about half of them: a run that has all of them
/// seldom comes far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Faults {
    pub(super) cancels: bool,
    pub(super) deadlines: bool,
    /// Requests that are false, broken, or under the id of another.
    pub(super) flaws: bool,
    /// Many submissions.
    pub(super) flood: bool,
    /// Devices return wrong proofs, errors and panics.
    pub(super) deeds: bool,
    pub(super) slow: bool,
    /// Devices do not answer, or too late.
    pub(super) silent: bool,
    pub(super) disk: bool,
    pub(super) kills: bool,
    /// The clocks leap, and the wall clock is set.
    pub(super) leaps: bool,
    pub(super) drains: bool,
    pub(super) evictions: bool,
}

impl Faults {
    fn random(rng: &mut impl Rng) -> Self {
        let mut any = || rng.gen_bool(0.5);
        Self {
            cancels: any(),
            deadlines: any(),
            flaws: any(),
            flood: any(),
            deeds: any(),
            slow: any(),
            silent: any(),
            disk: any(),
            kills: any(),
            leaps: any(),
            drains: any(),
            evictions: rng.gen_bool(0.1),
        }
    }

    const NONE: Self = Self {
        cancels: false,
        deadlines: false,
        flaws: false,
        flood: false,
        deeds: false,
        slow: false,
        silent: false,
        disk: false,
        kills: false,
        leaps: false,
        drains: false,
        evictions: false,
    };
}

/// A partition of a job, and a device that failed to prove it.
pub(super) type FailedOn = (u64, usize, usize);

/// A run.
pub(super) struct World<'b> {
    pub(super) bench: &'b Bench,
    pub(super) rng: ChaCha8Rng,
    pub(super) sizes: Sizes,
    pub(super) faults: Faults,
    /// True if the dedicated workers' CPU fails, too.
    pub(super) cpu_fails: bool,
    pub(super) disk: SimulatedDisk,
    pub(super) life: Life,
    pub(super) jobs: Vec<Tracked>,
    /// The requests of the ids.
    pub(super) named: Vec<Request>,
    /// The failed writes before this step.
    pub(super) failures_before: u64,
    /// The failed writes before this life of the engine.
    pub(super) failures_of_earlier_lives: u64,
    pub(super) failed_on: HashSet<FailedOn>,
    pub(super) report: Report,
    /// True once the faults have ended.
    is_ending: bool,
}

impl<'b> World<'b> {
    pub(super) fn new(bench: &'b Bench, seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let now = Time {
            monotonic: Instant::now() + Duration::from_secs(1 << 30),
            wall: SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000),
        };
        set(Some(now));
        let faults = Faults::random(&mut rng);
        let sizes = Sizes::random(bench, &mut rng, faults.evictions);
        let named = (0..IDS).map(|_| Request::random(&mut rng, faults.flaws));
        let named = named.collect();
        let disk = SimulatedDisk::default();
        Self {
            bench,
            life: Life::start(bench, &sizes, &disk),
            sizes,
            faults,
            cpu_fails: faults.deeds && rng.gen_ratio(1, 4),
            rng,
            disk,
            jobs: Vec::new(),
            named,
            failures_before: 0,
            failures_of_earlier_lives: 0,
            failed_on: HashSet::new(),
            report: Report::default(),
            is_ending: false,
        }
    }

    /// Runs to the end.
    pub(super) fn run(mut self) -> Result<Report, Violation> {
        for _ in 0..STEPS {
            let passed = Duration::from_nanos(self.rng.gen_range(0..200_000_000));
            pass(passed);
            self.any_step()?;
            self.check()?;
        }
        self.end()?;
        let disk = self.disk.lock();
        self.report.disk_failures = disk.failures;
        self.report.slow_writes = disk.slow;
        drop(disk);
        Ok(self.report)
    }

    /// Lets the faults end and all work be done.
    fn end(&mut self) -> Result<(), Violation> {
        self.faults = Faults::NONE;
        self.is_ending = true;
        self.disk.lock().trouble = Trouble::None;
        self.life.core.dispatch.drain(false);
        for _ in 0..ROUNDS {
            pass(ROUND);
            self.every_worker()?;
            if self.is_done() {
                break;
            }
        }
        self.life.core.close();
        self.life.core.jobs.close_recorder();
        self.disk.closed();
        self.check_end()
    }

    fn is_done(&self) -> bool {
        let is_over = |job: &Tracked| job.outcome.is_some();
        let usage = self.life.core.dispatch.admission.usage();
        let all_over = self.jobs.iter().all(is_over);
        // A partition of a job that has ended may wait to be finished.
        all_over && usage.running + usage.waiting == 0 && self.life.is_at_rest()
    }

    /// Sets the wall clock.
    pub(super) fn set_wall(&mut self) {
        let day_s = 24 * 3600;
        let most = Duration::from_secs(self.rng.gen_range(0..day_s));
        let wall = match self.rng.gen_bool(0.5) {
            true => clock::wall() + most,
            false => clock::wall() - most,
        };
        let monotonic = clock::now();
        set(Some(Time { monotonic, wall }));
    }

    /// Decides what a device does with a partition.
    pub(super) fn deed(&mut self) -> Deed {
        if self.faults.deeds && self.rng.gen_ratio(1, 3) {
            self.report.faults += 1;
            return FAULTS[self.rng.gen_range(0..FAULTS.len())];
        }
        Deed::Prove
    }

    /// Decides when a device answers a call that begins now; none if not before the end.
    pub(super) fn answer(&mut self) -> Option<Instant> {
        let mut longest_ms = if self.faults.slow { 20_000 } else { 2000 };
        if self.faults.silent && self.rng.gen_ratio(1, 6) {
            if self.rng.gen_bool(0.5) {
                return None;
            }
            longest_ms = 300_000;
        }
        let takes = Duration::from_millis(self.rng.gen_range(0..longest_ms));
        Some(clock::now() + takes)
    }

    /// Returns true if a call's answer is due.
    pub(super) fn is_due(&self, answers: Option<Instant>) -> bool {
        answers.map_or(self.is_ending, |at| at <= clock::now())
    }

    /// Kills the process at this moment, and starts it again.
    pub(super) fn kill(&mut self) -> Result<(), Violation> {
        self.report.kills += 1;
        self.disk.killed();
        self.failures_of_earlier_lives = self.disk.lock().failures;
        self.life = Life::start(self.bench, &self.sizes, &self.disk);
        self.failed_on.clear();
        let before = std::mem::take(&mut self.jobs);
        let registry = &self.life.core.jobs.registry;
        for job in registry.all_live() {
            let row = self.disk.row(job.id().unwrap_or_default()).unwrap();
            let request = Request::from_bytes(&row.request);
            self.jobs
                .push(Tracked::new(job, request, row.has_deadline()));
            self.report.resumed += 1;
        }
        let open = before.iter().filter(|tracked| tracked.outcome.is_none());
        for id in open.filter_map(|tracked| tracked.job.id()) {
            if !self.jobs.iter().any(|tracked| tracked.job.id() == Some(id)) {
                return Err(Violation::Journal(format!(
                    "{id} did not survive the process"
                )));
            }
        }
        Ok(())
    }
}
