//! Working memory of partitions, recycled.
//!
//! A partition needs three vectors over its circuit's domain, gigabytes at 32 GiB,
//! and its sums need buckets. Mapping and unmapping them for every partition costs
//! page faults now and stalls every core later (each unmapped page must leave every
//! core's TLB), so what one partition has done with, the next one takes. The pages
//! are huge where the system grants it.
//!
//! Not zeroed: whoever takes memory overwrites it. The invariants: a block belongs
//! to one owner; what the pool keeps is never more than it is allowed to, and at rest
//! no more than one partition takes.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{io, thread};

use blstrs::Scalar;
use cuzk_kernels::memory::{Block, Memory};
use cuzk_pce::WitnessMemory;
use supraseal_sys::dealloc::dealloc_async;

use super::free::FreeList;
use super::leaving::Leaving;
use super::lender::Lender;

/// What becomes of a buffer that nobody needs any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dealloc {
    /// Each is unmapped on a thread of its own, at once and however small.
    Unbounded,
    /// They are unmapped on one thread, one after the other.
    Serial,
    /// They are kept for the next partition.
    Recycle,
}

impl Dealloc {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Unbounded, Self::Serial, Self::Recycle];

    /// The name, as the configuration spells it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unbounded => "unbounded",
            Self::Serial => "serial",
            Self::Recycle => "recycle",
        }
    }
}

/// Buffers that nobody uses at the moment.
#[derive(Debug)]
pub struct BufferPool {
    dealloc: Dealloc,
    /// The pool never keeps more bytes than this.
    kept_bytes_max: u64,
    kept: Mutex<Kept>,
    /// Only what is not recycled.
    leaving: Arc<Leaving>,
}

#[derive(Debug, Default)]
struct Kept {
    list: FreeList<Block>,
    /// What the largest partition takes that there was.
    partition_bytes: u64,
    /// How many blocks had been given back when it was last looked whether the pool is at
    /// rest.
    seen: u64,
    /// The same when it last was.
    at_rest: u64,
}

/// The memory of a pool that recycles it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolUse {
    /// Bytes that are kept and that nobody uses.
    pub kept_bytes: u64,
    /// Bytes that somebody uses.
    pub in_use_bytes: u64,
    /// How often memory was mapped.
    pub mappings: u64,
}

/// Scalars on loan from a [`BufferPool`].
pub struct Buffer {
    /// Taken out when this is dropped, and then only.
    block: Option<Block>,
    len: usize,
    pool: Arc<BufferPool>,
}

impl BufferPool {
    /// An empty pool that keeps at most `kept_bytes_max` bytes.
    #[must_use]
    pub fn new(dealloc: Dealloc, kept_bytes_max: u64) -> Arc<Self> {
        Arc::new(Self {
            dealloc,
            kept_bytes_max,
            kept: Mutex::default(),
            leaving: Arc::default(),
        })
    }

    /// `len` scalars of unspecified values.
    ///
    /// # Errors
    /// When the system has no memory to map.
    pub fn take(self: &Arc<Self>, len: usize) -> io::Result<Buffer> {
        let bytes = len.checked_mul(size_of::<Scalar>());
        let block = self.take_block(bytes.ok_or(io::ErrorKind::OutOfMemory)?)?;
        Ok(Buffer {
            block: Some(block),
            len,
            pool: Arc::clone(self),
        })
    }

    /// Where a partition's witness is: here, if blocks are recycled.
    #[must_use]
    pub fn witness_memory(self: &Arc<Self>) -> WitnessMemory {
        match self.dealloc {
            Dealloc::Recycle => WitnessMemory::of(Arc::new(Lender::new(Arc::clone(self)))),
            Dealloc::Unbounded | Dealloc::Serial => WitnessMemory::HEAP,
        }
    }

    fn take_block(&self, bytes: usize) -> io::Result<Block> {
        match self.dealloc {
            Dealloc::Recycle => {
                let taken = self.lock().list.take_or_map(bytes, Block::map)?;
                // Before whoever asked touches what was mapped.
                drop(taken.given_up);
                Ok(taken.extent)
            }
            Dealloc::Unbounded | Dealloc::Serial => Block::map(bytes),
        }
    }

