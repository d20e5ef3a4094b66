//! Memory that nobody uses. Parts of it are lent, and joined when they are back.
//!
//! A vector's memory has room for the blocks of several MSMs, and the memory of two
//! circuits' MSMs has room for a third's. So the mapped memory follows the memory that is in
//! use together, and not how often each size was in use at once. The extents need not be
//! memory: [`VirtualExtent`](crate::VirtualExtent) tells what a pool will map.
//!
//! Invariants:
//!
//! * Nothing is lent twice.
//! * Extents that lie side by side are joined.
//! * An extent that was of no use for long is given up.
//! * The mapped memory is never more than twice the most that was in use together, however
//!   it was cut.

use std::cmp::Reverse;
use std::{io, mem};

use crate::block::PART_BYTES;
use crate::extent::Extent;

/// Extents that nobody uses. Those kept longest are in front.
#[derive(Debug)]
pub struct FreeList<E> {
    free: Vec<Free<E>>,
    /// The number of extents that were ever given back.
    returns: u64,
    in_use_bytes: u64,
    /// The most bytes that were ever in use together.
    in_use_bytes_max: u64,
    /// The number of mappings that were ever made.
    mappings: u64,
}

/// An extent that was taken, and those that were given up for it.
#[derive(Debug)]
pub struct Taken<E> {
    /// The extent, now in use.
    pub extent: E,
    /// Extents to unmap, before the taken one is written to.
    pub given_up: Vec<E>,
}

/// An extent, and the number of extents given back when its last part was.
#[derive(Debug)]
struct Free<E> {
    extent: E,
    since: u64,
}

/// An extent is given up if it is not taken while so many others are given back, by some
/// fifty partitions. It was of use to work that overlapped by chance.
const RETURNS_MAX: u64 = 1024;

/// An extent is not cut if it is more times as large as what is asked for. So a small block
/// is never in the way of a large circuit's vectors.
const TIMES_MAX: usize = 16;

/// The mapped memory is at most so many times the most that was in use together. The rest
/// lies between blocks, where nothing fits: up to two fifths of the whole for one partition
/// of a small circuit. A lower limit would have its partitions map and unmap memory again
/// and again.
const MAPPED_TIMES_MAX: u64 = 2;

/// The least that is mapped: a huge page.
const MAPPED_BYTES_MIN: usize = 2 << 20;

impl<E> Default for FreeList<E> {
    fn default() -> Self {
        Self {
            free: Vec::new(),
            returns: 0,
            in_use_bytes: 0,
            in_use_bytes_max: 0,
            mappings: 0,
        }
    }
}

impl<E: Extent> FreeList<E> {
    /// Takes at least `bytes` bytes, cut out of the smallest extent that suits. If none
    /// suits, `map` is called with the number of bytes to map. Then extents that do not suit
    /// are given up, as far as more would be mapped than there was use for.
    ///
    /// # Errors
    /// The error of `map`, or more bytes than a process can address.
    pub fn take_or_map(
        &mut self,
        bytes: usize,
        map: impl FnOnce(usize) -> io::Result<E>,
    ) -> io::Result<Taken<E>> {
        let bytes = in_parts(bytes).ok_or(io::ErrorKind::OutOfMemory)?;
        let (extent, given_up) = match self.take(bytes) {
            Some(extent) => (extent, Vec::new()),
            None => self.map(bytes, map)?,
        };
        self.in_use_bytes += extent.bytes() as u64;
        self.in_use_bytes_max = self.in_use_bytes_max.max(self.in_use_bytes);
        Ok(Taken { extent, given_up })
    }

    fn map(
        &mut self,
        bytes: usize,
        map: impl FnOnce(usize) -> io::Result<E>,
    ) -> io::Result<(E, Vec<E>)> {
        let mapped = bytes.max(MAPPED_BYTES_MIN);
        let mut extent = map(mapped)?;
        self.mappings += 1;
        let used = self.in_use_bytes + mapped as u64;
        let most = self.in_use_bytes_max.max(used);
        let given_up = self.give_up_beyond(MAPPED_TIMES_MAX * most - used);
        if let Some(rest) = extent.split_off(bytes) {
            self.give(rest);
        }
        Ok((extent, given_up))
    }

