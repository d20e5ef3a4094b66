//! A deterministic simulation of the engine: its jobs, dispatcher, fleet and workers'
//! steps, over simulated time, devices and disk, with faults from a seed.
//!
//! One thread does all that the engine's threads do, one step at a time, in an order that
//! the seed decides. The invariants: a run depends on its seed only; every property of
//! [`checks`] is looked at after every step.
//!
//! Not simulated:
//!
//! * the threads themselves, their locks, and the order of the work within a step;
//! * the end of the engine, which joins threads;
//! * the journal's file, for which there is a model ([`disk`]);
//! * in nine runs of ten, the loading of what was evicted;
//! * the pause for critical work, partitions on other machines, the sums of a batch, and
//!   parameters that are replaced on disk.
//!
//! Reading order: [`world`] (a run) → [`life`] (an engine without threads) → [`steps`]
//! and [`callers`] → [`checks`] → [`device`], [`disk`], [`request`] → [`bench`],
//! [`footprints`] → [`cases`] (tests that decide each step themselves).

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failure in a test fails the test"
)]

mod bench;
mod callers;
mod cases;
mod checks;
mod device;
mod disk;
mod footprints;
mod life;
mod report;
mod request;
mod steps;
mod world;

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use self::bench::Bench;
use self::checks::Violation;
use self::report::Report;
use self::world::World;
use crate::planted::{Plant, plant};

/// The seeds of an ordinary run. `CUZK_TEST_ENGINE_SEEDS` says another number.
const SEEDS: u64 = 300;

/// The seeds after which a long run prints how far it is.
const SEEDS_OF_A_LINE: u64 = 10_000;

/// The seeds in which a planted bug has to be found.
const SEEDS_OF_A_PLANT: u64 = 10_000;

/// Runs a seed. A panic outside of a job's work is a violation.
fn run(bench: &Bench, seed: u64) -> Result<Report, Violation> {
    let run = || World::new(bench, seed).run();
    let ended = catch_unwind(AssertUnwindSafe(run));
    cuzk_scheduler::clock::simulated::set(None);
    ended.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
        Err(Violation::Panic(text.unwrap_or_default()))
    })
}

/// Returns a number from the environment.
fn number(name: &str, otherwise: u64) -> u64 {
    let number = std::env::var(name).ok();
    number.map_or(otherwise, |number| number.parse().unwrap())
}

/// Says how a seed is run again.
fn again(seed: u64) -> String {
    format!(
        "run it again with CUZK_TEST_ENGINE_SEED={seed} CUZK_TEST_ENGINE_SEEDS=1 cargo test \
         --release --workspace --lib seeds_without_violation"
    )
}

/// The seeds of a run, which its threads share.
struct Seeds {
    all: u64,
    left: Mutex<Range<u64>>,
    good: AtomicU64,
}

impl Seeds {
    fn new(seeds: Range<u64>) -> Self {
        Self {
            all: seeds.end - seeds.start,
            left: Mutex::new(seeds),
            good: AtomicU64::new(0),
        }
    }

    /// Runs seeds until none are left. Returns the sum of their reports.
    fn run(&self) -> Report {
        let bench = Bench::new();
        let mut sum = Report::default();
        while let Some(seed) = self.next() {
            match run(&bench, seed) {
                Ok(report) => sum.add(&report),
                Err(violation) => {
                    // The other threads need not go on.
                    *self.left.lock().unwrap() = 0..0;
                    fail(seed, &violation)
                }
            }
            self.note_good();
        }
        sum
    }

    fn next(&self) -> Option<u64> {
        self.left.lock().unwrap().next()
    }

    fn note_good(&self) {
        let good = self.good.fetch_add(1, Ordering::Relaxed) + 1;
        if good.is_multiple_of(SEEDS_OF_A_LINE) && good < self.all {
            println!("{good} of {} seeds without a violation", self.all);
        }
    }
}

fn fail(seed: u64, violation: &Violation) -> ! {
    panic!("seed {seed}: {violation}; {}", again(seed))
}

