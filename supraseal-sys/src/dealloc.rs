//! Frees large values in the background, one at a time.
//!
//! The reason: unmapping hundreds of gigabytes from several threads at once stalls all
//! cores with TLB shootdowns. C++ does this with its own buffers, under its own mutex
//! (`csrc/dealloc.cpp`). Both threads give way to all other threads that want the
//! processor. So a caller that needs the memory by a certain time waits for it with
//! [`flush`]. Not for small values.
//!
//! Invariants:
//!
//! * A thread that frees a value holds `DEALLOC_MTX`, so at most one value is being
//!   freed at a time.
//! * At most `QUEUE_MAX` values wait. Beyond that the caller frees its own value, in
//!   its turn.
//! * C++ frees without a bound after [`set_cpp_unbounded`], and then only.
//! * Nothing here panics, and a panic in a value's `Drop` ends the freeing of that
//!   value only.

use core::cell::Cell;
use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::abi;

/// Held while a Rust value is being freed.
static DEALLOC_MTX: Mutex<()> = Mutex::new(());

/// The most values that wait to be freed. They are large, so more of them would hold
/// memory that the next proof needs.
const QUEUE_MAX: usize = 64;

/// The dealloc thread's nice value. It is the least weight that exists, a seventieth of
/// another thread's. If other threads leave it no time, it frees slowly. A caller that
/// needs the memory can wait with [`flush`], and then leaves it a core.
const NICE: i32 = 19;

static QUEUE: Mutex<Queue> = Mutex::new(Queue {
    waiting: VecDeque::new(),
    queued_ever: 0,
    freed_of_queued: 0,
    stats: SideStats {
        queued: 0,
        freeing: 0,
        freed: 0,
    },
    panicked: 0,
    started: false,
});
static CHANGED: Condvar = Condvar::new();

thread_local! {
    /// True if this thread is inside a value's `Drop`.
    static FREEING: Cell<bool> = const { Cell::new(false) };
}

type Garbage = Box<dyn Any + Send>;

struct Queue {
    waiting: VecDeque<Garbage>,
    queued_ever: u64,
    freed_of_queued: u64,
    stats: SideStats,
    panicked: u64,
    started: bool,
}

/// Counts of one language's side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SideStats {
    /// Values that wait.
    pub queued: u64,
    /// Values being freed now: 0 or 1.
    pub freeing: u64,
    /// Values freed since the process started.
    pub freed: u64,
}

/// Counts of both sides. The counts of each side are taken at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stats {
    /// Rust values.
    pub rust: SideStats,
    /// C++ buffers.
    pub cpp: SideStats,
    /// Rust values whose `Drop` panicked; they count as freed.
    pub rust_panicked: u64,
}

/// Drops `value` soon, on the dealloc thread.
///
/// If too many values wait, or no thread can be started, the value is dropped here,
/// after those that are being freed. If this is called from a `Drop` that this file
/// runs, the value is dropped at once, as part of that.
pub fn dealloc_async<T: Send + 'static>(value: T) {
    if FREEING.get() {
        drop(value);
    } else if let Some(left) = enqueue(Box::new(value)) {
        free(left);
    }
}

/// Decides for the process how C++ frees its buffers from now on. By default it frees one
/// after the other on one thread. With `unbounded` it frees each at once on a thread of its
/// own, which stalls all cores with TLB shootdowns. That is there to be measured.
pub fn set_cpp_unbounded(unbounded: bool) {
    abi::set_dealloc_unbounded(unbounded);
}

/// Waits until all Rust values and C++ buffers that were given before are freed. Inside
/// a `Drop` that this file runs it returns at once, because it would wait for itself.
pub fn flush() {
    if FREEING.get() {
        return;
    }
    let mut queue = lock(&QUEUE);
    // The queue is first in, first out, so a count tells which values are freed.
    let queued_before = queue.queued_ever;
    while queue.freed_of_queued < queued_before {
        queue = CHANGED.wait(queue).unwrap_or_else(PoisonError::into_inner);
    }
    drop(queue);
    abi::flush_dealloc();
}

/// Makes the system's allocator give back the pages that nobody uses. The allocator
/// keeps the memory that a thread freed, for later allocations of that thread. But any
/// thread may get its first large partition at any moment. The call takes milliseconds,
/// in which threads that allocate may wait. It does nothing if the allocator has no
/// such call.
pub fn trim_heap() {
    let _turn = lock(&DEALLOC_MTX);
    abi::trim_heap();
}

/// Returns the counts of waiting, freeing and freed values.
#[must_use]
pub fn stats() -> Stats {
    let cpp = abi::dealloc_stats();
    let queue = lock(&QUEUE);
    Stats {
        rust: SideStats {
            queued: queue.waiting.len() as u64,
            ..queue.stats
        },
        cpp: SideStats {
            queued: cpp.queued,
            freeing: cpp.freeing,
            freed: cpp.freed,
        },
        rust_panicked: queue.panicked,
    }
}

/// Queues `value`, or returns it if the caller must free it.
fn enqueue(value: Garbage) -> Option<Garbage> {
    let mut queue = lock(&QUEUE);
    if !queue.started {
        let thread = thread::Builder::new().name("cuzk-dealloc".into());
        queue.started = thread.spawn(free_forever).is_ok();
    }
    if !queue.started || queue.waiting.len() >= QUEUE_MAX {
        return Some(value);
    }
    queue.waiting.push_back(value);
    queue.queued_ever += 1;
    CHANGED.notify_all();
    None
}

/// Runs the dealloc thread, which ends with the process.
fn free_forever() {
    abi::give_way(NICE);
    let mut queue = lock(&QUEUE);
    loop {
        if let Some(value) = queue.waiting.pop_front() {
            drop(queue);
            free(value);
            queue = lock(&QUEUE);
            queue.freed_of_queued += 1;
            CHANGED.notify_all();
        } else {
            queue = CHANGED.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Drops `value` when no other value is being dropped.
fn free(value: Garbage) {
    let _one_at_a_time = lock(&DEALLOC_MTX);
    lock(&QUEUE).stats.freeing += 1;
    FREEING.set(true);
    let outcome = catch_unwind(AssertUnwindSafe(|| drop(value)));
    FREEING.set(false);
    let mut queue = lock(&QUEUE);
    queue.stats.freeing -= 1;
    queue.stats.freed += 1;
    if let Err(payload) = outcome {
        queue.panicked += 1;
        // Dropping the payload could panic again.
        core::mem::forget(payload);
    }
}

/// Locks, also after a panic: no change under either mutex is ever half-done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
