//! Transforms over the scalar field, eight columns or eight blocks at a time.
//!
//! The passes are those of the portable transform. In all but the last, the
//! lanes are neighbouring columns, which share their twiddles. In the last a
//! block is one column, and the lanes are neighbouring blocks. Within a pass
//! two layers are done together, so that values are loaded and stored half
//! as often.

#![allow(unsafe_code)] // enters functions that enable the instructions, shares slices

use rayon::prelude::*;

use super::Ifma;
use super::butterflies::{gather_rows, scatter_rows};
use super::fr::{Fr, Words};
use super::lanes::{LANES, each_lane};
use super::passes::{Lanes, Pass, passes, rows_max};
use super::twiddles::Table;
use crate::context::Context;
use crate::error::KernelError;
use crate::matrix::columns::Shared;
use crate::matrix::rows;
use cuzk_memory::Plain;

/// Smallest transform: both kinds of passes need eight lanes.
pub(crate) const LOG_SIZE_MIN: u32 = 6;

/// Eight values of a row, in memory that is lent. Only [`opened`] reads it.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct LentValues(Fr);

// SAFETY: registers, of which all values are valid, and nothing else. That there are
// such registers is proved by who opens them.
unsafe impl Plain for LentValues {}

const _: () = assert!(size_of::<LentValues>() == 5 * 64);

/// The values themselves; the token proves that there are such registers.
fn opened(_: Ifma, places: &mut [LentValues]) -> &mut [Fr] {
    let len = places.len();
    // SAFETY: a place is a value and nothing else.
    unsafe { std::slice::from_raw_parts_mut(places.as_mut_ptr().cast(), len) }
}

/// The memory of the rows of all tasks.
pub(crate) type Area<'m> = rows::Area<'m, LentValues>;

/// The same, of all threads.
pub(crate) type Rows<'a> = rows::Rows<'a, LentValues>;

/// Bytes that a thread has rows in, over so many values.
pub(crate) fn rows_bytes(len: usize) -> usize {
    rows_max(&passes(len)) * size_of::<LentValues>()
}

/// Borrows the memory of the rows of these passes.
///
/// # Errors
/// [`KernelError::Memory`].
pub(super) fn area<'m>(passes: &[Pass], work: Work<'m>) -> Result<Area<'m>, KernelError> {
    Area::take(work.context.memory, rows_max(passes))
}

/// The twiddles and the context of a transform.
#[derive(Clone, Copy)]
pub(crate) struct Work<'a> {
    pub(crate) table: Table<'a>,
    pub(crate) context: Context<'a>,
}

/// Natural order in, bit-reversed order out.
pub(crate) fn scatter(
    values: &mut [Words],
    inverse: bool,
    work: Work<'_>,
) -> Result<(), KernelError> {
    let passes = passes(values.len());
    let mut area = area(&passes, work)?;
    let rows = area.rows();
    let (values, work) = (Shared::new(values), (work, &rows));
    passes.iter().try_for_each(|pass| {
        // SAFETY: the values are this call's alone, and as many as the pass is for.
        unsafe {
            if inverse {
                scatter_pass::<true>(pass, &values, work)
            } else {
                scatter_pass::<false>(pass, &values, work)
            }
        }
    })
}

/// One pass of it.
///
/// # Safety
/// Nobody else uses the values, which are as many as the pass is for.
pub(super) unsafe fn scatter_pass<const INVERSE: bool>(
    pass: &Pass,
    values: &Shared<'_, Words>,
    work: (Work<'_>, &Rows<'_>),
) -> Result<(), KernelError> {
    let (Work { table, .. }, _) = work;
    for_each_task(pass, work, |rows, lanes| {
        // SAFETY: the token proves the instructions, and no two tasks have a lane in common.
        unsafe {
            load(table.token(), pass, lanes, values, rows);
            scatter_rows::<INVERSE>(rows, pass.layers, table, lanes);
            if pass.is_last() {
                store::<true>(pass, lanes, values, rows);
            } else {
                store::<false>(pass, lanes, values, rows);
            }
        }
    })
}

/// One pass from bit-reversed order to natural, of which a transform has them in
/// reverse.
///
/// # Safety
/// Nobody else uses the values, which are as many as the pass is for.
pub(super) unsafe fn gather_pass<const INVERSE: bool>(
    pass: &Pass,
    values: &Shared<'_, Words>,
    work: (Work<'_>, &Rows<'_>),
) -> Result<(), KernelError> {
    let (Work { table, .. }, _) = work;
    for_each_task(pass, work, |rows, lanes| {
        // SAFETY: the token proves the instructions, and no two tasks have a lane in common.
        unsafe {
            load(table.token(), pass, lanes, values, rows);
            gather_rows::<INVERSE>(rows, pass.layers, table, lanes);
            if pass.is_first() {
                store::<true>(pass, lanes, values, rows);
            } else {
                store::<false>(pass, lanes, values, rows);
            }
        }
    })
}

/// Runs the tasks of a pass in parallel, each with memory for its rows, as many as the
/// pass has.
pub(super) fn for_each_task(
    pass: &Pass,
    (work, rows): (Work<'_>, &Rows<'_>),
    task: impl Fn(&mut [Fr], &Lanes) + Sync,
) -> Result<(), KernelError> {
    let token = work.table.token();
    (0..pass.tasks()).into_par_iter().try_for_each(|i| {
        rows.with(|rows| task(opened(token, &mut rows[..pass.rows]), &pass.lanes(i)))?;
        work.context.check()
    })
}

/// Reads a task's rows, as many as the pass has.
///
/// # Safety
/// Nobody else uses the values of these lanes.
#[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
pub(super) unsafe fn load(
    token: Ifma,
    pass: &Pass,
    lanes: &Lanes,
    values: &Shared<'_, Words>,
    rows: &mut [Fr],
) {
    for (row, to) in rows.iter_mut().enumerate() {
        // SAFETY: in bounds by construction of the pass, and the caller's alone.
        *to = unsafe { read(token, values, pass.indices(lanes, row)) };
    }
}

/// # Safety
/// The indices are in bounds, and nobody else uses the values there.
#[inline(always)]
pub(super) unsafe fn read(token: Ifma, values: &Shared<'_, Words>, indices: [usize; LANES]) -> Fr {
    let from = each_lane(|lane| {
        // SAFETY: the caller's.
        unsafe { &*values.element(indices[lane]) }
    });
    Fr::gather(token, from)
}

/// Writes a task's rows back, which are below 32 r: reduced, or for the next pass below 1.01 r.
///
/// # Safety
/// As [`load`].
#[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
pub(super) unsafe fn store<const REDUCED: bool>(
    pass: &Pass,
    lanes: &Lanes,
    values: &Shared<'_, Words>,
    rows: &[Fr],
) {
    for (row, value) in rows.iter().enumerate() {
        // SAFETY: as in `load`.
        unsafe { write::<REDUCED>(values, pass.indices(lanes, row), value) };
    }
}

/// # Safety
/// As [`read`], and the indices differ.
#[inline(always)]
pub(super) unsafe fn write<const REDUCED: bool>(
    values: &Shared<'_, Words>,
    indices: [usize; LANES],
    value: &Fr,
) {
    value.scatter_below::<REDUCED>(each_lane(|lane| {
        // SAFETY: the caller's.
        unsafe { values.element(indices[lane]) }
    }));
}
