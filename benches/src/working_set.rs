//! What a partition leaves behind, and the ways to get rid of it.
//!
//! Invariant: a [`Gauge`] counts exactly the working sets that are being
//! unmapped, so what an arm claims about its concurrency is what it did.

use crate::Result;
use std::{
    mem,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
};
use supraseal_sys::dealloc;

/// How many are being unmapped now, and the most there were.
#[derive(Debug, Default)]
pub struct Gauge {
    now: AtomicUsize,
    max: AtomicUsize,
    ever: AtomicUsize,
}

impl Gauge {
    fn enter(&self) {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.max.fetch_max(now, Ordering::SeqCst);
        self.ever.fetch_add(1, Ordering::SeqCst);
    }

    fn leave(&self) {
        self.now.fetch_sub(1, Ordering::SeqCst);
    }

    /// The most at one time.
    pub fn max(&self) -> usize {
        self.max.load(Ordering::SeqCst)
    }

    /// All that ever were.
    pub fn ever(&self) -> usize {
        self.ever.load(Ordering::SeqCst)
    }
}

/// A few vectors, each large enough to be mapped on its own.
#[derive(Debug)]
pub struct WorkingSet {
    vectors: Vec<Vec<u64>>,
    gauge: Arc<Gauge>,
}

const PAGE_WORDS: usize = 512;

impl WorkingSet {
    /// `vectors` vectors of `bytes` bytes each, every page touched.
    pub fn new(vectors: usize, bytes: usize, gauge: &Arc<Gauge>) -> Self {
        let mut set = WorkingSet {
            vectors: vec![vec![0; bytes / size_of::<u64>()]; vectors],
            gauge: Arc::clone(gauge),
        };
        set.fill();
        set
    }

    /// Writes to every page, as a partition's stages would.
    pub fn fill(&mut self) {
        for vector in &mut self.vectors {
            vector
                .iter_mut()
                .step_by(PAGE_WORDS)
                .for_each(|word| *word += 1);
        }
    }

    /// Counts what follows elsewhere.
    fn regauge(&mut self, gauge: &Arc<Gauge>) {
        self.gauge = Arc::clone(gauge);
    }
}

impl Drop for WorkingSet {
    fn drop(&mut self) {
        self.gauge.enter();
        drop(mem::take(&mut self.vectors));
        self.gauge.leave();
    }
}

/// The two sides of the engine that free after a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Witnesses and evaluations.
    Rust,
    /// Selected scalars and bases.
    Cpp,
}

/// What is done with a working set that is no longer needed.
#[derive(Debug)]
pub enum Disposal {
    /// It is kept until the measurement is over: nothing is freed.
    Keep(Vec<WorkingSet>),
    /// A detached thread each.
    Unbounded(Vec<JoinHandle<()>>),
    /// One a side at a time, each by its thread under its static mutex; C++'s is
    /// given what this function is.
    Serial(fn(WorkingSet) -> Result<()>),
    /// It goes back to the pool it was taken from.
    Recycle(Pool),
}

impl Disposal {
    /// Disposes of a set. Returns at once.
    ///
    /// # Errors
    /// If C++ has no memory to note it.
    pub fn dispose(&mut self, set: WorkingSet, side: Side) -> Result<()> {
        match self {
            Disposal::Keep(kept) => kept.push(set),
            Disposal::Unbounded(threads) => threads.push(thread::spawn(move || drop(set))),
            Disposal::Serial(in_cpp) => match side {
                Side::Rust => dealloc::dealloc_async(set),
                Side::Cpp => in_cpp(set)?,
            },
            Disposal::Recycle(pool) => pool.give(set),
        }
        Ok(())
    }

