//! Transforms over the scalar field, four columns or four blocks at a time.
//!
//! The passes are those of the transforms with AVX-512, in lanes of four. Invariant: values in
//! memory are residues of blst between passes, too.

#![allow(unsafe_code)] // enters functions that enable the instructions, shares slices

use blst::blst_fr;
use blstrs::Scalar;
use rayon::prelude::*;

use super::LANES;
use super::butterflies::{gather_rows, scatter_rows};
use super::rows::{Lanes, Pass, Row, words};
use super::scalar::{load, reduced};
use crate::context::Context;
use crate::error::KernelError;
use crate::matrix::columns::Shared;
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
    let (values, work) = (Shared::new(values), (work, &rows));
    passes.iter().try_for_each(|pass| {
        // SAFETY: the values are this call's alone, and as many as the pass is for.
        unsafe {
            match is_inverse {
                true => scatter_pass::<true>(pass, &values, work),
                false => scatter_pass::<false>(pass, &values, work),
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
    values: &Shared<'_, Scalar>,
    work: (Work<'_>, &Rows<'_, Row>),
) -> Result<(), KernelError> {
    let (Work { table, .. }, _) = work;
    for_each_task(pass, work, |rows, lanes| {
        // SAFETY: the table's token proves the instructions, and no two tasks have a lane in
        // common.
        unsafe {
            read(pass, lanes, values, rows);
            scatter_rows::<INVERSE>(rows, pass.layers, (table, lanes));
            write(pass, lanes, values, rows);
        }
    })
}

/// One pass from bit-reversed order to natural, of which a transform has them in reverse.
///
/// # Safety
/// As [`scatter_pass`].
pub(super) unsafe fn gather_pass(
    pass: &Pass,
    values: &Shared<'_, Scalar>,
    work: (Work<'_>, &Rows<'_, Row>),
) -> Result<(), KernelError> {
    let (Work { table, .. }, _) = work;
    for_each_task(pass, work, |rows, lanes| {
        // SAFETY: as in `scatter_pass`.
        unsafe {
            read(pass, lanes, values, rows);
            gather_rows(rows, pass.layers, (table, lanes));
            write(pass, lanes, values, rows);
        }
    })
}

/// Runs the tasks of a pass in parallel, each with memory for its rows, as many as the pass has.
pub(super) fn for_each_task(
    pass: &Pass,
    (work, rows): (Work<'_>, &Rows<'_, Row>),
    task: impl Fn(&mut [Row], &Lanes) + Sync,
) -> Result<(), KernelError> {
    (0..pass.tasks()).into_par_iter().try_for_each(|i| {
        rows.with(|rows| task(&mut rows[..pass.rows], &pass.lanes(i)))?;
        work.context.check()
    })
}

/// Reads a task's rows.
///
/// # Safety
/// Nobody else uses the values of these lanes.
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn read(
    pass: &Pass,
    lanes: &Lanes,
    values: &Shared<'_, Scalar>,
    rows: &mut [Row],
) {
    for (row, to) in rows.iter_mut().enumerate() {
        let from = pass.indices(lanes, row).map(|index| {
            // SAFETY: in bounds by construction of the pass, and the caller's alone.
            words(unsafe { values.element(index) })
        });
        to.0 = load(from.each_ref());
    }
}

/// Writes a task's rows back.
///
/// # Safety
/// As [`read`].
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn write(pass: &Pass, lanes: &Lanes, values: &Shared<'_, Scalar>, rows: &[Row]) {
    for (row, from) in rows.iter().enumerate() {
        let indices = pass.indices(lanes, row);
        for (index, l) in indices.into_iter().zip(reduced(&from.0)) {
            // SAFETY: as in `read`, and the indices differ.
            *unsafe { values.element(index) } = blst_fr { l }.into();
        }
    }
}
