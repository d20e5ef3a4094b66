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

/// Counters that are looked at after each input as soon as one input has reached one of them.
const BLOCK_COUNTERS: usize = 1024;

/// In a hurry the other blocks are looked at after so many inputs.
const HURRIED_TIMES: u32 = 256;

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

    /// Makes [`Self::take`] faster from now on. It may miss counters then for some inputs, if no input
    /// before has reached the code around them.
    fn hurry(&mut self) {}
}

/// Code without counters.
#[derive(Debug)]
pub(crate) struct Uncounted;

impl Counters for Uncounted {
    fn take(&mut self, _: &mut dyn FnMut(usize, u8)) {}
}

/// The counters of this program. A program has half a million, and most are of code that no input
/// reaches. Looking at all of them takes longer than many a decoder.
#[derive(Debug)]
pub(crate) struct Compiled {
    blocks: Vec<Block>,
    /// How often counters were taken since [`Counters::hurry`].
    hurried: Option<u32>,
}

/// A part of the counters.
#[derive(Debug)]
struct Block {
    counters: &'static [AtomicU8],
    /// The number of the first counter.
    first: usize,
    /// An input has reached one of them.
    is_reached: bool,
}

impl Compiled {
    /// Returns None if the program was compiled without counters.
    pub(crate) fn find() -> Option<Self> {
        let regions = REGIONS.lock().unwrap_or_else(PoisonError::into_inner);
        (!regions.is_empty()).then(|| Self::of(&regions))
    }

    fn of(regions: &[&'static [AtomicU8]]) -> Self {
        let mut blocks = Vec::new();
        let mut first = 0;
        for counters in regions.iter().flat_map(|all| all.chunks(BLOCK_COUNTERS)) {
            blocks.push(Block {
                counters,
                first,
                is_reached: false,
            });
            first += counters.len();
        }
        Self {
            blocks,
            hurried: None,
        }
    }
}

impl Counters for Compiled {
    fn take(&mut self, visit: &mut dyn FnMut(usize, u8)) {
        let is_all = match &mut self.hurried {
            None => true,
            Some(times) => {
                *times += 1;
                times.is_multiple_of(HURRIED_TIMES)
            }
        };
        for block in &mut self.blocks {
            if block.is_reached || self.hurried.is_none() {
                block.take(visit);
            } else if is_all {
                // It is not known which of the last inputs has reached it.
                block.take(&mut |_, _| ());
            }
        }
    }

    fn hurry(&mut self) {
        self.hurried = Some(0);
    }
}

impl Block {
    fn take(&mut self, visit: &mut dyn FnMut(usize, u8)) {
        // SAFETY: any eight bytes are an AtomicU64, and both types may be written while they are
        // shared. Only the thread that fuzzes reads here: no other uses the same bytes with the
        // size of a word. Instrumented code of other threads may lose an increment.
        let (head, words, tail) = unsafe { self.counters.align_to::<AtomicU64>() };
        let tail_at = self.first + self.counters.len() - tail.len();
        let is_reached = &mut self.is_reached;
        let mut visit = |at, count| {
            *is_reached = true;
            visit(at, count);
        };
        take_bytes(head, self.first, &mut visit);
        take_words(words, self.first + head.len(), &mut visit);
        take_bytes(tail, tail_at, &mut visit);
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
        let mut compiled = Compiled::of(&regions);
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
    fn in_a_hurry_blocks_count_after_they_were_reached() {
        let all: Vec<AtomicU8> = (0..10_000).map(|_| AtomicU8::new(0)).collect();
        let region = &*Vec::leak(all);
        let mut compiled = Compiled::of(&[region]);
        let taken = |compiled: &mut Compiled, reached: &[usize]| {
            for at in reached {
                region[*at].store(1, Relaxed);
            }
            let mut taken = Vec::new();
            compiled.take(&mut |at, _| taken.push(at));
            taken
        };
        assert_eq!(taken(&mut compiled, &[5, 9_999]), [5, 9_999]);
        compiled.hurry();
        // 2,000 is in another block. It is missed until all blocks are looked at.
        for _ in 0..HURRIED_TIMES {
            assert_eq!(taken(&mut compiled, &[6, 2_000]), [6]);
        }
        assert_eq!(taken(&mut compiled, &[]), []);
        assert_eq!(taken(&mut compiled, &[7, 1_999, 2_000]), [7, 1_999, 2_000]);
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
