//! The address space of a process that has a limit of it (`ulimit -v`, `RLIMIT_AS`).
//!
//! Not the memory: a stack and an arena of the allocator have many addresses and little memory.
//! The invariant: what is left for the budget leaves addresses for all threads that are still to
//! be started. Without addresses even the smallest allocation ends the process, because Rust's
//! allocator returns no error.

use std::fs;
use std::path::Path;

use super::meminfo::line_bytes;

/// The addresses of a thread's stack, bytes. A thread of C++ has as many by default on Linux, and
/// one of Rust has a quarter.
const STACK_BYTES: u64 = 8 << 20;

/// The addresses that glibc's allocator takes for an arena on a machine of 64 bits
/// (`HEAP_MAX_SIZE` in its `arena.c`), bytes.
const ARENA_BYTES: u64 = 64 << 20;

/// The arenas for each core at which glibc begins to share them (`NARENAS_FROM_NCORES`).
const ARENAS_A_CORE: u64 = 8;

/// The addresses beside stacks, arenas and the budget, bytes. An arena is cut from a mapping of
/// twice its size, and the main thread has a heap.
const OTHER_BYTES: u64 = 128 << 20;

/// The addresses that a budget needs at least, bytes. Below that not even the partition of a
/// sector of 2 KiB has its vectors, its circuit and its parameters.
const BUDGET_MIN_BYTES: u64 = 256 << 20;

/// The addresses that the limit in a message has beyond the least one, bytes. A command looks again
/// when its engine starts, and has read its input by then.
const NAMED_BEYOND_BYTES: u64 = 64 << 20;

/// The threads of an engine beside its pools: workers, watchdog, journal, progress bar.
const OTHER_THREADS: u64 = 24;

/// The threads that a process is going to have, and the allocator's arenas for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Threads {
    pub(super) synthesis: u64,
    pub(super) gpu: u64,
    pub(super) cores: u64,
    /// The limit of arenas that the environment sets.
    pub(super) arenas_max: Option<u64>,
}

impl Threads {
    /// Returns the addresses, in bytes, of the threads that do not run yet. `running` is the
    /// number of those that do.
    fn to_come_bytes(self, running: u64) -> u64 {
        // Synthesis, two auxiliary pools of its size, and one for critical work. A backend and
        // the C++ side have a pool of `gpu_threads` each.
        let of_synthesis = self.synthesis.saturating_mul(4);
        let pools = of_synthesis.saturating_add(self.gpu.saturating_mul(2));
        let threads = pools.saturating_add(OTHER_THREADS);
        let of_cores = self.cores.saturating_mul(ARENAS_A_CORE);
        let arenas = threads.min(self.arenas_max.unwrap_or(of_cores));
        let stacks = threads.saturating_sub(running).saturating_mul(STACK_BYTES);
        let arenas = arenas.saturating_sub(running).saturating_mul(ARENA_BYTES);
        stacks.saturating_add(arenas).saturating_add(OTHER_BYTES)
    }
}

/// The limit of a process's address space, and what it has of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AddressSpace {
    limit_bytes: u64,
    taken_bytes: u64,
    running: u64,
}

impl AddressSpace {
    /// Reads the files of this process below `root`. Returns `None` without a limit.
    pub(super) fn read(root: &Path) -> Option<Self> {
        let text = |name| fs::read_to_string(root.join("proc/self").join(name)).ok();
        let limits = text("limits")?;
        let mut lines = limits.lines();
        let values = lines.find_map(|line| line.strip_prefix("Max address space"))?;
        let limit_bytes = values.split_whitespace().next()?.parse().ok()?;
        let status = text("status").unwrap_or_default();
        let running = status
            .lines()
            .find_map(|line| line.strip_prefix("Threads:"));
        Some(Self {
            limit_bytes,
            taken_bytes: line_bytes(&status, "VmSize:").unwrap_or(0),
            running: running
                .and_then(|text| text.trim().parse().ok())
                .unwrap_or(1),
        })
    }

    fn left_bytes(self) -> u64 {
        self.limit_bytes.saturating_sub(self.taken_bytes)
    }

    /// Returns the memory for which there is room, in bytes, at least 1: half of what is left
    /// beside the threads to come. Mapped parameters and the heap take the other half.
    pub(super) fn budget_bytes(self, threads: Threads) -> u64 {
        let to_come = threads.to_come_bytes(self.running);
        (self.left_bytes().saturating_sub(to_come) / 2).max(1)
    }

