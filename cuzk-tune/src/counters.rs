//! Counts beside the clock: processor time, page faults, preemptions, TLB shootdowns
//! and cache misses.
//!
//! Invariant: a count that this machine does not offer is `None`, never zero.

use nix::sys::{
    resource::{Usage as Rusage, UsageWho, getrusage},
    time::{TimeVal, TimeValLike},
};
use std::{fs, io, time::Duration};

/// The counts of an interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Processor time of this process in its own code.
    pub user: Duration,
    /// Processor time of this process in the kernel.
    pub system: Duration,
    /// Pages that the kernel had to give to this process.
    pub page_faults: u64,
    /// The number of times that a thread of this process lost its core while it had
    /// work.
    pub preemptions: u64,
    /// Interrupts that made a core drop address translations. Counts the whole machine,
    /// with other processes.
    pub tlb_shootdowns: Option<u64>,
    /// Last-level cache misses of this process, if the machine counts them.
    pub cache_misses: Option<u64>,
    /// Loads of this process whose address translation was not in the data TLB, if the
    /// machine counts them.
    pub dtlb_misses: Option<u64>,
}

/// The counters of this process and of the threads that it starts later.
#[derive(Debug)]
pub struct Counters {
    cache_misses: Option<perf::Misses>,
    dtlb_misses: Option<perf::Misses>,
}

impl Counters {
    /// Opens the counters that this machine offers. Call it before threads are started;
    /// otherwise their cache misses are not counted.
    #[must_use]
    pub fn open() -> Self {
        Counters {
            cache_misses: perf::Misses::of_cache(),
            dtlb_misses: perf::Misses::of_dtlb(),
        }
    }

    /// Runs `work`, and returns its result with the counts.
    ///
    /// # Errors
    /// The error of the kernel, if it does not tell this process's use of it.
    pub fn count<R>(&mut self, work: impl FnOnce() -> R) -> io::Result<(R, Usage)> {
        let (tlb, misses) = (tlb_shootdowns(), read(&mut self.cache_misses));
        let dtlb = read(&mut self.dtlb_misses);
        let before = getrusage(UsageWho::RUSAGE_SELF)?;
        let result = work();
        let after = getrusage(UsageWho::RUSAGE_SELF)?;
        let usage = Usage {
            user: between(&before, &after, Rusage::user_time),
            system: between(&before, &after, Rusage::system_time),
            page_faults: faults(&after).saturating_sub(faults(&before)),
            preemptions: preemptions(&after).saturating_sub(preemptions(&before)),
            tlb_shootdowns: difference(tlb, tlb_shootdowns()),
            cache_misses: difference(misses, read(&mut self.cache_misses)),
            dtlb_misses: difference(dtlb, read(&mut self.dtlb_misses)),
        };
        Ok((result, usage))
    }
}

fn read(misses: &mut Option<perf::Misses>) -> Option<u64> {
    misses.as_mut()?.read()
}

fn between(before: &Rusage, after: &Rusage, time: fn(&Rusage) -> TimeVal) -> Duration {
    let micros = time(after).num_microseconds() - time(before).num_microseconds();
    Duration::from_micros(micros.max(0).unsigned_abs())
}

fn faults(usage: &Rusage) -> u64 {
    let faults = usage.minor_page_faults() + usage.major_page_faults();
    faults.max(0).unsigned_abs()
}

fn preemptions(usage: &Rusage) -> u64 {
    usage.involuntary_context_switches().max(0).unsigned_abs()
}

fn difference(before: Option<u64>, after: Option<u64>) -> Option<u64> {
    after?.checked_sub(before?)
}

fn tlb_shootdowns() -> Option<u64> {
    sum_of_line(&fs::read_to_string("/proc/interrupts").ok()?, "TLB:")
}

/// Returns the sum over all cores on the line that starts with `label`.
fn sum_of_line(interrupts: &str, label: &str) -> Option<u64> {
    let mut words = interrupts
        .lines()
        .map(str::split_whitespace)
        .find_map(|mut words| (words.next() == Some(label)).then_some(words))?
        .map_while(|word| word.parse::<u64>().ok())
        .peekable();
    words.peek()?;
    Some(words.sum())
}

#[cfg(target_os = "linux")]
mod perf {
    //! Hardware counters. A virtual machine often has none.

    use perf_event::events::{Cache, CacheId, CacheOp, CacheResult, Event, Hardware};
    use perf_event::{Builder, Counter};

    #[derive(Debug)]
    pub(super) struct Misses(Counter);

    impl Misses {
        pub(super) fn of_cache() -> Option<Self> {
            Self::open(Hardware::CACHE_MISSES)
        }

        pub(super) fn of_dtlb() -> Option<Self> {
            Self::open(Cache {
                which: CacheId::DTLB,
                operation: CacheOp::READ,
                result: CacheResult::MISS,
            })
        }

        fn open(event: impl Event) -> Option<Self> {
            let mut counter = Builder::new(event).inherit(true).build().ok()?;
            counter.enable().ok()?;
            Some(Misses(counter))
        }

        pub(super) fn read(&mut self) -> Option<u64> {
            self.0.read().ok()
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod perf {
    #[derive(Debug)]
    pub(super) enum Misses {}

    impl Misses {
        pub(super) fn of_cache() -> Option<Self> {
            None
        }

        pub(super) fn of_dtlb() -> Option<Self> {
            None
        }

        pub(super) fn read(&mut self) -> Option<u64> {
            match *self {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn counts_processor_time_and_faults() {
        let (touched, usage) = Counters::open()
            .count(|| {
                let start = Instant::now();
                while start.elapsed() < Duration::from_millis(30) {}
                // Only the length is used below, so the compiler may leave the bytes out.
                std::hint::black_box(vec![1u8; 64 << 20])
            })
            .unwrap();
        assert_eq!(touched.len(), 64 << 20);
        assert!(usage.user + usage.system >= Duration::from_millis(10));
        // 64 MiB in pages of at most 2 MiB.
        assert!(usage.page_faults >= 32, "{}", usage.page_faults);
    }

    #[test]
    fn counts_preemptions() {
        // More threads than cores, each with work for many time slices.
        let threads = 4 * std::thread::available_parallelism().unwrap().get();
        let spin = || {
            let start = Instant::now();
            while start.elapsed() < Duration::from_millis(200) {}
        };
        let (_, usage) = Counters::open()
            .count(|| {
                std::thread::scope(|scope| {
                    for _ in 0..threads {
                        scope.spawn(spin);
                    }
                });
            })
            .unwrap();
        assert!(usage.preemptions >= 4, "{}", usage.preemptions);
    }

    #[test]
    fn reads_the_line_of_all_cores() {
        let text =
            "           CPU0       CPU1\n  0:  5  6  IO-APIC\n TLB:  30  12   TLB shootdowns\n";
        assert_eq!(sum_of_line(text, "TLB:"), Some(42));
        assert_eq!(sum_of_line(text, "RES:"), None);
        assert_eq!(sum_of_line("TLB: none", "TLB:"), None);
    }

    #[test]
    fn what_was_not_counted_is_not_zero() {
        assert_eq!(difference(None, Some(1)), None);
        assert_eq!(difference(Some(1), None), None);
        assert_eq!(difference(Some(1), Some(1)), Some(0));
    }
}
