//! A process with a journal is killed without warning, at random points, again and
//! again.
//!
//! A child process follows scripts, one for each thread, and reports each acknowledged
//! step. After it is killed, the journal must match the acknowledged steps of each
//! thread, or one step more.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failure in a test fails the test"
)]

mod common;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::{limits, noise, options};
use cuzk_bounded::{BoundedChild, BoundedJoin};
use cuzk_journal::{Accepted, End, Journal, State};
use rand::seq::SliceRandom as _;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

const KILLS: u32 = 60;
const THREADS: usize = 2;
/// Carries the journal's path and the number of acknowledged steps of each script to
/// the child.
const CHILD: &str = "CUZK_JOURNAL_TEST_CHILD";

#[derive(Clone, Debug)]
enum Step {
    Accept {
        id: String,
        request_bytes: usize,
        partitions: u32,
    },
    Finish {
        id: String,
        partition: u32,
    },
    End {
        id: String,
        end: End,
    },
    Forget {
        id: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Job {
    request: Vec<u8>,
    finished: BTreeMap<u32, Vec<u8>>,
    end: Option<End>,
}

type Jobs = BTreeMap<String, Job>;

/// Returns the script of a thread: jobs, one after the other. Some stay without an end
/// for a while, so that there is always a job to resume.
fn script(thread: usize) -> impl Iterator<Item = Step> {
    (0u64..).flat_map(move |number| {
        let mut rng = ChaCha8Rng::seed_from_u64((number << 8) + thread as u64);
        let id = format!("{thread}-{number}");
        let partitions = rng.gen_range(1..6);
        let large = rng.gen_ratio(1, 4);
        let request_bytes = rng.gen_range(0..if large { 2_000_000 } else { 2_000 });
        let mut steps = vec![Step::Accept {
            id: id.clone(),
            request_bytes,
            partitions,
        }];
        let mut order: Vec<u32> = (0..partitions).collect();
        order.shuffle(&mut rng);
        let finish = order.into_iter().map(|partition| Step::Finish {
            id: id.clone(),
            partition,
        });
        steps.extend(finish);
        if let Some(earlier) = number.checked_sub(3) {
            let id = format!("{thread}-{earlier}");
            let end = match earlier % 3 {
                0 => End::Cancelled,
                1 => End::Failed(id.clone()),
                _ => End::Done(noise(earlier, 1920)),
            };
            steps.push(Step::End { id, end });
        }
        if let Some(earlier) = number.checked_sub(20) {
            steps.push(Step::Forget {
                id: format!("{thread}-{earlier}"),
            });
        }
        steps
    })
}

fn seed(id: &str) -> u64 {
    id.bytes().fold(7, |seed, byte| seed * 31 + u64::from(byte))
}

fn proof(id: &str, partition: u32) -> Vec<u8> {
    noise(seed(id) + u64::from(partition), 192)
}

/// Executes a step, which the killed process may have executed already.
fn act(journal: &Journal, step: &Step) {
    match step {
        Step::Accept {
            id,
            request_bytes,
            partitions,
        } => {
            let request = noise(seed(id), *request_bytes);
            match journal.accept(id, &options(*partitions), &request).unwrap() {
                Accepted::New | Accepted::Attached(State::Pending) => {}
                Accepted::Attached(State::Ended(end)) => panic!("{id}: {end:?}"),
            }
        }
        Step::Finish { id, partition } => {
            journal
                .finish_partition(id, *partition, &proof(id, *partition))
                .unwrap();
        }
        Step::End { id, end } => journal.end(id, end.clone()).unwrap(),
        Step::Forget { id } => {
            journal.forget(id).unwrap();
        }
    }
}

fn imagine(jobs: &mut Jobs, step: &Step) {
    match step {
        Step::Accept {
            id, request_bytes, ..
        } => {
            let request = noise(seed(id), *request_bytes);
            let job = Job {
                request,
                finished: BTreeMap::new(),
                end: None,
            };
            jobs.insert(id.clone(), job);
        }
        Step::Finish { id, partition } => {
            let job = jobs.get_mut(id).unwrap();
            job.finished.insert(*partition, proof(id, *partition));
        }
        Step::End { id, end } => {
            let job = jobs.get_mut(id).unwrap();
            *job = Job {
                request: Vec::new(),
                finished: BTreeMap::new(),
                end: Some(end.clone()),
            };
        }
        Step::Forget { id } => {
            jobs.remove(id);
        }
    }
}

/// Returns the contents of the journal for `thread`. `known` are the ids that it may
/// have.
fn stored(journal: &Journal, thread: usize, known: &[String]) -> Jobs {
    let mut jobs = Jobs::new();
    let pending = journal.pending().unwrap();
    assert!(pending.damaged.is_empty(), "{:?}", pending.damaged);
    for job in pending.jobs {
        if job.id.starts_with(&format!("{thread}-")) {
            let request = journal.request(&job.id).unwrap();
            let finished = job.finished.into_iter().collect();
            jobs.insert(
                job.id,
                Job {
                    request,
                    finished,
                    end: None,
                },
            );
        }
    }
    for id in known {
        if let Some(State::Ended(end)) = journal.state(id).unwrap() {
            let job = Job {
                request: Vec::new(),
                finished: BTreeMap::new(),
                end: Some(end),
            };
            assert!(
                jobs.insert(id.clone(), job).is_none(),
                "{id} is pending and has ended"
            );
        }
    }
    jobs
}

/// Is the child process. Not a test of its own: the other test starts and kills it.
#[test]
#[ignore = "it is the other test's child"]
fn child() {
    let Ok(told) = std::env::var(CHILD) else {
        return;
    };
    let mut told = told.split('|');
    let journal = Journal::open(told.next().unwrap(), limits()).unwrap();
    let acknowledged: Vec<usize> = told.map(|count| count.parse().unwrap()).collect();
    std::thread::scope(|scope| {
        for (thread, skip) in acknowledged.into_iter().enumerate() {
            let journal = &journal;
            scope.spawn(move || {
                let mut out = std::io::stdout();
                for step in script(thread).skip(skip) {
                    act(journal, &step);
                    writeln!(out, "\nack {thread}").unwrap();
                }
            });
        }
    });
}

fn spawn(path: &Path, acknowledged: &[usize; THREADS]) -> Child {
    let counts: String = acknowledged
        .iter()
        .map(|count| format!("|{count}"))
        .collect();
    Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "child", "--nocapture"])
        .env(CHILD, format!("{}{counts}", path.display()))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Lets a child run for `time`, kills it, and counts the steps that it acknowledged.
fn run_and_kill(path: &Path, acknowledged: &mut [usize; THREADS], time: Duration) {
    let mut child = spawn(path, acknowledged);
    let out = child.stdout.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut acks = [0; THREADS];
        for line in BufReader::new(out).lines() {
            // The last line may have been cut off; its step is not acknowledged then.
            if let Some(Ok(thread)) = line.unwrap().strip_prefix("ack ").map(str::parse::<usize>) {
                acks[thread] += 1;
            }
        }
        acks
    });
    std::thread::sleep(time);
    child.kill().unwrap();
    let output = child.wait_with_output_bounded().unwrap();
    assert_eq!(
        output.status.code(),
        None,
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    for (count, acks) in acknowledged.iter_mut().zip(reader.join_bounded().unwrap()) {
        *count += acks;
    }
}

