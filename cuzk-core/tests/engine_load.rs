//! The engine under many jobs: nothing is lost, nothing wrong leaves, and memory
//! stays what it was. On a circuit that takes no time, so that there can be
//! thousands.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what fails in a test fails the test"
)]

mod common;

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use common::BoundedJob as _;
use common::device::{self, Deed, Scripted, engine_on};
use common::tiny::{self, TinyJob};
use common::urgent;
use cuzk_bounded::bounded;
use cuzk_core::job::{JobHandle, JobOptions, Outcome};
use cuzk_core::scheduler::priority::Priority;
use cuzk_core::timeline::device_use;
use cuzk_core::{Config, Engine, Error};
use cuzk_filecoin::{ProofKind, Statement};
use cuzk_groth16::backend::footprint::pool_bytes;
use cuzk_groth16::params::Shapes;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// One load at a time: memory is the process's.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> std::sync::MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// Waits until nothing is freed in the background any more.
fn wait_until_resident_bytes_rest() {
    let mut last = None;
    bounded(|| {
        while last != Some(resident_bytes()) {
            last = Some(resident_bytes());
            thread::sleep(Duration::from_secs(2));
        }
    });
}

/// Two in a hundred, and besides what fills up once: the timeline's 16,384 spans,
/// and the handles that a test keeps.
fn assert_flat(early_bytes: Option<u64>, late_bytes: Option<u64>) {
    const FILLS_UP_BYTES: u64 = 6 << 20;
    println!("resident, early and late: {early_bytes:?}, {late_bytes:?}");
    if let (Some(early), Some(late)) = (early_bytes, late_bytes) {
        let most = early + early / 50 + FILLS_UP_BYTES;
        assert!(late < most, "{early} grew to {late} bytes");
    }
}

/// What a job must come to.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Proved,
    False,
    CancelledOrProved,
}

fn check(fate: Fate, job: &JobHandle, partitions: usize) {
    let outcome: Outcome = job.wait_bounded();
    match (fate, outcome) {
        (Fate::Proved | Fate::CancelledOrProved, Ok(proof)) => {
            assert_eq!(proof.partitions(), partitions);
        }
        (Fate::False, Err(error)) => {
            assert!(matches!(*error, Error::Unsatisfied { .. }), "{error}");
        }
        (Fate::CancelledOrProved, Err(error)) => {
            assert!(matches!(*error, Error::Cancelled), "{error}");
        }
        (fate, outcome) => panic!("{fate:?}: {outcome:?}"),
    }
}

/// One of them for the tiny circuit, as bytes: the number of its kind, or what no decoder
/// reads.
fn decode(request: &[u8]) -> Result<Arc<dyn Statement>, Error> {
    let text = std::str::from_utf8(request).ok();
    let kind = text.and_then(|text| ProofKind::ALL.get(text.parse::<usize>().ok()?));
    let kind = *kind.ok_or_else(|| Error::request("request", "no kind", "send a number"))?;
    Ok(tiny::job(kind, 1))
}

/// What the n-th of ten thousand submissions is.
enum Submission {
    Right,
    /// Its statement is false.
    False,
    /// Its bytes are no request.
    Malformed,
}

impl Submission {
    fn nth(n: usize) -> Self {
        match n % 4 {
            0 | 2 => Self::Right,
            1 => Self::False,
            _ => Self::Malformed,
        }
    }

    /// As bytes with an id, or decoded.
    fn submit(&self, engine: &Engine, n: usize) -> Result<JobHandle, Error> {
        let number = n / 4 % 4;
        let submit_bytes =
            |request: &[u8]| engine.submit_bytes(request, common::named(&n.to_string()));
        match self {
            Self::Right if n.is_multiple_of(4) => submit_bytes(number.to_string().as_bytes()),
            Self::Malformed => submit_bytes(&[0xff, 0, b'{', 0xfe]),
            Self::Right | Self::False => {
                let job = TinyJob {
                    kind: ProofKind::ALL[number],
                    partitions: 1,
                    false_partition: matches!(self, Self::False).then_some(0),
                };
                engine.submit_job(Arc::new(job), JobOptions::default())
            }
        }
    }
}

