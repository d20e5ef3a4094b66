//! The values of a pass's tasks: each task has the values of its lanes.
//!
//! Rust's slices cannot lend the lanes of one slice to several threads; this file does. Not
//! arithmetic. Invariant: the lanes of two tasks have no value in common, and no value is in two
//! rows of a task.

#![allow(unsafe_code)] // disjoint lanes of one slice, used by many tasks

use std::array::from_fn as each_lane;

use rayon::prelude::*;

use super::columns::Shared;
use super::passes::{Lanes, Pass};
use super::reverse::reverse;
use crate::error::{KernelError, expect_len};

/// The values of a task's lanes.
pub(crate) struct Cells<'a, T, const L: usize> {
    values: &'a Shared<'a, T>,
    pass: &'a Pass<L>,
    lanes: Lanes<L>,
}

impl<T, const L: usize> Cells<'_, T, L> {
    #[inline(always)]
    pub(crate) fn lanes(&self) -> &Lanes<L> {
        &self.lanes
    }

    /// The values of each row, in order.
    #[inline(always)]
    pub(crate) fn rows(&self) -> impl Iterator<Item = [&T; L]> {
        (0..self.pass.rows).map(move |row| {
            let indices = self.pass.indices(&self.lanes, row);
            // SAFETY: in bounds, because the slice is as long as the pass. The lanes are this
            // task's alone, and it does not write while this is borrowed.
            each_lane(|lane| unsafe { &*self.values.element(indices[lane]) })
        })
    }

    /// The values of each row, in order, for writing.
    #[inline(always)]
    pub(crate) fn rows_mut(&mut self) -> impl Iterator<Item = [&mut T; L]> {
        (0..self.pass.rows).map(move |row| {
            let indices = self.pass.indices(&self.lanes, row);
            // SAFETY: as in `rows`. The indices differ, and each row comes once.
            each_lane(|lane| unsafe { self.values.element(indices[lane]) })
        })
    }
}

/// Places for the values of a task's lanes, in reversed order.
pub(crate) struct Reversed<'a, T, const L: usize> {
    places: &'a Shared<'a, T>,
    pass: &'a Pass<L>,
    first: usize,
}

impl<T, const L: usize> Reversed<'_, T, L> {
    /// The places of each row's values, in the order of the rows.
    #[inline(always)]
    pub(crate) fn rows_mut(&mut self) -> impl Iterator<Item = [&mut T; L]> {
        let Pass {
            layers, log_blocks, ..
        } = *self.pass;
        (0..self.pass.rows).map(move |row| {
            let start = (reverse(row, layers) << log_blocks) + self.first;
            // SAFETY: in bounds, because an index is that of the row's value with bits reversed,
            // and the slice is as long as the pass. Reversing bits permutes the indices, so the
            // places are this task's alone, and each row comes once.
            each_lane(|lane| unsafe { self.places.element(start + lane) })
        })
    }
}

/// Calls `task` with the values of each task's lanes, in parallel.
///
/// # Errors
/// Those of `task`; [`KernelError::LengthMismatch`] if there are not as many values as the pass
/// is for.
pub(crate) fn for_each_task<T: Send, const L: usize>(
    pass: &Pass<L>,
    values: &mut [T],
    task: impl Fn(&mut Cells<'_, T, L>) -> Result<(), KernelError> + Sync,
) -> Result<(), KernelError> {
    expect_len("values", pass.len(), values.len())?;
    let values = &Shared::new(values);
    (0..pass.tasks()).into_par_iter().try_for_each(|i| {
        let lanes = pass.lanes(i);
        task(&mut Cells {
            values,
            pass,
            lanes,
        })
    })
}

/// Calls `task` with the values of each task's lanes, and with the places in `to` at their
/// indices with bits reversed. The pass is the last: lanes of another pass have no such places,
/// and `task` is not called for them.
///
/// # Errors
/// As [`for_each_task`].
pub(crate) fn for_each_reversed_task<T: Send, const L: usize>(
    pass: &Pass<L>,
    [values, to]: [&mut [T]; 2],
    task: impl Fn(&Cells<'_, T, L>, &mut Reversed<'_, T, L>) -> Result<(), KernelError> + Sync,
) -> Result<(), KernelError> {
    expect_len("to", pass.len(), to.len())?;
    let places = &Shared::new(to);
    for_each_task(pass, values, |cells| {
        let Lanes::Blocks { first_reversed, .. } = cells.lanes else {
            return Ok(());
        };
        let first = first_reversed;
        let mut reversed = Reversed {
            places,
            pass,
            first,
        };
        task(cells, &mut reversed)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::passes::passes;

    const LANES: usize = 4;

    #[test]
    fn each_value_is_in_one_row_of_one_task() {
        for log in 6..=9 {
            for pass in passes::<LANES>(1 << log) {
                let mut values: Vec<usize> = (0..1 << log).collect();
                for_each_task(&pass, &mut values, |cells| {
                    let row_indices = |row| pass.indices(cells.lanes(), row);
                    let indices: Vec<_> = (0..pass.rows).map(row_indices).collect();
                    let rows: Vec<_> = cells.rows().map(|row| row.map(|value| *value)).collect();
                    assert_eq!(rows, indices);
                    cells.rows_mut().flatten().for_each(|value| *value += 1000);
                    Ok(())
                })
                .unwrap();
                assert!(values.into_iter().eq(1000..1000 + (1 << log)), "2^{log}");
            }
        }
    }

    #[test]
    fn values_go_to_the_indices_with_their_bits_reversed() {
        for log in 6..=9 {
            let mut values: Vec<usize> = (0..1 << log).collect();
            let mut to = vec![usize::MAX; 1 << log];
            for (i, pass) in passes::<LANES>(1 << log).iter().enumerate() {
                for_each_reversed_task(pass, [&mut values, &mut to], |cells, reversed| {
                    assert!(pass.is_last());
                    for (from, to) in cells.rows().zip(reversed.rows_mut()) {
                        for (from, to) in from.into_iter().zip(to) {
                            *to = *from;
                        }
                    }
                    Ok(())
                })
                .unwrap();
                assert_eq!(to.contains(&usize::MAX), i == 0, "2^{log}");
            }
            for (i, value) in to.into_iter().enumerate() {
                assert_eq!(value, reverse(i, log), "2^{log}");
            }
        }
    }

    /// A shorter slice would be written past its end.
    #[test]
    fn another_number_of_values_is_refused() {
        let pass = &passes::<LANES>(64)[1];
        let [mut right, mut wrong] = [vec![0; 64], vec![0; 60]];
        assert!(for_each_task(pass, &mut wrong, |_| Ok(())).is_err());
        let vectors = [&mut right[..], &mut wrong];
        assert!(for_each_reversed_task(pass, vectors, |_, _| Ok(())).is_err());
        let vectors = [&mut wrong[..], &mut right];
        assert!(for_each_reversed_task(pass, vectors, |_, _| Ok(())).is_err());
    }
}
