//! The synthesised partitions that wait for a device, and the workers that wait for room.
//!
//! The invariant: a partition that does not fit keeps its worker until there is room.

use std::collections::VecDeque;

use cuzk_scheduler::priority::Rank;
use cuzk_scheduler::queue::Queue;

/// The queue between synthesis and the devices. A partition on its way is a number.
#[derive(Debug)]
pub(crate) struct Line {
    capacity: usize,
    ready: Queue<usize>,
    blocked: VecDeque<(Rank, usize)>,
}

impl Line {
    /// Returns an empty queue for at most `capacity` partitions.
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            ready: Queue::new(capacity),
            blocked: VecDeque::new(),
        }
    }

    /// Adds a partition behind those whose workers wait for room.
    pub(crate) fn add(&mut self, rank: Rank, partition: usize) {
        self.blocked.push_back((rank, partition));
    }

    /// Returns the number of workers that wait for room.
    pub(crate) fn blocked(&self) -> usize {
        self.blocked.len()
    }

    /// Lets the next partition in if there is room. Returns true if there was.
    pub(crate) fn let_in(&mut self) -> bool {
        if self.ready.len() >= self.capacity {
            return false;
        }
        let Some((rank, partition)) = self.blocked.pop_front() else {
            return false;
        };
        // Nothing closes this queue.
        self.ready.push(rank, partition).is_ok()
    }

    /// Returns true if no partition can be taken.
    pub(crate) fn is_empty(&self) -> bool {
        self.ready.is_empty()
    }

    /// Takes the most urgent partition, if there is any.
    pub(crate) fn take(&mut self) -> Option<usize> {
        // Without an item it would wait for another thread.
        (!self.ready.is_empty()).then(|| self.ready.pop())?
    }
}
