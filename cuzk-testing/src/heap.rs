//! The bytes that a process has on the heap, counted.
//!
//! A test that counts has a process of its own, and is the only one in it, since others would
//! allocate meanwhile:
//!
//! ```
//! use cuzk_testing::heap::CountingHeap;
//!
//! #[global_allocator]
//! static HEAP: CountingHeap = CountingHeap::new();
//!
//! assert!(HEAP.most_bytes(|| drop(vec![7_u8; 1000])) >= 1000);
//! ```
#![allow(unsafe_code)] // counts what it hands on to the system's allocator

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The system's allocator, which counts the bytes that are out.
#[derive(Debug, Default)]
pub struct CountingHeap {
    out_bytes: AtomicUsize,
    most_bytes: AtomicUsize,
}

impl CountingHeap {
    /// Returns an allocator that has given nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            out_bytes: AtomicUsize::new(0),
            most_bytes: AtomicUsize::new(0),
        }
    }

    /// Returns the most bytes that `work` had out at once, over those that were out before.
    pub fn most_bytes(&self, work: impl FnOnce()) -> usize {
        let before = self.out_bytes.load(Relaxed);
        self.most_bytes.store(before, Relaxed);
        work();
        self.most_bytes.load(Relaxed) - before
    }
}

// SAFETY: all of it is the system's.
unsafe impl GlobalAlloc for CountingHeap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let out = self.out_bytes.fetch_add(layout.size(), Relaxed) + layout.size();
        self.most_bytes.fetch_max(out, Relaxed);
        // SAFETY: the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        self.out_bytes.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's.
        unsafe { System.dealloc(block, layout) }
    }
}
