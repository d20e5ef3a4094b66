//! Writes into an array by several threads.

use cuzk_memory::{Array, Checkpoint, Stopped, append_in_parts};
use rayon::prelude::*;

/// Appends parts in order. A thread of the current pool copies each part, after it passed
/// `checkpoint`.
///
/// # Errors
/// [`Stopped`]; nothing is appended then.
pub(super) fn extend_in_parallel<T: Copy + Default + Send + Sync>(
    array: &mut Array<T>,
    parts: &[&[T]],
    checkpoint: &Checkpoint<'_>,
) -> Result<(), Stopped> {
    let lens: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    let values = |number: usize| parts[number].iter().copied();
    fill_in_parallel(array, &lens, values, checkpoint)
}

/// Appends parts in order. Part k has `lens[k]` values, the first of `values(k)`. If those are
/// fewer, the others are the default. A thread of the current pool writes each part, after it
/// passed `checkpoint`.
///
/// # Errors
/// [`Stopped`]; nothing is appended then.
pub(super) fn fill_in_parallel<T, I>(
    array: &mut Array<T>,
    lens: &[usize],
    values: impl Fn(usize) -> I + Sync,
    checkpoint: &Checkpoint<'_>,
) -> Result<(), Stopped>
where
    T: Default + Send,
    I: Iterator<Item = T>,
{
    append_in_parts(array, lens, |rooms| {
        let rooms = rooms.into_par_iter().enumerate().with_max_len(1);
        rooms.try_for_each(|(number, room)| {
            checkpoint.check()?;
            room.fill(values(number));
            Ok(())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuzk_memory::{ArrayMemory, NEVER_STOP};

    #[test]
    fn parts_are_in_order_and_short_ones_are_filled_up() {
        let mut array = Array::<u32>::new_in(ArrayMemory::HEAP);
        array.push(7);
        extend_in_parallel(&mut array, &[&[1, 2], &[], &[3]], &NEVER_STOP).unwrap();
        assert_eq!(array[..], [7, 1, 2, 3]);
        fill_in_parallel(&mut array, &[1, 3], |_| 4..6, &NEVER_STOP).unwrap();
        assert_eq!(array[4..], [4, 4, 5, 0]);
        let stops = Checkpoint::asking(|| true);
        assert!(extend_in_parallel(&mut array, &[&[8], &[9]], &stops).is_err());
        assert_eq!(array.len(), 8);
    }
}