    /// Takes at least `bytes` bytes, if an extent suits: the smallest that is large enough,
    /// unless it is far too large. Of equal ones it takes the last, so that a surplus one
    /// stays untaken and is given up.
    pub fn take(&mut self, bytes: usize) -> Option<E> {
        let bytes = in_parts(bytes)?;
        let suits = bytes..=bytes.saturating_mul(TIMES_MAX).max(MAPPED_BYTES_MIN);
        let extents = self.free.iter().map(|free| free.extent.bytes()).enumerate();
        let suit = extents.filter(|(_, bytes)| suits.contains(bytes));
        let (index, _) = suit.min_by_key(|(index, bytes)| (*bytes, Reverse(*index)))?;
        let free = self.free.get_mut(index)?;
        Some(match free.extent.split_off(bytes) {
            Some(rest) => mem::replace(&mut free.extent, rest),
            None => self.free.remove(index).extent,
        })
    }

    /// Keeps an extent that was in use, and returns those that nobody took for long.
    pub fn give_back(&mut self, extent: E) -> Vec<E> {
        self.returns += 1;
        self.in_use_bytes = self.in_use_bytes.saturating_sub(extent.bytes() as u64);
        self.give(extent);
        let returns = self.returns;
        self.give_up_while(|free| returns - free.since > RETURNS_MAX)
    }

    /// Keeps an extent, joined with its neighbours.
    pub fn give(&mut self, mut extent: E) {
        // There are at most two of those, as what is kept was joined.
        for free in mem::take(&mut self.free) {
            let Free {
                extent: mut other,
                since,
            } = free;
            if let Err(apart) = other.join(extent) {
                extent = apart;
                if let Err(other) = extent.join(other) {
                    self.free.push(Free {
                        extent: other,
                        since,
                    });
                }
            } else {
                extent = other;
            }
        }
        let since = self.returns;
        self.free.push(Free { extent, since });
    }

    /// Returns the number of bytes that are kept.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.free.iter().map(Free::bytes).sum()
    }

    /// Returns the number of bytes that were taken and not given back.
    #[must_use]
    pub fn in_use_bytes(&self) -> u64 {
        self.in_use_bytes
    }

    /// Returns the number of extents that were ever given back.
    #[must_use]
    pub fn returns(&self) -> u64 {
        self.returns
    }

    /// Returns the number of mappings that were ever made.
    #[must_use]
    pub fn mappings(&self) -> u64 {
        self.mappings
    }

    /// Gives up extents, those kept longest first, until at most `bytes` bytes are kept. The
    /// last one is cut if a part is enough.
    pub fn give_up_beyond(&mut self, bytes: u64) -> Vec<E> {
        let mut beyond = self.bytes().saturating_sub(bytes);
        let mut given_up = self.give_up_while(|free| {
            let goes = beyond > 0 && free.bytes() < beyond + PART_BYTES as u64;
            beyond = beyond.saturating_sub(if goes { free.bytes() } else { 0 });
            goes
        });
        let next = self.free.first_mut().filter(|_| beyond > 0);
        given_up.extend(next.and_then(|free| split_last(&mut free.extent, beyond)));
        given_up
    }

    /// Gives up extents, the largest first, until at most `bytes` bytes are kept.
    pub fn give_up_largest_beyond(&mut self, bytes: u64) -> Vec<E> {
        self.free.sort_by_key(|free| Reverse(free.bytes()));
        let given_up = self.give_up_beyond(bytes);
        self.free.sort_by_key(|free| free.since);
        given_up
    }

    /// Gives up the extents in front for which `goes` returns true.
    fn give_up_while(&mut self, mut goes: impl FnMut(&Free<E>) -> bool) -> Vec<E> {
        let count = self.free.iter().take_while(|free| goes(free)).count();
        self.free.drain(..count).map(|free| free.extent).collect()
    }
}

/// Cuts at least `bytes` bytes off the end of a longer extent.
fn split_last<E: Extent>(extent: &mut E, bytes: u64) -> Option<E> {
    let bytes = in_parts(usize::try_from(bytes).ok()?)?;
    extent.split_off(extent.bytes().checked_sub(bytes)?)
}

impl<E: Extent> Free<E> {
    fn bytes(&self) -> u64 {
        self.extent.bytes() as u64
    }
}

/// Rounds a number of bytes up to the parts that are cut out for them.
fn in_parts(bytes: usize) -> Option<usize> {
    bytes.max(1).checked_next_multiple_of(PART_BYTES)
}

#[cfg(test)]
mod tests;