/// Ten thousand submissions, a quarter of them false and a quarter no requests at all,
/// into a queue of a hundred: each is accepted or refused, and what is accepted ends as
/// it should.
#[test]
fn ten_thousand_submissions_and_none_lost() {
    const SUBMISSIONS: usize = 10_000;
    const QUEUE: usize = 100;
    let _alone = alone();
    let directory = tempfile::tempdir().unwrap();
    let mut config = tiny::config(directory.path());
    config.jobs.queued_partitions = QUEUE;
    // What is kept of what ended is bounded as well.
    config.jobs.results_kept = QUEUE;
    let pool = device::pool(&config);
    let devices = vec![device::cores(&pool)];
    let engine = Engine::start_with(config, pool, devices, Arc::new(decode)).unwrap();
    let (mut accepted, mut busy, mut malformed) = (Vec::new(), 0, 0);
    let mut early_bytes = None;
    let started = Instant::now();
    for n in 0..SUBMISSIONS {
        let submission = Submission::nth(n);
        match (submission.submit(&engine, n), submission) {
            (Ok(handle), Submission::Right) => accepted.push((Fate::Proved, handle)),
            (Ok(handle), Submission::False) => accepted.push((Fate::False, handle)),
            (Err(Error::Busy { capacity: QUEUE }), _) => {
                busy += 1;
                thread::sleep(Duration::from_millis(1));
            }
            (Err(error), Submission::Malformed) => {
                assert!(error.is_input(), "{error}");
                assert!(engine.job(&n.to_string()).is_none());
                malformed += 1;
            }
            (Ok(_), Submission::Malformed) => panic!("it is no request"),
            (Err(error), _) => panic!("{error}"),
        }
        if n == SUBMISSIONS / 4 {
            early_bytes = resident_bytes();
        }
    }
    println!(
        "{} accepted, {busy} refused for want of room and {malformed} that are no requests, in \
         {:.1} s with a caller that waits 1 ms while the queue is full",
        accepted.len(),
        started.elapsed().as_secs_f64(),
    );
    assert_eq!(accepted.len() + busy + malformed, SUBMISSIONS);
    assert!(accepted.len() > QUEUE && busy > 0 && malformed > 0);
    for (fate, job) in &accepted {
        check(*fate, job, 1);
    }
    assert!(engine.status().jobs.is_empty());
    assert_flat(early_bytes, resident_bytes());
    engine.shutdown();
}

/// While a partition has a device's lock the next one comes to wait for it, from the first to
/// the last, so that between two the device waits for nobody: here a region ends only then.
#[test]
fn a_device_is_kept_busy() {
    const PARTITIONS: usize = 40;
    let _alone = alone();
    let directory = tempfile::tempdir().unwrap();
    let config = tiny::config(directory.path());
    let device = Scripted::new(&config, |_| Deed::ProveBesideAnother(PARTITIONS));
    let engine = engine_on(&config, &[&device]);
    let job = common::submit(&engine, tiny::job(ProofKind::Porep, PARTITIONS));
    job.wait_bounded().unwrap();
    let status = engine.status();
    let of_device = &status.devices[0];
    assert_eq!((of_device.proved, of_device.faults), (PARTITIONS as u64, 0));
    let used = device_use(&engine.timeline().spans());
    let (utilisation, gaps) = (used[0].utilisation(), used[0].longest_gaps(3));
    println!("used {:.2} %, longest gaps {gaps:?}", 100.0 * utilisation);
    engine.shutdown();
}

/// Two hundred jobs of all kinds and priorities, with cancellations and faults.
#[test]
fn two_hundred_mixed_jobs_end_as_they_should() {
    let _alone = alone();
    let directory = tempfile::tempdir().unwrap();
    let config = tiny::config(directory.path());
    let engine = engine_on(
        &config,
        &[&Scripted::faulty(&config), &Scripted::good(&config)],
    );
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let mut bytes_after = [None; 2];
    for round in 0..20 {
        let mut jobs = Vec::new();
        for _ in 0..10 {
            let kind = ProofKind::ALL[rng.gen_range(0..4)];
            let partitions = rng.gen_range(1..=10);
            let fate = match rng.gen_range(0..10) {
                0 => Fate::False,
                1..=2 => Fate::CancelledOrProved,
                _ => Fate::Proved,
            };
            let job = TinyJob {
                kind,
                partitions,
                false_partition: (fate == Fate::False).then(|| rng.gen_range(0..partitions)),
            };
            let options = urgent(Priority::ALL[rng.gen_range(0..4)]);
            let handle = engine.submit_job(Arc::new(job), options).unwrap();
            jobs.push((fate, handle, partitions));
        }
        for (fate, job, _) in &jobs {
            if *fate == Fate::CancelledOrProved {
                job.cancel();
            }
        }
        for (fate, job, partitions) in &jobs {
            check(*fate, job, *partitions);
        }
        match round {
            4 => bytes_after[0] = resident_bytes(),
            19 => bytes_after[1] = resident_bytes(),
            _ => {}
        }
    }
    let status = engine.status();
    assert!(status.jobs.is_empty());
    assert!(status.devices[0].faults > 0, "the faults were met");
    assert_eq!(status.devices[1].faults, 0);
    engine.shutdown();
    let [after_50, after_200] = bytes_after;
    assert_flat(after_50, after_200);
}

/// Jobs of a round, the large one of which takes as long as twenty window proofs.
fn round_of(large: ProofKind) -> Vec<ProofKind> {
    let small = [ProofKind::WindowPost; 6].into_iter();
    let small = small.chain([ProofKind::WinningPost; 3]);
    small.chain([large]).collect()
}

/// What real jobs came to.
struct Ran {
    proved: usize,
    cancelled: usize,
    faults: u64,
    /// The most that the pool kept when a round was over.
    kept_bytes_max: u64,
    /// Resident after 50 jobs and after all of them, at rest.
    resident_bytes: [Option<u64>; 2],
    /// The part of it that the pool keeps.
    kept_bytes: [u64; 2],
}

