//! The quotient's pointwise work, done on rows of transforms while they are at hand.
//!
//! Let there be n layers, the last L of which form the last pass. Then row r of block β is
//! value i = 2^L·β + r, and rev(i) = 2^(n−L)·rev(r) + rev(β). The shift of that value to
//! the coset of g is g^rev(i), the product of two factors. The factor of its row is entry r
//! of the table of twiddles. The factor of its lane is a power of g that all rows of a task
//! share.
//!
//! Factors are sixteen times as large as their value, as [`Fr`] wants them.

#![allow(unsafe_code)] // enters functions that enable the instructions, shares slices

use rayon::prelude::*;

use super::Ifma;
use super::butterflies::{gather_rows, scatter_rows};
use super::fr::{Fr, Words};
use super::lanes::{LANES, each_lane};
use super::ntt::{Rows, Work, area, for_each_task, gather_pass, load, scatter_pass, store, write};
use super::passes::{Lanes, Pass, passes};
use super::twiddles::Table;
use crate::error::{KernelError, expect_len};
use crate::matrix::columns::Shared;
use crate::matrix::reverse::reverse;

/// Scalars per task of a product.
const TASK: usize = 1 << 12;

/// `to[i] *= by[i]`, of as many, a multiple of eight.
///
/// Products are computed in a sweep of their own. The first pass of a transform reads
/// values that are far apart. It would wait longer for two or three vectors of them than a
/// sweep takes.
pub(crate) fn multiply(to: &mut [Words], by: &[Words], work: Work<'_>) -> Result<(), KernelError> {
    to.par_chunks_mut(TASK)
        .zip(by.par_chunks(TASK))
        .try_for_each(|(to, by)| {
            for (to, by) in to.as_chunks_mut().0.iter_mut().zip(by.as_chunks().0) {
                // SAFETY: the token proves the instructions.
                unsafe { product(work.table.token(), [&to.clone(), by], to) }
            }
            work.context.check()
        })
}

/// `to[i] = a[i] · b[i]`, of as many, a multiple of eight.
pub(crate) fn multiply_to(
    to: &mut [Words],
    [a, b]: [&[Words]; 2],
    work: Work<'_>,
) -> Result<(), KernelError> {
    to.par_chunks_mut(TASK)
        .zip(a.par_chunks(TASK))
        .zip(b.par_chunks(TASK))
        .try_for_each(|((to, a), b)| {
            let [a, b] = [a, b].map(|factor| factor.as_chunks().0);
            for ((to, a), b) in to.as_chunks_mut().0.iter_mut().zip(a).zip(b) {
                // SAFETY: the token proves the instructions.
                unsafe { product(work.table.token(), [a, b], to) }
            }
            work.context.check()
        })
}

#[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
fn product(token: Ifma, [a, b]: [&[Words; LANES]; 2], to: &mut [Words; LANES]) {
    let [a, b] = [a, b].map(|values| Fr::gather(token, values.each_ref()));
    a.mul_lazy(&b.times_16()).scatter(to.each_mut());
}

/// From values on the domain to those on its coset, times the domain's size.
/// `factors` are one and the coset's generator.
///
/// The last pass of the one transform and the first of the other are one.
pub(crate) fn move_to_coset(
    values: &mut [Words],
    factors: [&Words; 2],
    work: Work<'_>,
) -> Result<(), KernelError> {
    let passes = passes(values.len());
    let mut area = area(&passes, work)?;
    let rows = area.rows();
    let (values, work) = (Shared::new(values), (work, &rows));
    let Some((last, others)) = passes.split_last() else {
        return Ok(()); // There are two at least.
    };
    // SAFETY: the values are as many, and this call's alone.
    unsafe {
        for pass in others {
            scatter_pass::<true>(pass, &values, work)?;
        }
        shift_pass(last, &values, factors, work)?;
        for pass in others.iter().rev() {
            gather_pass::<false>(pass, &values, work)?;
        }
    }
    Ok(())
}

/// With v the inverse transform of `values`, unscaled, and g the coset's generator,
/// `to` becomes `sums[i] · sum_factor − v[i] · factor / g^i` in natural order, of sums in
/// bit-reversed order. All are as long; `values` are overwritten. `factors` are the factor,
/// and the factor divided by g.
pub(crate) fn interpolate_difference(
    [values, to]: [&mut [Words]; 2],
    (sums, sum_factor): (&[Words], &Words),
    factors: [&Words; 2],
    work: Work<'_>,
) -> Result<(), KernelError> {
    expect_len("to", values.len(), to.len())?;
    let passes = passes(values.len());
    let mut area = area(&passes, work)?;
    let rows = area.rows();
    let work = (work, &rows);
    let [values, to] = [values, to].map(Shared::new);
    let Some((last, others)) = passes.split_last() else {
        return Ok(()); // There are two at least.
    };
    // SAFETY: the values are as many, and this call's alone.
    unsafe {
        for pass in others {
            scatter_pass::<true>(pass, &values, work)?;
        }
        difference_pass(last, [&values, &to], (sums, sum_factor), factors, work)
    }
}