/// Runs a seed that has to be good. One that failed once becomes a test that calls this.
fn expect_good(bench: &Bench, seed: u64) -> Report {
    match run(bench, seed) {
        Ok(report) => report,
        Err(violation) => fail(seed, &violation),
    }
}

/// `CUZK_TEST_ENGINE_SEED` is the first seed. A long run uses all cores.
#[test]
fn seeds_without_violation() {
    let first = number("CUZK_TEST_ENGINE_SEED", 0);
    let seeds = number("CUZK_TEST_ENGINE_SEEDS", SEEDS);
    let threads = match seeds > SEEDS {
        true => thread::available_parallelism().map_or(1, usize::from),
        false => 1,
    };
    let began = Instant::now();
    let (all, mut sum) = (Seeds::new(first..first + seeds), Report::default());
    thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(|| all.run())).collect();
        for thread in running {
            sum.add(&thread.join().unwrap());
        }
    });
    let took = began.elapsed().as_secs_f64();
    let a_minute = seeds as f64 / took * 60.0;
    println!("{seeds} seeds in {took:.0} s, {a_minute:.0} a minute on {threads} threads; {sum}");
}

#[test]
fn a_run_depends_on_its_seed_only() {
    let bench = Bench::new();
    let mut others = 0;
    for seed in 0..20 {
        let report = expect_good(&bench, seed);
        assert_eq!(report, expect_good(&bench, seed), "seed {seed}");
        others += usize::from(report != expect_good(&bench, seed + 1));
    }
    assert_eq!(others, 20);
}

/// A run in which nothing fails says little.
#[test]
fn runs_meet_every_fault() {
    let report = Seeds::new(0..200).run();
    let counts = report.counts();
    let never = counts.iter().find(|(_, count)| *count == 0);
    assert_eq!(never, None, "{report}");
}

/// Returns the violation that a planted bug leads to.
fn found(bug: Plant) -> Violation {
    let bench = Bench::new();
    plant(Some(bug));
    let mut runs = (0..SEEDS_OF_A_PLANT).map(|seed| (seed, run(&bench, seed)));
    let found = runs.find_map(|(seed, run)| Some((seed, run.err()?)));
    plant(None);
    let Some((seed, violation)) = found else {
        panic!("{bug:?} was not found in {SEEDS_OF_A_PLANT} seeds")
    };
    println!("{bug:?} is found with seed {seed}: {violation}");
    violation
}

/// A test of a bug, of the bug and of the violation that it leads to.
macro_rules! planted {
    ($($test:ident: $bug:ident => $violation:pat,)*) => {
        $(
            #[test]
            fn $test() {
                let violation = found(Plant::$bug);
                assert!(matches!(violation, $violation), "{violation}");
            }
        )*
    };
}

planted! {
    a_proof_that_nobody_verified_is_found: UnverifiedProof => Violation::WrongProof(_),
    a_partition_that_is_lost_is_found: LosesRequeued => Violation::Attempts(_),
    a_queue_without_a_bound_is_found: NoBound => Violation::Queue(_),
    a_device_that_is_asked_again_is_found: SameDeviceAgain => Violation::Device(_),
    a_bad_device_that_is_trusted_is_found: TrustsAll => Violation::Device(_),
    work_that_stays_after_its_end_is_found: KeepsEnded => Violation::Attempts(_),
    a_late_answer_that_counts_is_found: LateAnswerCounts => _,
    an_end_that_is_forgotten_is_found: ForgetsEnds => Violation::Journal(_),
    the_end_of_an_earlier_attempt_is_found: StaleEnds => Violation::Journal(_),
    a_job_that_is_not_kept_is_found: AcceptsUnkept => Violation::Journal(_),
    a_late_beginning_is_found: BeginsLate => Violation::Late(_),
    work_that_waits_for_ever_is_found: LeavesStranded => Violation::End(_),
    memory_that_is_lost_is_found: LeaksMemory => _,
    a_wrong_order_is_found: NoRerank => Violation::Order(_),
    a_failure_that_is_not_retried_is_found: NoRetry => Violation::End(_),
}
