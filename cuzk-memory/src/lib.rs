//! The ground of the workspace: memory that is recycled, and one way to stop.
//!
//! A long computation needs two things from its surroundings. It takes working memory from
//! a [`Memory`], such as a [`BufferPool`]. Between pieces of its work it asks a
//! [`Checkpoint`] if it may go on:
//!
//! ```
//! use cuzk_memory::{Cancellation, Checkpoint, Lent, Mapped, Memory, Stopped};
//!
//! fn sum(
//!     values: &[u64],
//!     memory: &dyn Memory,
//!     checkpoint: &Checkpoint<'_>,
//! ) -> Result<u64, Stopped> {
//!     let mut sums = Lent::<u64>::take(memory, 2).expect("memory for two numbers");
//!     sums.fill(0);
//!     for piece in values.chunks(2) {
//!         checkpoint.check()?;
//!         for (sum, value) in sums.iter_mut().zip(piece) {
//!             *sum += value;
//!         }
//!     }
//!     Ok(sums.iter().sum())
//! }
//!
//! let cancellation = Cancellation::default();
//! let checkpoint = Checkpoint::new(&cancellation);
//! assert_eq!(sum(&[1, 2, 3], &Mapped, &checkpoint), Ok(6));
//! cancellation.cancel();
//! assert_eq!(sum(&[1, 2, 3], &Mapped, &checkpoint), Err(Stopped));
//! ```
//!
//! This crate knows nothing of proofs, queues or budgets. It starts no thread but those that
//! unmap memory ([`Dealloc::Unbounded`]).
//!
//! # Reading order
//!
//! * `block`: mapped memory, in parts; `plain`: the values in it; `numa`: the nodes that it is on.
//! * `lent`: a source of blocks.
//! * `extent`, `free_list`: blocks that nobody uses.
//! * `leaving`: memory on its way to be freed.
//! * `block_allocator`, `array`: vectors in blocks.
//! * `pool`: all of these together.
//! * `pause`, `throttle`, `heartbeat`, and `checkpoint`, which combines the three with
//!   cancellation.

#![deny(unsafe_code)]

mod array;
mod block;
mod block_allocator;
mod checkpoint;
mod extent;
mod free_list;
mod heartbeat;
mod leaving;
mod lent;
#[cfg(all(target_os = "linux", not(miri)))]
mod numa;
mod pause;
mod plain;
mod pool;
mod sync;
mod throttle;
pub mod unwind;

pub use array::{Array, ArrayMemory, NoMemory, Room, append_in_parts};
pub use block::{Block, PAGE_BYTES, PART_BYTES};
pub use block_allocator::BlockAllocator;
pub use checkpoint::{Cancellation, Checkpoint, NEVER_STOP, Stopped};
pub use extent::{Extent, VirtualExtent};
pub use free_list::{FreeList, Taken};
pub use heartbeat::Heartbeat;
pub use lent::{Lent, Mapped, Memory};
pub use pause::{Pause, Urgent};
pub use plain::{Plain, values_of, view, view_mut, views, views_mut};
pub use pool::{Buffer, BufferPool, Dealloc, DropInTurn, PoolUse};
pub use throttle::{Gate, ThrottleManner, WAIT_MAX, wait_max};