    /// Bytes that are kept and that nobody uses.
    #[must_use]
    pub fn kept_bytes(&self) -> u64 {
        self.lock().list.bytes()
    }

    /// What is kept and what is in use.
    #[must_use]
    pub fn usage(&self) -> PoolUse {
        let kept = self.lock();
        PoolUse {
            kept_bytes: kept.list.bytes(),
            in_use_bytes: kept.list.in_use_bytes(),
            mappings: kept.list.mappings(),
        }
    }

    /// To be called once in a while: if nothing was in use since the last time, only as
    /// much stays as one partition takes, of the largest that there was. More than that
    /// is for work that overlaps, and how much did is a matter of chance. What is small
    /// stays, since the circuits that someone waits for are. Whether it has come to rest
    /// since the last time.
    pub fn give_up_at_rest(&self) -> bool {
        let mut kept = self.lock();
        let returns = kept.list.returns();
        let is_at_rest = kept.list.in_use_bytes() == 0 && kept.seen == returns;
        kept.seen = returns;
        if !is_at_rest || kept.at_rest == returns {
            return false;
        }
        kept.at_rest = returns;
        let partition_bytes = kept.partition_bytes;
        let surplus = kept.list.give_up_largest_beyond(partition_bytes);
        drop(kept);
        drop(surplus);
        true
    }

    /// Gives up what there is no room for: of what is kept that stays which suits what
    /// the caller will take (`own`, in bytes each, which it has reserved), and
    /// `free_bytes` of the rest at most, what was kept longest going first. What others
    /// gave away to be freed is waited for until there is no more of it than that, for as
    /// long as `waits` says so.
    pub fn make_room(&self, own: &[usize], free_bytes: u64, waits: &dyn Fn() -> bool) {
        let mut kept = self.lock();
        let own_bytes = own.iter().sum::<usize>() as u64;
        kept.partition_bytes = kept.partition_bytes.max(own_bytes);
        let list = &mut kept.list;
        let suits: Vec<_> = own.iter().filter_map(|bytes| list.take(*bytes)).collect();
        let surplus = list.give_up_beyond(free_bytes);
        for block in suits {
            list.give(block);
        }
        drop(kept);
        // Unmapped before whoever asked goes on, since it is about to map.
        drop(surplus);
        self.leaving.wait_until_at_most(free_bytes, waits);
    }

    /// Drops a value that holds so many bytes, of [`Self::witness_memory`] or on the heap,
    /// as its blocks would be. If those are recycled it is now: the next partition may
    /// want them, and the threads that free give way to all others.
    pub fn drop_later<T: Send + 'static>(&self, value: T, bytes: u64) {
        let leaving = |value| self.leaving.count(value, bytes);
        match self.dealloc {
            Dealloc::Unbounded => {
                let leaver = leaving(value);
                // Where there is no thread to be had, the caller drops it.
                drop(thread::Builder::new().spawn(move || drop(leaver)));
            }
            Dealloc::Serial => dealloc_async(leaving(value)),
            Dealloc::Recycle => drop(value),
        }
    }

    fn dispose(&self, block: Block) {
        match self.dealloc {
            Dealloc::Unbounded | Dealloc::Serial => {
                let bytes = block.bytes() as u64;
                self.drop_later(block, bytes);
            }
            Dealloc::Recycle => {
                let mut kept = self.lock();
                let unused = kept.list.give_back(block);
                let surplus = kept.list.give_up_beyond(self.kept_bytes_max);
                drop(kept);
                drop((unused, surplus));
            }
        }
    }

    // Every change under the lock leaves a list of blocks.
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// For what kernels need beside the buffers.
impl Memory for BufferPool {
    fn take(&self, bytes: usize) -> io::Result<Block> {
        self.take_block(bytes)
    }

    fn give_back(&self, block: Block) {
        self.dispose(block);
    }
}

impl Buffer {
    /// The pool it came from.
    #[must_use]
    pub fn pool(&self) -> &Arc<BufferPool> {
        &self.pool
    }
}

impl Deref for Buffer {
    type Target = [Scalar];

