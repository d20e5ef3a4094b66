//! The bytes that a process has on the heap, counted.
//!
//! A test that counts has a process of its own, and is the only one in it, since others would
//! allocate meanwhile:
//!
//! ```
//! use cuzk_testing::heap::{PeakAlloc, most_bytes};
//!
//! #[global_allocator]
//! static HEAP: PeakAlloc = PeakAlloc;
//!
//! assert!(most_bytes(HEAP, || drop(vec![7_u8; 1000])) >= 1000);
//! ```

pub use peak_alloc::PeakAlloc;

/// Returns the most bytes that `work` had on the heap at once, over those that were there before.
///
/// # Panics
/// If `heap` is not the process's global allocator: it would count nothing.
pub fn most_bytes(heap: PeakAlloc, work: impl FnOnce()) -> usize {
    heap.reset_peak_usage();
    let before = heap.peak_usage();
    assert_ne!(before, 0, "the heap is not the process's global allocator");
    work();
    heap.peak_usage() - before
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "not the process's global allocator")]
    fn another_heap_is_not_counted() {
        most_bytes(PeakAlloc, || drop(vec![7_u8; 1000]));
    }
}
