//! The cost of a journal on a disk: `rates DIRECTORY [REQUEST]`.
//!
//! REQUEST is a file; without it a request is made up. Prints:
//!
//! * the time of accepting, reading back and ending REQUEST, and its bytes on disk;
//! * the latency of recording a partition;
//! * the number of tiny jobs accepted in a second, by one thread and by eight.

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use cuzk_journal::{End, JobOptions, Journal, Limits};

const REPEATS: u32 = 5;
const RECORDS: u32 = 500;
const TINY_JOBS: u32 = 2_000;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let directory = arguments.next().ok_or("usage: rates DIRECTORY [REQUEST]")?;
    let request = match arguments.next() {
        Some(path) => std::fs::read(path)?,
        None => vec![b'7'; 50_000_000],
    };
    let directory = tempfile::tempdir_in(directory)?;
    let path = directory.path().join("measure.journal");
    let limits = Limits {
        jobs_max: u64::from(TINY_JOBS) * 2,
        ..Limits::default()
    };
    large(&Journal::open(&path, limits)?, &request)?;
    records(&Journal::open(&path, limits)?)?;
    for threads in [1, 8] {
        tiny(&path, limits, threads)?;
    }
    Ok(())
}

fn large(journal: &Journal, request: &[u8]) -> Result<(), Box<dyn Error>> {
    let options = options(10);
    let mut rounds = Vec::new();
    for round in 0..REPEATS {
        let id = format!("large-{round}");
        let accept = timed(|| journal.accept(&id, &options, request))?;
        let read = timed(|| journal.request(&id))?;
        let file_bytes = journal.usage()?.file_bytes;
        let end = timed(|| journal.end(&id, End::Cancelled))?;
        rounds.push((accept, read, end, file_bytes));
    }
    let (accept, read, end, _) = rounds.iter().min().ok_or("no rounds")?;
    let file_bytes = rounds.first().map_or(0, |round| round.3);
    println!(
        "request of {} bytes: accept {accept:?}, read back {read:?}, end {end:?}; \
         the file has {file_bytes} bytes with it, {} after {REPEATS} such jobs",
        request.len(),
        journal.usage()?.file_bytes,
    );
    Ok(())
}

fn records(journal: &Journal) -> Result<(), Box<dyn Error>> {
    journal.accept("records", &options(RECORDS), b"request")?;
    let mut times = Vec::new();
    for partition in 0..RECORDS {
        times.push(timed(|| {
            journal.finish_partition("records", partition, &[7; 192])
        })?);
    }
    times.sort_unstable();
    let (Some(median), Some(slow)) = (
        times.get(times.len() / 2),
        times.get(times.len() * 99 / 100),
    ) else {
        return Err("no records".into());
    };
    println!("record of a partition: median {median:?}, 99th percentile {slow:?}");
    Ok(journal.end("records", End::Cancelled)?)
}

fn tiny(path: &Path, limits: Limits, threads: u32) -> Result<(), Box<dyn Error>> {
    let journal = Journal::open(path, limits)?;
    let start = Instant::now();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|thread| {
                scope.spawn({
                    let journal = &journal;
                    move || worker(journal, thread, threads)
                })
            })
            .collect();
        workers.into_iter().try_for_each(|worker| {
            worker
                .join()
                .map_err(|_| "a worker panicked")?
                .map_err(|_| "refused")
        })
    })?;
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{threads} threads: {:.0} tiny jobs accepted a second",
        f64::from(TINY_JOBS) / seconds
    );
    for job in journal.pending()?.jobs {
        journal.forget(&job.id)?;
    }
    Ok(())
}

fn worker(journal: &Journal, thread: u32, threads: u32) -> Result<(), cuzk_journal::JournalError> {
    for job in (thread..TINY_JOBS).step_by(threads as usize) {
        journal.accept(&format!("tiny-{job}"), &options(1), &job.to_le_bytes())?;
    }
    Ok(())
}

fn options(partitions: u32) -> JobOptions {
    JobOptions {
        partitions,
        ..JobOptions::default()
    }
}

fn timed<T, E>(call: impl FnOnce() -> Result<T, E>) -> Result<Duration, E> {
    let start = Instant::now();
    call()?;
    Ok(start.elapsed())
}
