//! The edges that an input reached, counted by the code under test.
//!
//! LLVM's SanitizerCoverage gives each edge a counter of one byte, which the edge increments.
//! `.ci/guided-rustc` compiles with it. Before `main`, a constructor of the compiler's calls
//! [`__sanitizer_cov_8bit_counters_init`] with all counters of the program. A program that was
//! compiled without counters does not call it.

use std::slice;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// Words that are looked at together, because nearly all are zero: a line of the cache.
const LINE_WORDS: usize = 8;

static REGIONS: Mutex<Vec<&'static [AtomicU8]>> = Mutex::new(Vec::new());

/// Takes the counters from `start` to `stop`. A constructor calls it, for each module once and
/// often with the counters of all modules.
///
/// # Safety
/// As [`add`].
#[unsafe(no_mangle)]
unsafe extern "C" fn __sanitizer_cov_8bit_counters_init(start: *mut u8, stop: *mut u8) {
    let mut regions = REGIONS.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: the caller promises the same.
    unsafe { add(&mut regions, start, stop) };
}

/// Adds the counters from `start` to `stop`, if they are not there.
///
/// # Safety
/// There are bytes from `start` to `stop`, for as long as the process lives. Only instrumented
/// code and this module read and write them.
unsafe fn add(regions: &mut Vec<&'static [AtomicU8]>, start: *mut u8, stop: *mut u8) {
    let bytes = stop.addr().saturating_sub(start.addr());
    if start.is_null() || bytes == 0 {
        return;
    }
    // SAFETY: the caller promises the bytes. AtomicU8 has the layout of u8, and may be shared.
    let region = unsafe { slice::from_raw_parts(start.cast::<AtomicU8>().cast_const(), bytes) };
    if regions
        .iter()
        .all(|known| known.as_ptr() != region.as_ptr())
    {
        regions.push(region);
    }
}

/// Counters of the code under test.
pub(crate) trait Counters {
    /// Calls `visit` with the number and the value of each counter that is not zero. Sets them to
    /// zero.
    fn take(&mut self, visit: &mut dyn FnMut(usize, u8));
}

/// Code without counters.
#[derive(Debug)]
pub(crate) struct Uncounted;

impl Counters for Uncounted {
    fn take(&mut self, _: &mut dyn FnMut(usize, u8)) {}
}

/// The counters of this program.
#[derive(Debug)]
pub(crate) struct Compiled(Vec<&'static [AtomicU8]>);

impl Compiled {
    /// Returns None if the program was compiled without counters.
    pub(crate) fn find() -> Option<Self> {
        let regions = REGIONS.lock().unwrap_or_else(PoisonError::into_inner);
        (!regions.is_empty()).then(|| Self(regions.clone()))
    }
}

impl Counters for Compiled {
    fn take(&mut self, visit: &mut dyn FnMut(usize, u8)) {
        let mut first = 0;
        for region in &self.0 {
            // SAFETY: any eight bytes are an AtomicU64, and both types may be written while they
            // are shared. No other thread uses the same bytes with another size: only the thread
            // that fuzzes reads here. Instrumented code of other threads may lose an increment.
            let (head, words, tail) = unsafe { region.align_to::<AtomicU64>() };
            take_bytes(head, first, visit);
            take_words(words, first + head.len(), visit);
            take_bytes(tail, first + region.len() - tail.len(), visit);
            first += region.len();
        }
    }
}

fn take_bytes(bytes: &[AtomicU8], first: usize, visit: &mut dyn FnMut(usize, u8)) {
    for (at, byte) in bytes.iter().enumerate() {
        let count = byte.load(Relaxed);
        if count != 0 {
            byte.store(0, Relaxed);
            visit(first + at, count);
        }
    }
}

fn take_words(words: &[AtomicU64], first: usize, visit: &mut dyn FnMut(usize, u8)) {
    for (line_at, line) in words.chunks(LINE_WORDS).enumerate() {
        if line.iter().fold(0, |any, word| any | word.load(Relaxed)) == 0 {
            continue;
        }
        for (word_at, word) in line.iter().enumerate() {
            let counts = word.load(Relaxed);
            if counts == 0 {
                continue;
            }
            word.store(0, Relaxed);
            let at = first + (line_at * LINE_WORDS + word_at) * size_of::<u64>();
            for (byte_at, count) in counts.to_ne_bytes().into_iter().enumerate() {
                if count != 0 {
                    visit(at + byte_at, count);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_counter_that_is_not_zero_is_visited_once() {
        // No multiple of a word, and not at a word's address.
        let all: Vec<AtomicU8> = (0..1_000).map(|_| AtomicU8::new(0)).collect();
        let regions = [&Vec::leak(all)[3..], &Vec::leak(vec![])[..]];
        let mut compiled = Compiled(regions.to_vec());
        let taken = |compiled: &mut Compiled| {
            let mut taken = Vec::new();
            compiled.take(&mut |at, count| taken.push((at, count)));
            taken
        };
        assert_eq!(taken(&mut compiled), []);
        let counts = [
            (0, 1),
            (1, 2),
            (4, 255),
            (5, 6),
            (12, 7),
            (500, 8),
            (501, 9),
            (995, 1),
            (996, 3),
        ];
        for (at, count) in counts {
            regions[0][at].store(count, Relaxed);
        }
        assert_eq!(taken(&mut compiled), counts);
        assert_eq!(taken(&mut compiled), []);
    }

    #[test]
    fn regions_are_announced_more_than_once() {
        let bytes = Vec::leak(vec![0_u8; 10]).as_mut_ptr_range();
        let mut regions = Vec::new();
        for start in [bytes.start, bytes.end, bytes.start] {
            // SAFETY: nobody else uses the bytes, which are never freed.
            unsafe { add(&mut regions, start, bytes.end) };
        }
        let lengths: Vec<_> = regions.iter().map(|region| region.len()).collect();
        assert_eq!(lengths, [10]);
    }
}
