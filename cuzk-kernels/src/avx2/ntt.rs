//! Transforms over the scalar field, four columns or four blocks at a time.
//!
//! The passes are those of the transforms with AVX-512, in lanes of four. Invariant: values in
//! memory are residues of blst between passes, too.

use blst::blst_fr;
use blstrs::Scalar;

use super::LANES;
use super::rows::{Cells, Pass, Row, words};
use super::scalar::{load, reduced};
use crate::context::Context;
use crate::error::KernelError;
use crate::matrix::cells;
use crate::matrix::passes::{passes, rows_max};
use crate::matrix::rows::{Area, Rows};

pub(crate) use super::rows::Table;

/// Smallest transform: both kinds of passes need eight rows.
pub(crate) const LOG_SIZE_MIN: u32 = 6;

/// Bytes that a thread has rows in, over so many values.
pub(crate) fn rows_bytes(len: usize) -> usize {
    rows_max(&passes::<LANES>(len)) * size_of::<Row>()
}

/// The twiddles and the context of a transform.
#[derive(Clone, Copy)]
pub(crate) struct Work<'a> {
    pub(crate) table: Table<'a>,
    pub(crate) context: Context<'a>,
}

/// The memory of the rows of these passes.
///
/// # Errors
/// [`KernelError::Memory`].
pub(super) fn area<'m>(passes: &[Pass], work: Work<'m>) -> Result<Area<'m, Row>, KernelError> {
    Area::take(work.context.memory, rows_max(passes))
}

/// Natural order in, bit-reversed order out.
///
/// # Errors
/// [`KernelError::Memory`], [`KernelError::Stopped`].
pub(crate) fn scatter(
    values: &mut [Scalar],
    is_inverse: bool,
    work: Work<'_>,
) -> Result<(), KernelError> {
    let passes = passes(values.len());
    let mut area = area(&passes, work)?;
    let rows = area.rows();
    let work = (work, &rows);
    passes.iter().try_for_each(|pass| match is_inverse {
        true => scatter_pass::<true>(pass, values, work),
        false => scatter_pass::<false>(pass, values, work),
    })
}

/// One pass of it, over as many values as the pass is for.
///
/// # Errors
/// As [`scatter`].
pub(super) fn scatter_pass<const INVERSE: bool>(
    pass: &Pass,
    values: &mut [Scalar],
    work: (Work<'_>, &Rows<'_, Row>),
) -> Result<(), KernelError> {
    let (Work { table, .. }, _) = work;
    let token = table.token();
    for_each_task(pass, values, work, |rows, cells| {
        super::read(token, cells, rows);
        super::scatter_rows::<INVERSE>(token, rows, pass.layers, (table, cells.lanes()));
        super::write(token, cells, rows);
    })
}

/// One pass from bit-reversed order to natural, of which a transform has them in reverse.
///
/// # Errors
/// As [`scatter`].
pub(super) fn gather_pass(
    pass: &Pass,
    values: &mut [Scalar],
    work: (Work<'_>, &Rows<'_, Row>),
) -> Result<(), KernelError> {
    let (Work { table, .. }, _) = work;
    let token = table.token();
    for_each_task(pass, values, work, |rows, cells| {
        super::read(token, cells, rows);
        super::gather_rows(token, rows, pass.layers, (table, cells.lanes()));
        super::write(token, cells, rows);
    })
}

/// Runs the tasks of a pass in parallel, each with its values and memory for its rows.
pub(super) fn for_each_task(
    pass: &Pass,
    values: &mut [Scalar],
    (work, rows): (Work<'_>, &Rows<'_, Row>),
    task: impl Fn(&mut [Row], &mut Cells<'_>) + Sync,
) -> Result<(), KernelError> {
    cells::for_each_task(pass, values, |cells| {
        rows.with(|rows| task(&mut rows[..pass.rows], cells))?;
        work.context.check()
    })
}

/// Reads a task's rows.
#[target_feature(enable = "avx2,fma")]
pub(super) fn read(cells: &Cells<'_>, rows: &mut [Row]) {
    for (to, from) in rows.iter_mut().zip(cells.rows()) {
        to.0 = load(from.map(words).each_ref());
    }
}

/// Writes a task's rows back.
#[target_feature(enable = "avx2,fma")]
pub(super) fn write(cells: &mut Cells<'_>, rows: &[Row]) {
    for (from, to) in rows.iter().zip(cells.rows_mut()) {
        for (to, l) in to.into_iter().zip(reduced(&from.0)) {
            *to = blst_fr { l }.into();
        }
    }
}
