//! Working memory of partitions, recycled.
//!
//! A partition needs three vectors over its circuit's domain, gigabytes at 32 GiB,
//! and its sums need buckets. Mapping and unmapping them for every partition costs
//! page faults now and stalls every core later (each unmapped page must leave every
//! core's TLB), so what one partition has done with, the next one takes. The pages
//! are huge where the system grants it.
//!
//! Not zeroed: whoever takes memory overwrites it. The invariants: a block belongs
//! to one owner; what the pool keeps is never more than it is allowed to, and nothing
//! that nobody had a use for in a long time.

use std::cmp::Reverse;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{io, thread};

use blstrs::Scalar;
use cuzk_kernels::memory::{Block, Memory};
use supraseal_sys::dealloc::dealloc_async;

/// What becomes of a buffer that nobody needs any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dealloc {
    /// Each is unmapped on a thread of its own, at once.
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
}

/// Blocks that nobody uses, those kept longest in front.
#[derive(Debug, Default)]
struct Kept {
    free: Vec<Free>,
    /// How many were given back in all.
    returns: u64,
}

/// A block, and how many had been given back when it was.
#[derive(Debug)]
struct Free {
    block: Block,
    since: u64,
}

/// A block that is not taken while so many others are given back, by a hundred
/// partitions or so, was of use for what met by chance and may not meet again.
const RETURNS_MAX: u64 = 1024;

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

    fn take_block(&self, bytes: usize) -> io::Result<Block> {
        self.take_free(bytes).map_or_else(|| Block::map(bytes), Ok)
    }

    fn take_free(&self, bytes: usize) -> Option<Block> {
        let free = &mut self.lock().free;
        let index = fits(free.iter().map(Free::bytes), bytes)?;
        Some(free.remove(index).block)
    }

    /// Bytes that are kept and that nobody uses.
    #[must_use]
    pub fn kept_bytes(&self) -> u64 {
        bytes_of(&self.lock().free)
    }

    /// Gives up buffers, those kept longest first, until at most `bytes` are
    /// kept.
    pub fn shrink_to(&self, bytes: u64) {
        let mut kept = self.lock();
        let mut left = bytes_of(&kept.free);
        let surplus = kept.give_up_while(|free| {
            let goes = left > bytes;
            left -= if goes { free.bytes() as u64 } else { 0 };
            goes
        });
        drop(kept);
        // Unmapped before whoever asked goes on, since it is about to map.
        drop(surplus);
    }

    /// Gives up what there is no room for: of the blocks that are kept those stay that
    /// suit what the caller will take (`own`, in bytes each, which it has reserved),
    /// and others of `free_bytes` at most, those kept longest going first.
    pub fn make_room(&self, own: &[usize], free_bytes: u64) {
        let mut kept = self.lock();
        let mut others = std::mem::take(&mut kept.free);
        let mut suits = Vec::new();
        // What of a block that suits is more than was asked for is not reserved.
        let mut unreserved_bytes = 0;
        for bytes in own {
            if let Some(index) = fits(others.iter().map(Free::bytes), *bytes) {
                let free = others.remove(index);
                unreserved_bytes += (free.bytes() - bytes) as u64;
                suits.push(free);
            }
        }
        unreserved_bytes += bytes_of(&others);
        kept.free = others;
        let surplus = kept.give_up_while(|free| {
            let goes = unreserved_bytes > free_bytes;
            unreserved_bytes -= if goes { free.bytes() as u64 } else { 0 };
            goes
        });
        kept.free.append(&mut suits);
        kept.free.sort_by_key(|free| free.since);
        drop(kept);
        // Unmapped before whoever asked goes on, since it is about to map.
        drop(surplus);
    }

    fn dispose(&self, block: Block) {
        match self.dealloc {
            Dealloc::Unbounded => {
                // Where there is no thread to be had, the caller unmaps it.
                drop(thread::Builder::new().spawn(move || drop(block)));
            }
            Dealloc::Serial => dealloc_async(block),
            Dealloc::Recycle => {
                let surplus = self.lock().take_back(block);
                drop(surplus);
                self.shrink_to(self.kept_bytes_max);
            }
        }
    }

    // Every change under the lock leaves a list of blocks.
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Which of the free blocks suits who asks for `bytes`: the least that is large
/// enough, unless half of it were wasted; of equal ones the last, so that one too many
/// is not taken.
pub(super) fn fits(free: impl Iterator<Item = usize>, bytes: usize) -> Option<usize> {
    let suits = bytes..=bytes.saturating_mul(2);
    let blocks = free.enumerate().filter(|(_, block)| suits.contains(block));
    let (index, _) = blocks.min_by_key(|(index, block)| (*block, Reverse(*index)))?;
    Some(index)
}

fn bytes_of(free: &[Free]) -> u64 {
    free.iter().map(|free| free.bytes() as u64).sum()
}

impl Free {
    fn bytes(&self) -> usize {
        self.block.bytes()
    }
}

impl Kept {
    /// Keeps a block. Those that nobody took for long are given up.
    fn take_back(&mut self, block: Block) -> Vec<Free> {
        let since = self.returns;
        self.returns += 1;
        self.free.push(Free { block, since });
        self.give_up_while(|free| since - free.since > RETURNS_MAX)
    }