    fn deref(&self) -> &[Scalar] {
        self.block
            .as_ref()
            .map_or(&[], |block| block.values(self.len))
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [Scalar] {
        let len = self.len;
        self.block
            .as_mut()
            .map_or(&mut [], |block| block.values_mut(len))
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Some(block) = self.block.take() {
            self.pool.dispose(block);
        }
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} scalars)", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuzk_kernels::memory::PART_BYTES;
    use ff::Field;

    /// A unit of what is kept, in scalars.
    const PART: usize = PART_BYTES / size_of::<Scalar>();

    /// A pool that keeps so many scalars.
    fn pool(dealloc: Dealloc, kept: usize) -> Arc<BufferPool> {
        BufferPool::new(dealloc, (kept * size_of::<Scalar>()) as u64)
    }

    /// Scalars that it keeps, in units.
    fn kept(pool: &BufferPool) -> usize {
        usize::try_from(pool.kept_bytes()).unwrap() / PART_BYTES
    }

    #[test]
    fn a_new_buffer_is_zero_and_a_recycled_one_is_what_it_was() {
        let pool = pool(Dealloc::Recycle, 1000 * PART);
        let mut first = pool.take(100 * PART).unwrap();
        assert!(first.iter().all(Field::is_zero_vartime));
        first.fill(Scalar::ONE);
        let place = first.as_ptr();
        drop(first);
        assert_eq!(kept(&pool), 100);
        let again = pool.take(80 * PART).unwrap();
        assert_eq!((again.as_ptr(), again.len()), (place, 80 * PART));
        assert!(again.iter().all(|scalar| *scalar == Scalar::ONE));
        assert_eq!(kept(&pool), 20);
    }

    #[test]
    fn buffers_in_use_are_apart() {
        let pool = pool(Dealloc::Recycle, 1000 * PART);
        drop(pool.take(100 * PART).unwrap());
        let mut buffers = [10, 20, 30, 50].map(|parts| pool.take(parts * PART).unwrap());
        for (value, buffer) in (1..).zip(&mut buffers) {
            buffer.fill(Scalar::from(value));
        }
        for (value, buffer) in (1..).zip(&buffers) {
            assert!(buffer.iter().all(|scalar| *scalar == Scalar::from(value)));
        }
    }

    #[test]
    fn no_more_is_kept_than_allowed() {
        let pool = pool(Dealloc::Recycle, 500 * PART);
        drop([200, 200, 200].map(|parts| pool.take(parts * PART).unwrap()));
        assert_eq!(kept(&pool), 500);
    }

    #[test]
    fn at_rest_what_one_partition_takes_is_kept() {
        let pool = pool(Dealloc::Recycle, 10_000 * PART);
        // It takes two blocks; another one of a smaller circuit follows.
        pool.make_room(
            &[300, 100].map(|parts| parts * PART_BYTES),
            u64::MAX,
            &|| true,
        );
        pool.make_room(&[200 * PART_BYTES], u64::MAX, &|| true);
        let take = || [300, 100, 300, 100].map(|parts| pool.take(parts * PART).unwrap());
        drop(take());
        let used = take();
        // Something is in use, or was since.
        for _ in 0..3 {
            assert!(!pool.give_up_at_rest());
            assert_eq!(pool.usage().in_use_bytes, 800 * PART_BYTES as u64);
        }
        drop(used);
        assert!(!pool.give_up_at_rest());
        assert_eq!(kept(&pool), 800);
        assert!(pool.give_up_at_rest());
        assert_eq!(kept(&pool), 400);
        assert!(!pool.give_up_at_rest());
        // It is less than was in use before, and what is small is still there.
        let mappings = pool.usage().mappings;
        drop(take());
        assert_eq!(pool.usage().mappings, mappings + 2);
    }

