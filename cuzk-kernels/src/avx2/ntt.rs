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

/// Natural order in, bit-reversed order out.
///
/// # Errors
/// [`KernelError::Memory`], [`KernelError::Stopped`].
pub(crate) fn scatter(
    values: &mut [Scalar],
    is_inverse: bool,
    table: Table<'_>,
    context: Context<'_>,
) -> Result<(), KernelError> {
    let passes = passes(values.len());
    transform(values, passes.iter(), context, |rows, pass, lanes| {
        // SAFETY: the table's token proves the instructions.
        unsafe {
            match is_inverse {
                true => scatter_rows::<true>(rows, pass.layers, (table, lanes)),
                false => scatter_rows::<false>(rows, pass.layers, (table, lanes)),
            }
        }
    })
}

/// Bit-reversed order in, natural order out.
///
/// # Errors
/// As [`scatter`].
pub(crate) fn gather(
    values: &mut [Scalar],
    table: Table<'_>,
    context: Context<'_>,
) -> Result<(), KernelError> {
    let passes = passes(values.len());
    transform(values, passes.iter().rev(), context, |rows, pass, lanes| {
        // SAFETY: the table's token proves the instructions.
        unsafe { gather_rows(rows, pass.layers, (table, lanes)) }
    })
}

/// Runs the passes, and the tasks of each in parallel. There is an implementation only where
/// the instructions are proved, which is why `layers` has a table.
fn transform<'p>(
    values: &mut [Scalar],
    passes: impl Iterator<Item = &'p Pass> + Clone,
    context: Context<'_>,
    layers: impl Fn(&mut [Row], &Pass, &Lanes) + Sync,
) -> Result<(), KernelError> {
    let rows = passes.clone().map(|pass| pass.rows).max().unwrap_or(0);
    let mut area = Area::take(context.memory, rows)?;
    let rows: Rows<'_, Row> = area.rows();
    let values = Shared::new(values);
    for pass in passes {
        (0..pass.tasks()).into_par_iter().try_for_each(|task| {
            let lanes = pass.lanes(task);
            rows.with(|rows| {
                let rows = &mut rows[..pass.rows];
                // SAFETY: only callers with a table are here, whose token proves the
                // instructions; and no two tasks have a lane in common.
                unsafe { read(pass, &lanes, &values, rows) };
                layers(rows, pass, &lanes);
                // SAFETY: as above.
                unsafe { write(pass, &lanes, &values, rows) };
            })?;
            context.check()
        })?;
    }
    Ok(())
}

/// Reads a task's rows.
///
/// # Safety
/// Nobody else uses the values of these lanes.
#[target_feature(enable = "avx2,fma")]
unsafe fn read(pass: &Pass, lanes: &Lanes, values: &Shared<'_, Scalar>, rows: &mut [Row]) {
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
unsafe fn write(pass: &Pass, lanes: &Lanes, values: &Shared<'_, Scalar>, rows: &[Row]) {
    for (row, from) in rows.iter().enumerate() {
        let indices = pass.indices(lanes, row);
        for (index, l) in indices.into_iter().zip(reduced(&from.0)) {
            // SAFETY: as in `read`, and the indices differ.
            *unsafe { values.element(index) } = blst_fr { l }.into();
        }
    }
}