/// What the pool maps for one partition of each circuit.
fn partitions_bytes(config: &Config) -> [u64; ProofKind::ALL.len()] {
    let sums = config.cpu_workspace();
    let of = |kind| {
        pool_bytes(
            &common::circuit_with_params(kind).sizes(),
            &sums,
            &Shapes::default(),
        )
    };
    ProofKind::ALL.map(of)
}

/// Returns the rounds of ten jobs, at least 4. The nightly run has 20: a round takes a processor
/// without AVX-512 half a minute.
fn rounds() -> usize {
    let rounds = std::env::var("CUZK_TEST_LOAD_ROUNDS").ok();
    rounds.map_or(4, |rounds| rounds.parse().unwrap())
}

/// Returns the round after which the memory is looked at first. Each kind was proved by then.
fn first_look(rounds: usize) -> usize {
    (rounds / 4).clamp(2, 4)
}

/// Jobs with the real circuits, cancellations and faults, a large one in every ten.
fn real_jobs(config: &Config, rounds: usize) -> Ran {
    let engine = engine_on(
        config,
        &[&Scripted::faulty(config), &Scripted::good(config)],
    );
    let requests = ProofKind::ALL.map(cuzk_testing::bundled_request);
    let partition_bytes = partitions_bytes(config).into_iter().max().unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(8);
    let mut ran = Ran {
        proved: 0,
        cancelled: 0,
        faults: 0,
        kept_bytes_max: 0,
        resident_bytes: [None; 2],
        kept_bytes: [0; 2],
    };
    let large = [ProofKind::Porep, ProofKind::SnapDeals];
    for round in 0..rounds {
        let mut kinds = round_of(large[round % large.len()]);
        kinds.shuffle(&mut rng);
        let mut jobs = Vec::new();
        for kind in kinds {
            let request = requests.iter().find(|request| request.kind() == kind);
            let options = urgent(Priority::ALL[rng.gen_range(0..4)]);
            let fate = if rng.gen_bool(0.15) {
                Fate::CancelledOrProved
            } else {
                Fate::Proved
            };
            jobs.push((fate, engine.submit_with(request.unwrap(), options).unwrap()));
        }
        for (_, job) in jobs.iter().filter(|(fate, _)| *fate != Fate::Proved) {
            thread::sleep(Duration::from_millis(rng.gen_range(0..400)));
            job.cancel();
        }
        for (fate, job) in &jobs {
            check(*fate, job, job.progress().partitions);
            let count = match job.wait_bounded() {
                Ok(_) => &mut ran.proved,
                Err(_) => &mut ran.cancelled,
            };
            *count += 1;
        }
        let memory = engine.status().memory;
        ran.kept_bytes_max = ran.kept_bytes_max.max(memory.kept_bytes);
        if [first_look(rounds), rounds - 1].contains(&round) {
            common::wait_until("the pool is at rest", || {
                let memory = engine.status().memory;
                memory.pool_bytes == 0 && memory.kept_bytes <= partition_bytes
            });
            wait_until_resident_bytes_rest();
            let late = usize::from(round > first_look(rounds));
            ran.resident_bytes[late] = resident_bytes();
            ran.kept_bytes[late] = engine.status().memory.kept_bytes;
        }
    }
    common::wait_until("what was cancelled is gone", || {
        engine.status().partitions_running == 0
    });
    let status = engine.status();
    assert!(status.jobs.is_empty());
    assert_eq!(status.partitions_waiting, 0);
    assert_eq!(status.memory.used_bytes, status.memory.idle_bytes);
    ran.faults = status.devices[0].faults;
    engine.shutdown();
    ran
}

/// The same with the real circuits. Memory that is resident at rest does not grow, all of it.
#[test]
fn real_jobs_end_as_they_should_and_memory_stays_flat() {
    let _alone = alone();
    let rounds = rounds();
    let config = common::config();
    let each = partitions_bytes(&config);
    let started = Instant::now();
    let ran = real_jobs(&config, rounds);
    println!(
        "{} proved, {} cancelled, {} faults, {:.0} s; {:?} bytes kept",
        ran.proved,
        ran.cancelled,
        ran.faults,
        started.elapsed().as_secs_f64(),
        ran.kept_bytes_max,
    );
    assert_eq!(ran.proved + ran.cancelled, 10 * rounds);
    assert!(ran.faults > 0);
    // Whatever came together, there are no more blocks of a kind than partitions that
    // could use them at once: in synthesis, before and on devices, and after them, and
    // out of turn.
    let at_once = config.synthesis.partition_workers
        + config.pipeline.synthesis_lookahead
        + 2 * config.gpus.gpu_workers_per_device
        + 2 * config.pipeline.finish_workers
        + 2;
    assert!(ran.kept_bytes_max <= at_once as u64 * each.iter().sum::<u64>());
    println!(
        "resident {:?}, of which kept {:?}, at most {}",
        ran.resident_bytes, ran.kept_bytes, ran.kept_bytes_max
    );
    if let [Some(early), Some(late)] = ran.resident_bytes {
        let grown = late.saturating_sub(early);
        assert!(grown < early / 50, "{early} grew to {late} bytes");
    }
}
