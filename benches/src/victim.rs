//! Foreground work that suffers from what happens to memory behind its back.

use std::{
    hint::black_box,
    panic::resume_unwind,
    sync::Barrier,
    thread,
    time::{Duration, Instant},
};

/// The work of a victim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    /// Reads and writes its own memory, a cache line at a time, all over it:
    /// it needs translations, and loses them to shootdowns.
    Walk,
    /// Asks for memory and touches every page, again and again: it needs the
    /// locks that an unmapping thread holds.
    Allocate,
}

impl Deed {
    /// A word for tables.
    pub fn name(self) -> &'static str {
        match self {
            Deed::Walk => "walks",
            Deed::Allocate => "allocates",
        }
    }
}

/// Threads that do a fixed amount of work.
#[derive(Debug)]
pub struct Victim {
    deed: Deed,
    rounds: usize,
    memories: Vec<Vec<u64>>,
}

const PAGE_WORDS: usize = 512;
const LINE_WORDS: usize = 8;
/// The memory of a thread that walks. It is larger than the thread's own caches. It fits
/// into the TLB and into the thread's share of the last cache. So little slows it down
/// except the measured work.
const WALKED_BYTES: usize = 8 << 20;

/// The size of one allocation of a thread that allocates.
const ALLOCATED_BYTES: usize = 32 << 20;

/// How long the victim works before what it suffers from begins.
const LEAD: Duration = Duration::from_millis(5);

impl Victim {
    /// `threads` threads, each of which goes through its memory `rounds`
    /// times.
    pub fn new(deed: Deed, threads: usize, rounds: usize) -> Self {
        let words = match deed {
            Deed::Walk => WALKED_BYTES / size_of::<u64>(),
            Deed::Allocate => 0,
        };
        Victim {
            deed,
            rounds,
            memories: vec![vec![1; words]; threads],
        }
    }

    /// Does the work once. Runs `meanwhile` on the calling thread when all threads are at
    /// work. Returns the time from the first start to the last end, and the result of
    /// `meanwhile`. The time is by the threads' own clocks, because the calling thread may
    /// be kept from a core until all is over.
    pub fn work<R>(&mut self, meanwhile: impl FnOnce() -> R) -> (Duration, R) {
        let (deed, rounds) = (self.deed, self.rounds);
        let ready = &Barrier::new(self.memories.len() + 1);
        thread::scope(|scope| {
            let threads: Vec<_> = (self.memories.iter_mut())
                .map(|memory| {
                    scope.spawn(move || {
                        ready.wait();
                        let start = Instant::now();
                        match deed {
                            Deed::Walk => walk(memory, rounds),
                            Deed::Allocate => allocate(rounds),
                        }
                        (start, Instant::now())
                    })
                })
                .collect();
            ready.wait();
            // They have a core each before anybody else wants one.
            thread::sleep(LEAD);
            let done = meanwhile();
            let spans: Vec<(Instant, Instant)> = (threads.into_iter())
                .map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
                .collect();
            let first = spans.iter().map(|&(start, _)| start).min();
            let last = spans.iter().map(|&(_, end)| end).max();
            let took = first
                .zip(last)
                .map(|(first, last)| last.duration_since(first));
            (took.unwrap_or_default(), done)
        })
    }
}

/// Visits every cache line `rounds` times, in an order in which the next page
/// is not the one that the processor expects.
fn walk(memory: &mut [u64], rounds: usize) {
    let lines = memory.len() / LINE_WORDS;
    // Odd, so that it meets every one of a power of two of lines.
    let stride = (lines / 3) | 1;
    for _ in 0..rounds {
        let mut at = 0;
        for _ in 0..lines {
            memory[at * LINE_WORDS] += 1;
            at = (at + stride) % lines;
        }
    }
}

fn allocate(rounds: usize) {
    for _ in 0..rounds {
        let mut memory = vec![0u64; ALLOCATED_BYTES / size_of::<u64>()];
        memory
            .iter_mut()
            .step_by(PAGE_WORDS)
            .for_each(|word| *word = 1);
        black_box(&memory);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_visits_every_line() {
        let mut memory = vec![0; 1 << 10];
        walk(&mut memory, 3);
        for (at, &word) in memory.iter().enumerate() {
            assert_eq!(word, if at % LINE_WORDS == 0 { 3 } else { 0 });
        }
    }

    #[test]
    fn work_takes_time() {
        for deed in [Deed::Walk, Deed::Allocate] {
            let (took, meanwhile) = Victim::new(deed, 2, 1).work(|| 7);
            assert!(took > Duration::ZERO);
            assert_eq!(meanwhile, 7);
        }
    }
}
