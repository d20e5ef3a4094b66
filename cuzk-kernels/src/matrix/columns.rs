//! Columns of a matrix in place, handed to tasks side by side.
//!
//! Rust's slices cannot lend disjoint columns of one slice to several
//! threads; this file does, and is where the crate's transforms are unsafe.

#![allow(unsafe_code)] // disjoint strided access to one slice from many tasks

use std::marker::PhantomData;
use std::slice;

use rayon::prelude::*;

use super::rows::Rows;
use crate::context::Context;
use crate::error::KernelError;
use cuzk_memory::Plain;

/// Columns that a task takes at a time: 256 bytes of scalars a row, so that
/// whole cache lines are moved.
const GROUP: usize = 8;

/// How a slice is cut: consecutive matrices of `rows` × `columns` elements,
/// row by row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
}

impl Shape {
    /// Columns that a task takes.
    fn width(self) -> usize {
        self.columns.min(GROUP)
    }

    /// Elements that a task copies together: none where a column is all there is.
    pub(crate) fn copied(self) -> usize {
        match self.columns {
            1 => 0,
            _ => self.rows * self.width(),
        }
    }
}

/// Calls `task(matrix, width, elements)` for every group of columns of every
/// matrix, in parallel. `elements` are all rows of `width` columns, row by
/// row; what the task leaves there is written back.
///
/// The slice's length is a multiple of a matrix, else its tail is untouched. `rows` are
/// at least as many as [`Shape::copied`] says.
///
/// # Errors
/// [`KernelError::Stopped`], [`KernelError::Memory`].
pub(crate) fn for_each_column_group<T, F>(
    values: &mut [T],
    shape: Shape,
    (rows, context): (&Rows<'_, T>, Context<'_>),
    task: F,
) -> Result<(), KernelError>
where
    T: Plain,
    F: Fn(usize, usize, &mut [T]) + Sync,
{
    let matrix_len = shape.rows * shape.columns;
    if shape.columns == 1 {
        return values
            .par_chunks_exact_mut(matrix_len)
            .enumerate()
            .try_for_each(|(matrix, elements)| {
                task(matrix, 1, elements);
                context.check()
            });
    }
    let width = shape.width();
    let groups = shape.columns / width;
    let matrices = values.len() / matrix_len;
    let shared = Shared::new(values);
    (0..matrices * groups).into_par_iter().try_for_each(|i| {
        let (matrix, group) = (i / groups, i % groups);
        let row = |r: usize| matrix * matrix_len + r * shape.columns + group * width;
        rows.with(|copy| {
            let copy = &mut copy[..shape.copied()];
            for (r, part) in copy.chunks_exact_mut(width).enumerate() {
                // SAFETY: task i alone touches the columns of group `i % groups` of matrix
                // `i / groups`, and the slice is in bounds, as `width` divides `columns`.
                part.copy_from_slice(unsafe { shared.slice(row(r), width) });
            }
            task(matrix, width, copy);
            for (r, part) in copy.chunks_exact(width).enumerate() {
                // SAFETY: as above.
                unsafe { shared.slice(row(r), width) }.copy_from_slice(part);
            }
        })?;
        context.check()
    })
}

/// A slice whose disjoint parts several threads use at once.
pub(crate) struct Shared<'a, T> {
    start: *mut T,
    len: usize,
    _borrow: PhantomData<&'a mut [T]>,
}

// SAFETY: `Shared` only hands out references under `slice`'s contract, which
// makes them exclusive, so sharing it is sending parts of a `&mut [T]`.
unsafe impl<T: Send> Sync for Shared<'_, T> {}

impl<'a, T> Shared<'a, T> {
    pub(crate) fn new(values: &'a mut [T]) -> Shared<'a, T> {
        Shared {
            start: values.as_mut_ptr(),
            len: values.len(),
            _borrow: PhantomData,
        }
    }

    /// `len` elements from `start` on.
    ///
    /// # Safety
    /// `start + len` is at most the slice's length, and while the returned
    /// slice is in use no other one that overlaps it is.
    #[expect(clippy::mut_from_ref, reason = "exclusive by contract")]
    pub(crate) unsafe fn slice(&self, start: usize, len: usize) -> &mut [T] {
        debug_assert!(start + len <= self.len);
        // SAFETY: in bounds and exclusive, as the caller promises; the borrow
        // of the whole slice lasts as long as `self`.
        unsafe { slice::from_raw_parts_mut(self.start.add(start), len) }
    }

    /// One element.
    ///
    /// # Safety
    /// As [`Shared::slice`].
    #[inline(always)]
    #[expect(clippy::mut_from_ref, reason = "exclusive by contract")]
    pub(crate) unsafe fn element(&self, index: usize) -> &mut T {
        debug_assert!(index < self.len);
        // SAFETY: as in `slice`.
        unsafe { &mut *self.start.add(index) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::Isa;
    use crate::matrix::rows::Area;
    use cuzk_memory::Mapped;

    /// A task reverses the rows that it gets.
    #[test]
    fn each_group_of_columns_is_handed_to_one_task() {
        for (rows, columns) in [(4, 1), (4, 2), (3, 8), (4, 32)] {
            let shape = Shape { rows, columns };
            // Two matrices, and an element that no matrix has.
            let before: Vec<u64> = (0..=2 * (rows * columns) as u64).collect();
            let mut values = before.clone();
            let mut area = Area::take(&Mapped, shape.copied()).unwrap();
            let context = (&area.rows(), Isa::PORTABLE.into());
            for_each_column_group(&mut values, shape, context, |_, width, elements| {
                assert_eq!(elements.len(), rows * width);
                let rows = elements.chunks_exact(width).rev();
                elements.copy_from_slice(&rows.collect::<Vec<_>>().concat());
            })
            .unwrap();
            for (index, &value) in values.iter().enumerate() {
                let (matrix, row, column) = (
                    index / (rows * columns),
                    index / columns % rows,
                    index % columns,
                );
                let reversed = (matrix * rows + rows - 1 - row) * columns + column;
                let from = if matrix < 2 { reversed } else { index };
                assert_eq!(value, before[from], "{index} of {rows} rows of {columns}");
            }
        }
    }
}
