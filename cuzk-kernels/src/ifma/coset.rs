//! The quotient's pointwise work, done on rows of transforms while they are at hand.
//!
//! Let there be n layers, the last L of which form the last pass. Then row r of block β is
//! value i = 2^L·β + r, and rev(i) = 2^(n−L)·rev(r) + rev(β). The shift of that value to
//! the coset of g is g^rev(i), the product of two factors. The factor of its row is entry r
//! of the table of twiddles. The factor of its lane is a power of g that all rows of a task
//! share.
//!
//! Factors are sixteen times as large as their value, as [`Fr`] wants them.

use rayon::prelude::*;

use super::Ifma;
use super::field::fr::{Fr, Words};
use super::field::lanes::{LANES, each_lane};
use super::ntt::{Reversed, Rows, Work, area, for_each_task, gather_pass, scatter_pass};
use super::passes::{Lanes, Pass, passes};
use super::twiddles::Table;
use crate::error::{KernelError, expect_len};
use crate::matrix::cells::for_each_reversed_task;

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
                super::product(work.table.token(), [&to.clone(), by], to);
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
                super::product(work.table.token(), [a, b], to);
            }
            work.context.check()
        })
}

/// Eight products.
#[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
pub(super) fn product(token: Ifma, [a, b]: [&[Words; LANES]; 2], to: &mut [Words; LANES]) {
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
    let work = (work, &rows);
    let Some((last, others)) = passes.split_last() else {
        return Ok(()); // There are two at least.
    };
    for pass in others {
        scatter_pass::<true>(pass, values, work)?;
    }
    shift_pass(last, values, factors, work)?;
    for pass in others.iter().rev() {
        gather_pass::<false>(pass, values, work)?;
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
    let Some((last, others)) = passes.split_last() else {
        return Ok(()); // There are two at least.
    };
    for pass in others {
        scatter_pass::<true>(pass, values, work)?;
    }
    difference_pass(last, [values, to], (sums, sum_factor), factors, work)
}

/// The last pass of an inverse transform, the shift to the coset, and the first pass
/// of a transform.
fn shift_pass(
    pass: &Pass,
    values: &mut [Words],
    factors: [&Words; 2],
    work: (Work<'_>, &Rows<'_>),
) -> Result<(), KernelError> {
    let (Work { table, .. }, _) = work;
    let token = table.token();
    for_each_task(pass, values, work, |rows, cells| {
        super::load(token, cells, rows);
        let lanes = cells.lanes();
        super::scatter_rows::<true>(token, rows, pass.layers, table, lanes);
        let shift = super::shift_of_lanes::<false>(token, pass, lanes, table, factors);
        super::shift_rows(token, rows, table, &shift);
        super::gather_rows::<false>(token, rows, pass.layers, table, lanes);
        super::store::<false>(token, cells, rows);
    })
}

/// The last pass of an inverse transform, whose values are shifted back, subtracted and
/// left in natural order.
fn difference_pass(
    pass: &Pass,
    vectors: [&mut [Words]; 2],
    sums: (&[Words], &Words),
    factors: [&Words; 2],
    work: (Work<'_>, &Rows<'_>),
) -> Result<(), KernelError> {
    let (Work { table, context }, rows) = work;
    let token = table.token();
    for_each_reversed_task(pass, vectors, |cells, to| {
        rows.with(|rows| {
            let rows = super::opened(token, &mut rows[..pass.rows]);
            super::load(token, cells, rows);
            let lanes = cells.lanes();
            super::scatter_rows::<true>(token, rows, pass.layers, table, lanes);
            let shift = super::shift_of_lanes::<true>(token, pass, lanes, table, factors);
            super::store_differences(token, (pass, lanes), (rows, &shift), sums, (to, table));
        })?;
        context.check()
    })
}

/// Returns the lanes' factors of the shifts of a task, or of the negative inverse shifts.
/// Each is multiplied by the factor of the half of the indices that its lane is in.
#[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
pub(super) fn shift_of_lanes<const INVERSE: bool>(
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
pub(super) fn shift_rows(rows: &mut [Fr], table: Table<'_>, shift_of_lanes: &Fr) {
    for (row, value) in rows.iter_mut().enumerate() {
        let shift = table.splat::<false>(row);
        let shifted = value.carried().mul_lazy(&shift);
        *value = shifted.carried().mul_lazy(shift_of_lanes);
    }
}

/// Shifts the values of a task back, and writes the differences.
#[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
pub(super) fn store_differences(
    (pass, lanes): (&Pass, &Lanes),
    (rows, shift_of_lanes): (&[Fr], &Fr),
    (sums, sum_factor): (&[Words], &Words),
    (to, table): (&mut Reversed<'_>, Table<'_>),
) {
    // The last pass has blocks. The compiler makes the loop for them alone.
    let Lanes::Blocks { .. } = lanes else {
        return;
    };
    let sum_factor = Fr::broadcast(table.token(), sum_factor);
    let mut places = to.rows_mut();
    for (row, value) in rows.iter().enumerate() {
        // The inverses of both parts are negative, which is positive: hence minus.
        let unshifted = value.carried().mul_lazy(&table.splat::<true>(row));
        let minus = unshifted.carried().mul_lazy(shift_of_lanes);
        let indices = pass.indices(lanes, row);
        let sums = Fr::gather(table.token(), each_lane(|lane| &sums[indices[lane]]));
        let difference = sums.mul_lazy(&sum_factor).sub_lazy::<2>(&minus);
        // Asked for at the end: addresses that wait for the arithmetic take registers.
        if let Some(places) = places.next() {
            difference.scatter_below::<true>(places);
        }
    }
}
