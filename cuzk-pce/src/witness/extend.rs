//! Copies into an array by several threads.
#![allow(unsafe_code)] // Fills a vector out of order.

use cuzk_memory::{Array, Checkpoint, Stopped};
use rayon::prelude::*;

/// Appends parts in order. A thread of the current pool copies each part, after it passed
/// `checkpoint`.
///
/// # Errors
/// [`Stopped`]; nothing is appended then.
pub(super) fn extend_in_parallel<T: Copy + Send + Sync>(
    array: &mut Array<T>,
    parts: &[&[T]],
    checkpoint: &Checkpoint<'_>,
) -> Result<(), Stopped> {
    let added: usize = parts.iter().map(|part| part.len()).sum();
    array.reserve(added);
    let mut rest = array.spare_capacity_mut();
    let mut rooms = Vec::with_capacity(parts.len());
    for part in parts {
        let (room, after) = rest.split_at_mut(part.len());
        rooms.push(room);
        rest = after;
    }
    let copies = rooms.into_par_iter().zip(parts).with_max_len(1);
    copies.try_for_each(|(room, part)| {
        checkpoint.check()?;
        for (to, from) in room.iter_mut().zip(*part) {
            to.write(*from);
        }
        Ok(())
    })?;
    let len = array.len() + added;
    // SAFETY: the array has room for `added` values, and every one was written: a room is as
    // long as its part, and no part was refused.
    unsafe { array.set_len(len) };
    Ok(())
}