/// The last pass of an inverse transform, the shift to the coset, and the first pass
/// of a transform.
///
/// # Safety
/// Nobody else uses the values, which are as many as the pass is for.
unsafe fn shift_pass(
    pass: &Pass,
    values: &Shared<'_, Words>,
    factors: [&Words; 2],
    work: (Work<'_>, &Rows<'_>),
) -> Result<(), KernelError> {
    let (Work { table, .. }, _) = work;
    for_each_task(pass, work, |rows, lanes| {
        // SAFETY: the token proves the instructions, and no two tasks have a lane in common.
        unsafe {
            load(table.token(), pass, lanes, values, rows);
            scatter_rows::<true>(rows, pass.layers, table, lanes);
            let shift = shift_of_lanes::<false>(pass, lanes, table, factors);
            shift_rows(rows, table, &shift);
            gather_rows::<false>(rows, pass.layers, table, lanes);
            store::<false>(pass, lanes, values, rows);
        }
    })
}

/// The last pass of an inverse transform, whose values are shifted back, subtracted and
/// left in natural order.
///
/// # Safety
/// As [`shift_pass`].
unsafe fn difference_pass(
    pass: &Pass,
    [from, to]: [&Shared<'_, Words>; 2],
    sums: (&[Words], &Words),
    factors: [&Words; 2],
    work: (Work<'_>, &Rows<'_>),
) -> Result<(), KernelError> {
    let (Work { table, .. }, _) = work;
    for_each_task(pass, work, |rows, lanes| {
        // SAFETY: the token proves the instructions, no two tasks have a lane in common,
        // and reversing the bits of indices permutes them.
        unsafe {
            load(table.token(), pass, lanes, from, rows);
            scatter_rows::<true>(rows, pass.layers, table, lanes);
            let shift = shift_of_lanes::<true>(pass, lanes, table, factors);
            store_differences(pass, lanes, (rows, &shift), sums, (to, table));
        }
    })
}

/// Returns the lanes' factors of the shifts of a task, or of the negative inverse shifts.
/// Each is multiplied by the factor of the half of the indices that its lane is in.
#[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
fn shift_of_lanes<const INVERSE: bool>(
    pass: &Pass,
    lanes: &Lanes,
    table: Table<'_>,
    factors: [&Words; 2],
) -> Fr {
    let firsts = pass.indices(lanes, 0);
    let half = (pass.rows << pass.log_blocks) / 2;
    let entries = table.entries::<INVERSE>(each_lane(|lane| firsts[lane] % half));
    let halves = each_lane(|lane| factors[firsts[lane] / half]);
    entries
        .mul_lazy(&Fr::gather(table.token(), halves))
        .reduce()
}

#[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
fn shift_rows(rows: &mut [Fr], table: Table<'_>, shift_of_lanes: &Fr) {
    for (row, value) in rows.iter_mut().enumerate() {
        let shift = table.splat::<false>(row);
        let shifted = value.carried().mul_lazy(&shift);
        *value = shifted.carried().mul_lazy(shift_of_lanes);
    }
}

/// # Safety
/// Nobody else uses the values of `to` at the indices of these lanes with bits reversed.
#[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
unsafe fn store_differences(
    pass: &Pass,
    lanes: &Lanes,
    (rows, shift_of_lanes): (&[Fr], &Fr),
    (sums, sum_factor): (&[Words], &Words),
    (to, table): (&Shared<'_, Words>, Table<'_>),
) {
    let Lanes::Blocks { first_reversed, .. } = *lanes else {
        return; // The last pass has blocks.
    };
    let sum_factor = Fr::broadcast(table.token(), sum_factor);
    for (row, value) in rows.iter().enumerate() {
        // The inverses of both parts are negative, which is positive: hence minus.
        let unshifted = value.carried().mul_lazy(&table.splat::<true>(row));
        let minus = unshifted.carried().mul_lazy(shift_of_lanes);
        let indices = pass.indices(lanes, row);
        let sums = Fr::gather(table.token(), each_lane(|lane| &sums[indices[lane]]));
        let difference = sums.mul_lazy(&sum_factor).sub_lazy::<2>(&minus);
        let start = (reverse(row, pass.layers) << pass.log_blocks) + first_reversed;
        // SAFETY: in bounds, because an index is the other's with bits reversed, and
        // the caller's alone.
        unsafe { write::<true>(to, each_lane(|lane| start + lane), &difference) };
    }
}
