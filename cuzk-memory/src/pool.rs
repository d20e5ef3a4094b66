//! The working memory of partitions, recycled.
//!
//! A partition needs three vectors over its circuit's domain, gigabytes at 32 GiB, and
//! buckets for its MSMs. Mapping and unmapping them for every partition costs page faults,
//! and stalls every core: each unmapped page must leave every core's TLB. So the next
//! partition takes the memory that one partition has finished with. The pages are huge where
//! the system grants it.
//!
//! The memory is not zeroed: its user overwrites it. Invariants: a block belongs to one
//! owner. The pool never keeps more than it is allowed to. At rest it keeps no more than
//! one partition takes.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{io, thread};

use blstrs::Scalar;

use crate::array::ArrayMemory;
use crate::block::Block;
use crate::block_allocator::BlockAllocator;
use crate::checkpoint::Checkpoint;
use crate::free_list::FreeList;
use crate::leaving::Leaving;
use crate::lent::Memory;

/// The way in which a pool disposes of a buffer that nobody needs any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dealloc {
    /// Each buffer is unmapped on a thread of its own, at once and however small.
    Unbounded,
    /// One thread unmaps the buffers, one after the other.
    Serial,
    /// The buffers are kept for the next partition.
    Recycle,
}

impl Dealloc {
    /// All ways.
    pub const ALL: [Self; 3] = [Self::Unbounded, Self::Serial, Self::Recycle];

    /// Returns the name that the configuration uses.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unbounded => "unbounded",
            Self::Serial => "serial",
            Self::Recycle => "recycle",
        }
    }
}

/// Drops a value on a thread that frees one value after the other. The owner of that thread
/// passes this function to [`BufferPool::new`].
pub type DropInTurn = fn(Box<dyn Send>);

/// A pool of buffers.
#[derive(Debug)]
pub struct BufferPool {
    dealloc: Dealloc,
    drop_in_turn: DropInTurn,
    /// The pool never keeps more bytes than this.
    kept_bytes_max: u64,
    kept: Mutex<FreeBlocks>,
    /// Only for memory that is not recycled.
    leaving: Arc<Leaving>,
}

/// The blocks that nobody uses at the moment.
#[derive(Debug, Default)]
struct FreeBlocks {
    list: FreeList<Block>,
    /// The bytes of the largest partition so far.
    partition_bytes: u64,
    /// The number of blocks given back before the last call of `give_up_at_rest`.
    seen: u64,
    /// The number of blocks given back before the pool last was at rest.
    at_rest: u64,
}

/// The memory of a pool that recycles blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolUse {
    /// The bytes that are kept and that nobody uses.
    pub kept_bytes: u64,
    /// The bytes that are in use.
    pub in_use_bytes: u64,
    /// The number of mappings that were ever made.
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
    /// Returns an empty pool that keeps at most `kept_bytes_max` bytes. `drop_in_turn`
    /// disposes of buffers where `dealloc` is [`Dealloc::Serial`].
    #[must_use]
    pub fn new(dealloc: Dealloc, kept_bytes_max: u64, drop_in_turn: DropInTurn) -> Arc<Self> {
        Arc::new(Self {
            dealloc,
            drop_in_turn,
            kept_bytes_max,
            kept: Mutex::default(),
            leaving: Arc::default(),
        })
    }

    /// Lends `len` scalars of unspecified values.
    ///
    /// # Errors
    /// The system has no memory to map.
    pub fn take(self: &Arc<Self>, len: usize) -> io::Result<Buffer> {
        let bytes = len.checked_mul(size_of::<Scalar>());
        let block = self.take_block(bytes.ok_or(io::ErrorKind::OutOfMemory)?)?;
        Ok(Buffer {
            block: Some(block),
            len,
            pool: Arc::clone(self),
        })
    }

    /// Returns the memory of a partition's arrays: this pool, if it recycles blocks, else
    /// the heap.
    #[must_use]
    pub fn array_memory(self: &Arc<Self>) -> ArrayMemory {
        match self.dealloc {
            Dealloc::Recycle => {
                let blocks = BlockAllocator::new(Arc::<Self>::clone(self));
                ArrayMemory::of(Arc::new(blocks))
            }
            Dealloc::Unbounded | Dealloc::Serial => ArrayMemory::HEAP,
        }
    }

    fn take_block(&self, bytes: usize) -> io::Result<Block> {
        match self.dealloc {
            Dealloc::Recycle => {
                let taken = self.lock().list.take_or_map(bytes, Block::map)?;
                // Unmapped before the caller touches the new mapping.
                drop(taken.given_up);
                Ok(taken.extent)
            }
            Dealloc::Unbounded | Dealloc::Serial => Block::map(bytes),
        }
    }

    /// Returns the number of bytes that are kept and that nobody uses.
    #[must_use]
    pub fn kept_bytes(&self) -> u64 {
        self.lock().list.bytes()
    }

    /// Returns the memory that is kept and in use.
    #[must_use]
    pub fn usage(&self) -> PoolUse {
        let kept = self.lock();
        PoolUse {
            kept_bytes: kept.list.bytes(),
            in_use_bytes: kept.list.in_use_bytes(),
            mappings: kept.list.mappings(),
        }
    }

    /// Gives up surplus memory, if nothing was in use since the last call. Call it once in a
    /// while. The pool keeps as much as the largest partition took. More than that is of use
    /// to work that overlaps, and how much overlaps is a matter of chance. Small blocks stay,
    /// because the circuits that someone waits for are small.
    ///
    /// Returns true if the pool has come to rest since the last call.
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

    /// Gives up the kept blocks that there is no room for. The caller is about to take blocks
    /// of `own` bytes each, which it has reserved: kept blocks that suit them stay. Of the
    /// other blocks at most `free_bytes` bytes stay, and those kept longest go first.
    ///
    /// Then it waits until at most `free_bytes` bytes of other owners' memory are on their
    /// way to be freed, or until `checkpoint` is cancelled. It never pauses.
    pub fn make_room(&self, own: &[usize], free_bytes: u64, checkpoint: &Checkpoint<'_>) {
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
        // Unmapped before the caller goes on, because it is about to map.
        drop(surplus);
        self.leaving.wait_until_at_most(free_bytes, checkpoint);
    }

    /// Drops a value of `bytes` bytes, in [`Self::array_memory`] or on the heap, in the way
    /// of this pool's blocks. A pool that recycles blocks drops the value at once, because
    /// the next partition may want its blocks. The threads that free memory give way to all
    /// others.
    pub fn drop_later<T: Send + 'static>(&self, value: T, bytes: u64) {
        let leaving = |value| self.leaving.count(value, bytes);
        match self.dealloc {
            Dealloc::Unbounded => {
                let leaver = leaving(value);
                // If the system starts no thread, the caller drops it.
                drop(thread::Builder::new().spawn(move || drop(leaver)));
            }
            Dealloc::Serial => (self.drop_in_turn)(Box::new(leaving(value))),
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
    fn lock(&self) -> MutexGuard<'_, FreeBlocks> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// For the blocks that kernels need beside the buffers.
impl Memory for BufferPool {
    fn take(&self, bytes: usize) -> io::Result<Block> {
        self.take_block(bytes)
    }

    fn give_back(&self, block: Block) {
        self.dispose(block);
    }
}

impl Buffer {
    /// Returns the pool that lent it.
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
mod tests;