    /// Takes out those in front of which `goes` is true.
    fn give_up_while(&mut self, mut goes: impl FnMut(&Free) -> bool) -> Vec<Free> {
        let count = self.free.iter().take_while(|free| goes(free)).count();
        self.free.drain(..count).collect()
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
    use ff::Field;

    fn pool(dealloc: Dealloc, kept: usize) -> Arc<BufferPool> {
        BufferPool::new(dealloc, (kept * size_of::<Scalar>()) as u64)
    }

    #[test]
    fn a_new_buffer_is_zero_and_a_recycled_one_is_what_it_was() {
        let pool = pool(Dealloc::Recycle, 1000);
        let mut first = pool.take(500).unwrap();
        assert!(first.iter().all(Field::is_zero_vartime));
        first.fill(Scalar::ONE);
        let place = first.as_ptr();
        drop(first);
        assert_eq!(pool.kept_bytes(), 16_000);
        let again = pool.take(400).unwrap();
        assert_eq!((again.as_ptr(), again.len()), (place, 400));
        assert!(again.iter().all(|scalar| *scalar == Scalar::ONE));
        assert_eq!(pool.kept_bytes(), 0);
    }

    #[test]
    fn buffers_in_use_are_apart() {
        let pool = pool(Dealloc::Recycle, 1000);
        let mut buffers = [1, 2, 3].map(|len| pool.take(len * 100).unwrap());
        for (value, buffer) in (1..).zip(&mut buffers) {
            buffer.fill(Scalar::from(value));
        }
        for (value, buffer) in (1..).zip(&buffers) {
            assert!(buffer.iter().all(|scalar| *scalar == Scalar::from(value)));
        }
    }

    #[test]
    fn the_best_fit_is_taken_and_a_poor_one_is_not() {
        let pool = pool(Dealloc::Recycle, 10_000);
        drop([100, 300, 200].map(|len| pool.take(len).unwrap()));
        let fit = pool.take(150).unwrap();
        assert_eq!(fit.block.as_ref().unwrap().bytes(), 200 * 32);
        let poor = pool.take(49).unwrap();
        assert_eq!(poor.block.as_ref().unwrap().bytes(), 49 * 32);
        assert_eq!(pool.kept_bytes(), 400 * 32);
    }

    #[test]
    fn no_more_is_kept_than_allowed() {
        let pool = pool(Dealloc::Recycle, 500);
        drop([200, 200, 200].map(|len| pool.take(len).unwrap()));
        assert_eq!(pool.kept_bytes(), 400 * 32);
        pool.shrink_to(399 * 32);
        assert_eq!(pool.kept_bytes(), 200 * 32);
        pool.shrink_to(0);
        assert_eq!(pool.kept_bytes(), 0);
    }

    #[test]
    fn what_the_next_will_take_stays_and_others_make_room() {
        let pool = pool(Dealloc::Recycle, 10_000);
        let keep = |lens: [usize; 4]| drop(lens.map(|len| pool.take(len).unwrap()));
        let kept = || pool.kept_bytes() / 32;
        keep([100, 300, 400, 1000]);
        // There is room for all of them.
        pool.make_room(&[], 1800 * 32);
        assert_eq!(kept(), 1800);
        // For two that suit and no more, though neither was kept last.
        pool.make_room(&[250 * 32, 100 * 32, 5 * 32], 0);
        assert_eq!(kept(), 400);
        assert_eq!(
            pool.take(250).unwrap().block.as_ref().unwrap().bytes(),
            300 * 32
        );
        // What suits nobody is not a reason to keep more than there is room for.
        keep([100, 300, 400, 1000]);
        pool.make_room(&[2000 * 32], 1400 * 32);
        assert_eq!(kept(), 1400);
        pool.make_room(&[], 0);
        assert_eq!(kept(), 0);
    }

    #[test]
    fn what_nobody_takes_for_long_is_given_up() {
        let pool = pool(Dealloc::Recycle, 10_000);
        drop([1000, 100].map(|len| pool.take(len).unwrap()));
        let use_often = |times| (0..times).for_each(|_| drop(pool.take(100).unwrap()));
        use_often(RETURNS_MAX - 1);
        assert_eq!(pool.kept_bytes(), 1100 * 32);
        use_often(1);
        assert_eq!(pool.kept_bytes(), 100 * 32);
        use_often(2 * RETURNS_MAX);
        assert_eq!(pool.kept_bytes(), 100 * 32, "what is taken stays");
    }

    #[test]
    fn kernels_and_partitions_share_what_is_kept() {
        let pool = pool(Dealloc::Recycle, 1000);
        drop(pool.take(500).unwrap());
        let block = Memory::take(&*pool, 10_000).unwrap();
        assert_eq!((block.bytes(), pool.kept_bytes()), (16_000, 0));
        pool.give_back(block);
        assert_eq!(pool.kept_bytes(), 16_000);
    }

    #[test]
    fn nothing_is_kept_unless_recycling() {
        for dealloc in [Dealloc::Unbounded, Dealloc::Serial] {
            let pool = pool(dealloc, 1000);
            drop(pool.take(100).unwrap());
            assert_eq!(pool.kept_bytes(), 0, "{dealloc:?}");
        }
    }

    #[test]
    fn more_than_there_can_be_is_an_error() {
        let pool = pool(Dealloc::Recycle, 0);
        assert!(pool.take(usize::MAX / 2).is_err());
        assert!(pool.take(usize::MAX / 64).is_err());
        assert!(pool.take(0).unwrap().is_empty());
    }
}
