//! Transforms over the scalar field, eight columns or eight blocks at a time.
//!
//! The passes are those of the portable transform. In all but the last, the
//! lanes are neighbouring columns, which share their twiddles. In the last a
//! block is one column, and the lanes are neighbouring blocks. Within a pass
//! two layers are done together, so that values are loaded and stored half
//! as often.

use super::Ifma;
use super::field::fr::{Fr, Words};
use super::field::lanes::LANES;
use super::passes::{Pass, passes, rows_max};
use super::twiddles::Table;
use crate::context::Context;
use crate::error::KernelError;
use crate::matrix::{cells, rows};

/// Smallest transform: both kinds of passes need eight lanes.
pub(crate) const LOG_SIZE_MIN: u32 = 6;

/// The values of a task's lanes.
pub(super) type Cells<'a> = cells::Cells<'a, Words, LANES>;

/// Places for the values of a task's lanes, in reversed order.
pub(super) type Reversed<'a> = cells::Reversed<'a, Words, LANES>;

/// Eight values of a row, in memory that is lent. Only [`super::opened`] reads it.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct LentValues(Fr);

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
    let work = (work, &rows);
    passes.iter().try_for_each(|pass| {
        if inverse {
            scatter_pass::<true>(pass, values, work)
        } else {
            scatter_pass::<false>(pass, values, work)
        }
    })
}

/// One pass of it, over as many values as the pass is for.
pub(super) fn scatter_pass<const INVERSE: bool>(
    pass: &Pass,
    values: &mut [Words],
    work: (Work<'_>, &Rows<'_>),
) -> Result<(), KernelError> {
    let (Work { table, .. }, _) = work;
    let token = table.token();
    for_each_task(pass, values, work, |rows, cells| {
        super::load(token, cells, rows);
        super::scatter_rows::<INVERSE>(token, rows, pass.layers, table, cells.lanes());
        if pass.is_last() {
            super::store::<true>(token, cells, rows);
        } else {
            super::store::<false>(token, cells, rows);
        }
    })
}

/// One pass from bit-reversed order to natural, of which a transform has them in
/// reverse.
pub(super) fn gather_pass<const INVERSE: bool>(
    pass: &Pass,
    values: &mut [Words],
    work: (Work<'_>, &Rows<'_>),
) -> Result<(), KernelError> {
    let (Work { table, .. }, _) = work;
    let token = table.token();
    for_each_task(pass, values, work, |rows, cells| {
        super::load(token, cells, rows);
        super::gather_rows::<INVERSE>(token, rows, pass.layers, table, cells.lanes());
        if pass.is_first() {
            super::store::<true>(token, cells, rows);
        } else {
            super::store::<false>(token, cells, rows);
        }
    })
}

/// Runs the tasks of a pass in parallel, each with its values and memory for its rows.
pub(super) fn for_each_task(
    pass: &Pass,
    values: &mut [Words],
    (work, rows): (Work<'_>, &Rows<'_>),
    task: impl Fn(&mut [Fr], &mut Cells<'_>) + Sync,
) -> Result<(), KernelError> {
    let token = work.table.token();
    cells::for_each_task(pass, values, |cells| {
        rows.with(|rows| task(super::opened(token, &mut rows[..pass.rows]), cells))?;
        work.context.check()
    })
}

/// Reads a task's rows.
#[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
pub(super) fn load(token: Ifma, cells: &Cells<'_>, rows: &mut [Fr]) {
    for (to, from) in rows.iter_mut().zip(cells.rows()) {
        *to = Fr::gather(token, from);
    }
}

/// Writes a task's rows back, which are below 32 r: reduced, or for the next pass below 1.01 r.
#[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
pub(super) fn store<const REDUCED: bool>(cells: &mut Cells<'_>, rows: &[Fr]) {
    for (value, to) in rows.iter().zip(cells.rows_mut()) {
        value.scatter_below::<REDUCED>(to);
    }
}