    #[test]
    fn what_the_next_will_take_stays_and_others_make_room() {
        let pool = pool(Dealloc::Recycle, 10_000 * PART);
        let keep = || drop([100, 300, 400, 1000].map(|parts| pool.take(parts * PART).unwrap()));
        keep();
        // There is room for all of them.
        pool.make_room(&[], 1800 * PART_BYTES as u64, &|| true);
        assert_eq!(kept(&pool), 1800);
        // For what suits and no more, though it was not kept last.
        pool.make_room(&[250, 100].map(|parts| parts * PART_BYTES), 0, &|| true);
        assert_eq!(kept(&pool), 350);
        drop(pool.take(250 * PART).unwrap());
        assert_eq!(kept(&pool), 350);
        // What suits nobody is not a reason to keep more than there is room for.
        keep();
        pool.make_room(&[2000 * PART_BYTES], 1400 * PART_BYTES as u64, &|| true);
        assert_eq!(kept(&pool), 1400);
        pool.make_room(&[], 0, &|| true);
        assert_eq!(kept(&pool), 0);
    }

    #[test]
    fn kernels_and_partitions_share_what_is_kept() {
        let pool = pool(Dealloc::Recycle, 1000 * PART);
        drop(pool.take(100 * PART).unwrap());
        let block = Memory::take(&*pool, 60 * PART_BYTES).unwrap();
        assert_eq!((block.bytes(), kept(&pool)), (60 * PART_BYTES, 40));
        let scalars = pool.take(40 * PART).unwrap();
        pool.give_back(block);
        drop(scalars);
        assert_eq!(kept(&pool), 100);
    }

    #[test]
    fn nothing_is_kept_unless_recycling() {
        for dealloc in [Dealloc::Unbounded, Dealloc::Serial] {
            let pool = pool(dealloc, 1000 * PART);
            drop(pool.take(100).unwrap());
            assert_eq!(pool.kept_bytes(), 0, "{dealloc:?}");
        }
    }

    /// Says on which thread it is dropped.
    struct Tells(std::sync::mpsc::Sender<Option<String>>);

    impl Drop for Tells {
        fn drop(&mut self) {
            let thread = thread::current();
            drop(self.0.send(thread.name().map(str::to_owned)));
        }
    }

    #[test]
    fn values_are_dropped_as_configured() {
        let dropped_on = |dealloc| {
            let (tells, told) = std::sync::mpsc::channel();
            pool(dealloc, 0).drop_later(Tells(tells), 0);
            told.recv().unwrap()
        };
        assert_eq!(dropped_on(Dealloc::Unbounded), None);
        let serial = dropped_on(Dealloc::Serial);
        assert_eq!(serial.as_deref(), Some("cuzk-dealloc"));
        let here = thread::current().name().map(str::to_owned);
        assert!(here.is_some() && here != serial);
        assert_eq!(dropped_on(Dealloc::Recycle), here);
    }

    /// Is dropped once somebody lets it.
    struct Held(std::sync::mpsc::Receiver<()>);

    impl Drop for Held {
        fn drop(&mut self) {
            self.0.recv().ok();
        }
    }

    #[test]
    fn who_maps_waits_for_what_is_leaving() {
        for dealloc in [Dealloc::Unbounded, Dealloc::Serial] {
            let pool = pool(dealloc, 0);
            let (may, held) = std::sync::mpsc::channel();
            pool.drop_later(Held(held), 1000);
            // There is room for both, and for a block behind it.
            pool.make_room(&[], 1000, &|| true);
            drop(pool.take(PART).unwrap());
            pool.make_room(&[], 1000 + PART_BYTES as u64, &|| true);
            let (tell, told) = std::sync::mpsc::channel();
            thread::scope(|scope| {
                scope.spawn(|| {
                    pool.make_room(&[], 999, &|| true);
                    tell.send(()).unwrap();
                });
                let early = told.recv_timeout(std::time::Duration::from_millis(50));
                assert!(early.is_err(), "{dealloc:?}");
                may.send(()).unwrap();
                assert!(told.recv().is_ok(), "{dealloc:?}");
            });
            pool.make_room(&[], 0, &|| true);
        }
    }

    #[test]
    fn more_than_there_can_be_is_an_error() {
        for dealloc in Dealloc::ALL {
            let pool = pool(dealloc, 0);
            assert!(pool.take(usize::MAX / 2).is_err());
            assert!(pool.take(usize::MAX / 64).is_err());
            assert!(pool.take(0).unwrap().is_empty());
        }
    }
}