    /// Returns what is wrong with the limit, and what to do about it. Returns `None` if it leaves
    /// room for the threads to come and for the smallest partition.
    pub(super) fn problem(self, threads: Threads) -> Option<String> {
        let to_come = threads.to_come_bytes(self.running);
        let needed = to_come.saturating_add(BUDGET_MIN_BYTES);
        if self.left_bytes() >= needed {
            return None;
        }
        // `ulimit -v` counts in units of 1024 bytes.
        let limit = needed.saturating_add(self.taken_bytes);
        let limit_kib = limit.saturating_add(NAMED_BEYOND_BYTES).div_ceil(1024);
        Some(format!(
            "the limit of the address space ({} MiB) is too low for the threads and the \
             allocator's arenas; raise it (`ulimit -v {limit_kib}`, or `LimitAS=` of the \
             service), lower [synthesis] threads and [gpus] gpu_threads, or set \
             MALLOC_ARENA_MAX=2",
            self.limit_bytes >> 20
        ))
    }
}

#[cfg(test)]
mod tests {
    use cuzk_testing::folder_of;

    use super::*;

    const THREADS: Threads = Threads {
        synthesis: 2,
        gpu: 2,
        cores: 2,
        arenas_max: None,
    };

    fn with_limit(limit: &str, status: &str) -> Option<AddressSpace> {
        let text = "Limit      Soft Limit  Hard Limit  Units\nMax address space  ";
        let limits = format!("{text}{limit}  unlimited  bytes\n");
        let files = [("proc/self/limits", &*limits), ("proc/self/status", status)];
        AddressSpace::read(folder_of(&files).path())
    }

    #[test]
    fn a_limit_is_read_with_what_is_taken_of_it() {
        let status = "VmPeak: 9 kB\nVmSize:\t    1 kB\nThreads:\t3\n";
        let read = with_limit("3000", status).unwrap();
        assert_eq!((read.left_bytes(), read.running), (1976, 3));
        assert_eq!(with_limit("3000", "").unwrap().left_bytes(), 3000);
        assert_eq!(with_limit("unlimited", status), None);
        assert_eq!(AddressSpace::read(Path::new("/nowhere")), None);
    }

    /// A thread that runs has its stack and its arena already.
    #[test]
    fn threads_that_run_need_no_more_addresses() {
        let all = THREADS.to_come_bytes(0);
        assert_eq!(all, 36 * STACK_BYTES + 16 * ARENA_BYTES + OTHER_BYTES);
        let one = all - THREADS.to_come_bytes(1);
        assert_eq!(one, STACK_BYTES + ARENA_BYTES);
        assert_eq!(THREADS.to_come_bytes(1000), OTHER_BYTES);
        let few = Threads {
            arenas_max: Some(2),
            ..THREADS
        };
        assert_eq!(all - few.to_come_bytes(0), 14 * ARENA_BYTES);
    }

    #[test]
    fn more_threads_than_addresses_are_told_too() {
        let threads = Threads {
            synthesis: u64::MAX,
            gpu: u64::MAX,
            ..THREADS
        };
        let space = with_limit("1000000", "Threads: 1\n").unwrap();
        assert!(space.problem(threads).is_some());
        assert_eq!(space.budget_bytes(threads), 1);
    }

    /// The limit that the message names is beyond the least one that has no problem.
    #[test]
    fn a_limit_without_room_is_told_with_one_that_has_it() {
        let status = "VmSize: 1024 kB\nThreads: 1\n";
        let told = with_limit("1000000", status).unwrap().problem(THREADS);
        let told = told.unwrap();
        let (_, named) = told.split_once("ulimit -v ").unwrap();
        let (kib, _) = named.split_once('`').unwrap();
        let bytes = kib.parse::<u64>().unwrap() * 1024;
        let problem = |bytes: u64| {
            let space = with_limit(&bytes.to_string(), status).unwrap();
            space.problem(THREADS)
        };
        let least = bytes - NAMED_BEYOND_BYTES;
        assert_eq!(problem(least), None);
        assert!(problem(least - 1024).is_some());
        let space = with_limit(&least.to_string(), status).unwrap();
        assert_eq!(space.budget_bytes(THREADS), BUDGET_MIN_BYTES / 2);
        let low = with_limit("1000000", status).unwrap();
        assert_eq!(low.budget_bytes(THREADS), 1);
    }
}
