//! The memory that a partition leaves behind, and the ways to free it.
//!
//! Invariant: a [`Gauge`] counts exactly the working sets that are being
//! unmapped. So the concurrency that an arm reports is real.

use crate::Result;
use cuzk_memory::Block;
use std::{
    io, mem,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
    time::Instant,
};
use supraseal_sys::dealloc;

/// How many are being unmapped now, the most there were, and when the last was.
#[derive(Debug, Default)]
pub struct Gauge {
    now: AtomicUsize,
    max: AtomicUsize,
    ever: AtomicUsize,
    last: Mutex<Option<Instant>>,
}

impl Gauge {
    fn enter(&self) {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.max.fetch_max(now, Ordering::SeqCst);
        self.ever.fetch_add(1, Ordering::SeqCst);
    }

    fn leave(&self) {
        self.now.fetch_sub(1, Ordering::SeqCst);
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        *last = Some(Instant::now());
    }

    /// When the last was unmapped so far; `None` before any was.
    pub fn last(&self) -> Option<Instant> {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner)
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

/// The pages in which memory is mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pages {
    /// The system's own, as the heap's is.
    Small,
    /// Huge ones where the system grants them, as the engine's vectors and buckets are.
    Huge,
}

/// So many vectors of so many bytes in such pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// How many.
    pub vectors: usize,
    /// Of each.
    pub bytes: usize,
    /// Of all.
    pub pages: Pages,
}

#[derive(Debug)]
enum Vector {
    Heap(Vec<u64>),
    Mapped(Block),
}

/// A few vectors, each large enough to be mapped on its own.
#[derive(Debug)]
pub struct WorkingSet {
    shape: Shape,
    vectors: Vec<Vector>,
    gauge: Arc<Gauge>,
}

const PAGE_WORDS: usize = 512;

impl Vector {
    fn new(shape: Shape) -> io::Result<Self> {
        Ok(match shape.pages {
            Pages::Small => Vector::Heap(vec![0; shape.bytes / size_of::<u64>()]),
            Pages::Huge => Vector::Mapped(Block::map(shape.bytes)?),
        })
    }

    fn words(&mut self) -> &mut [u64] {
        match self {
            Vector::Heap(words) => words,
            Vector::Mapped(block) => {
                let words = block.bytes() / size_of::<u64>();
                block.values_mut(words)
            }
        }
    }
}

impl WorkingSet {
    /// A set of this shape, every page touched.
    ///
    /// # Errors
    /// When the system has no memory to map.
    pub fn new(shape: Shape, gauge: &Arc<Gauge>) -> io::Result<Self> {
        let vectors = (0..shape.vectors).map(|_| Vector::new(shape));
        let mut set = WorkingSet {
            shape,
            vectors: vectors.collect::<io::Result<_>>()?,
            gauge: Arc::clone(gauge),
        };
        set.fill();
        Ok(set)
    }

    /// Writes to every page, as a partition's stages would.
    pub fn fill(&mut self) {
        for vector in &mut self.vectors {
            vector
                .words()
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

/// The way in which a working set is freed.
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
/// It does what the engine's own pool does (`cuzk_memory::BufferPool`): what
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
    ///
    /// # Errors
    /// When there is none, and the system has no memory to map.
    pub fn take(&mut self, shape: Shape, gauge: &Arc<Gauge>) -> io::Result<WorkingSet> {
        match self.shelf.iter().position(|set| set.shape == shape) {
            Some(at) => {
                let mut set = self.shelf.swap_remove(at);
                set.regauge(gauge);
                set.fill();
                Ok(set)
            }
            None => WorkingSet::new(shape, gauge),
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

    fn shape(vectors: usize, pages: Pages) -> Shape {
        Shape {
            vectors,
            bytes: 1 << 20,
            pages,
        }
    }

    fn dispose_all(mut disposal: Disposal) -> (Arc<Gauge>, Disposal) {
        let gauge = Arc::new(Gauge::default());
        let sides = [Side::Rust, Side::Cpp, Side::Rust, Side::Cpp];
        let pages = [Pages::Small, Pages::Small, Pages::Huge, Pages::Huge];
        for (side, pages) in sides.into_iter().zip(pages) {
            let set = WorkingSet::new(shape(2, pages), &gauge).unwrap();
            disposal.dispose(set, side).unwrap();
        }
        disposal.settle();
        (gauge, disposal)
    }

    #[test]
    fn every_way_frees_what_it_says() {
        let (kept, sets) = dispose_all(Disposal::Keep(Vec::new()));
        assert_eq!((kept.ever(), kept.last()), (0, None));
        let before = Instant::now();
        drop(sets);
        assert_eq!((kept.ever(), kept.max()), (4, 1));
        assert!(kept.last().is_some_and(|last| last >= before));
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
        let set = |shape| WorkingSet::new(shape, &gauge).unwrap();
        for pages in [Pages::Small, Pages::Huge] {
            let ever = gauge.ever();
            pool.give(set(shape(2, pages)));
            pool.give(set(shape(1, pages)));
            assert_eq!(gauge.ever(), ever + 1);
            let other = pool.take(shape(3, pages), &gauge).unwrap();
            assert_eq!(other.vectors.len(), 3);
            assert_eq!(pool.shelf.len(), 1);
            let mut reused = pool.take(shape(2, pages), &gauge).unwrap();
            assert_eq!((reused.vectors.len(), pool.shelf.len()), (2, 0));
            // Filled when it was made, and again when it was taken.
            assert_eq!(reused.vectors[0].words()[0], 2);
        }
    }
}