#[test]
fn killed_at_random_points_nothing_acknowledged_is_lost() {
    let directory = tempfile::tempdir().unwrap();
    let path: PathBuf = directory.path().join("j");
    let mut rng = ChaCha8Rng::seed_from_u64(50);
    let mut acknowledged = [0; THREADS];
    let (mut kills, mut worked, mut fruitless) = (0, 0, 0);
    while kills < KILLS || worked < KILLS / 3 {
        let before = acknowledged;
        // On a slow machine, too, some child lives long enough to do a step.
        let time = Duration::from_millis(rng.gen_range(5..250 * (1 + fruitless)));
        run_and_kill(&path, &mut acknowledged, time);
        if acknowledged == before {
            fruitless += 1;
        } else {
            (worked, fruitless) = (worked + 1, 0);
        }
        kills += 1;
        // Every third time the next child is killed during or after its recovery.
        if kills % 3 == 0 {
            continue;
        }
        if !path.exists() {
            assert_eq!(acknowledged, [0; THREADS]);
            continue;
        }
        let journal = Journal::open(&path, limits()).unwrap();
        for (thread, count) in acknowledged.into_iter().enumerate() {
            check(&journal, thread, count);
        }
    }
}

fn check(journal: &Journal, thread: usize, count: usize) {
    let mut jobs = Jobs::new();
    let mut known = Vec::new();
    for (done, step) in script(thread).take(count + 1).enumerate() {
        if let Step::Accept { id, .. } = &step {
            known.push(id.clone());
        }
        if done < count {
            imagine(&mut jobs, &step);
        }
    }
    let stored = stored(journal, thread, &known);
    if stored == jobs {
        return;
    }
    imagine(&mut jobs, &script(thread).nth(count).unwrap());
    assert!(
        stored == jobs,
        "thread {thread} after {count} acknowledged steps"
    );
}