    /// Waits until everything that is to be freed is freed.
    pub fn settle(&mut self) {
        match self {
            Disposal::Keep(_) | Disposal::Recycle(_) => {}
            Disposal::Unbounded(threads) => {
                for thread in threads.drain(..) {
                    if let Err(panic) = thread.join() {
                        std::panic::resume_unwind(panic);
                    }
                }
            }
            Disposal::Serial(_) => dealloc::flush(),
        }
    }
}

/// Working sets that wait to be used again, at most a fixed number.
///
/// It does what the engine's own pool does (`cuzk_core::memory::buffer`): what
/// fits is taken from a bounded shelf, without a system call. The engine's is not
/// used here, because linking `cuzk-core` costs minutes of compilation, all of
/// Filecoin's circuits among them.
#[derive(Debug)]
pub struct Pool {
    shelf: Vec<WorkingSet>,
    shelf_max: usize,
}

impl Pool {
    /// An empty pool that keeps at most `shelf_max` sets.
    pub fn new(shelf_max: usize) -> Self {
        Pool {
            shelf: Vec::new(),
            shelf_max,
        }
    }

    /// A set of this shape, filled anew: one from the shelf if there is one.
    pub fn take(&mut self, vectors: usize, bytes: usize, gauge: &Arc<Gauge>) -> WorkingSet {
        let words = bytes / size_of::<u64>();
        let fits = |set: &WorkingSet| {
            set.vectors.len() == vectors && set.vectors.iter().all(|vector| vector.len() == words)
        };
        match self.shelf.iter().position(fits) {
            Some(at) => {
                let mut set = self.shelf.swap_remove(at);
                set.regauge(gauge);
                set.fill();
                set
            }
            None => WorkingSet::new(vectors, bytes, gauge),
        }
    }

    /// Puts a set on the shelf, or frees it if the shelf is full.
    pub fn give(&mut self, set: WorkingSet) {
        if self.shelf.len() < self.shelf_max {
            self.shelf.push(set);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use supraseal_sys::test_hooks::dealloc_in_cpp;

    const BYTES: usize = 1 << 20;

    fn dispose_all(mut disposal: Disposal) -> (Arc<Gauge>, Disposal) {
        let gauge = Arc::new(Gauge::default());
        for side in [Side::Rust, Side::Cpp, Side::Rust, Side::Cpp] {
            let set = WorkingSet::new(2, BYTES, &gauge);
            disposal.dispose(set, side).unwrap();
        }
        disposal.settle();
        (gauge, disposal)
    }

    #[test]
    fn every_way_frees_what_it_says() {
        let (kept, sets) = dispose_all(Disposal::Keep(Vec::new()));
        assert_eq!(kept.ever(), 0);
        drop(sets);
        assert_eq!((kept.ever(), kept.max()), (4, 1));
        let (unbounded, _) = dispose_all(Disposal::Unbounded(Vec::new()));
        assert_eq!(unbounded.ever(), 4);
        let (serial, _) = dispose_all(Disposal::Serial(|set| Ok(dealloc_in_cpp(set)?)));
        assert_eq!(serial.ever(), 4);
        assert!(serial.max() <= 2);
        let (recycled, _pool) = dispose_all(Disposal::Recycle(Pool::new(4)));
        assert_eq!(recycled.ever(), 0);
    }

    #[test]
    fn a_pool_gives_back_what_fits_and_is_bounded() {
        let gauge = Arc::new(Gauge::default());
        let mut pool = Pool::new(1);
        pool.give(WorkingSet::new(2, BYTES, &gauge));
        pool.give(WorkingSet::new(1, BYTES, &gauge));
        assert_eq!(gauge.ever(), 1);
        let other = pool.take(3, BYTES, &gauge);
        assert_eq!(other.vectors.len(), 3);
        assert_eq!(pool.shelf.len(), 1);
        let reused = pool.take(2, BYTES, &gauge);
        assert_eq!((reused.vectors.len(), pool.shelf.len()), (2, 0));
        // Filled when it was made, and again when it was taken.
        assert_eq!(reused.vectors[0][0], 2);
    }
}
