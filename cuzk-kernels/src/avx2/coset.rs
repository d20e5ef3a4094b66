//! The quotient's pointwise work, done on rows of transforms while they are at hand.
//!
//! Let there be n layers, the last L of which form the last pass. Then row r of block β is
//! value i = 2^L·β + r, and rev(i) = 2^(n−L)·rev(r) + rev(β). The shift of that value to the
//! coset of g is g^rev(i), the product of two factors. The factor of its row is entry r of the
//! table of twiddles. The factor of its lane is a power of g that all rows of a task share.
//!
//! Invariant: what is written to memory is a residue of blst.

use std::arch::x86_64::*;
use std::array::from_fn as each;

use blst::blst_fr;
use blstrs::Scalar;
use rayon::prelude::*;

use super::ntt::{Work, area, for_each_task, gather_pass, scatter_pass};
use super::rows::{Lanes, Pass, Reversed, Row, Table, words};
use super::scalar::{
    ScalarLimbs, ScalarWork, load, load_twiddles, multiply as multiply_rows, reduced,
};
use super::{BLOCK, GROUPS, LANES};
use crate::error::{KernelError, expect_len};
use crate::matrix::cells::for_each_reversed_task;
use crate::matrix::passes::passes;
use crate::matrix::rows::Rows;

/// Scalars of a task of a product.
const TASK: usize = 1 << 12;

/// `to[i] *= by[i]`, of as many, a multiple of sixteen.
///
/// # Errors
/// [`KernelError::Stopped`].
pub(crate) fn multiply(
    to: &mut [Scalar],
    by: &[Scalar],
    work: Work<'_>,
) -> Result<(), KernelError> {
    to.par_chunks_mut(TASK)
        .zip(by.par_chunks(TASK))
        .try_for_each(|(to, by)| {
            super::multiply_all(work.table.token(), to, by);
            work.context.check()
        })
}

/// `to[i] = a[i] · b[i]`, of as many, a multiple of sixteen.
///
/// # Errors
/// [`KernelError::Stopped`].
pub(crate) fn multiply_to(
    to: &mut [Scalar],
    [a, b]: [&[Scalar]; 2],
    work: Work<'_>,
) -> Result<(), KernelError> {
    to.par_chunks_mut(TASK)
        .zip(a.par_chunks(TASK))
        .zip(b.par_chunks(TASK))
        .try_for_each(|((to, a), b)| {
            to.copy_from_slice(a);
            super::multiply_all(work.table.token(), to, b);
            work.context.check()
        })
}

/// [`multiply`] of a task's scalars.
#[target_feature(enable = "avx2,fma")]
pub(super) fn multiply_all(to: &mut [Scalar], by: &[Scalar]) {
    let mut work = ScalarWork::new();
    for (to, by) in to
        .as_chunks_mut::<BLOCK>()
        .0
        .iter_mut()
        .zip(by.as_chunks().0)
    {
        let mut rows = each(|group| load(group_of(to, group).each_ref()));
        let factors: [_; GROUPS] = each(|group| load_twiddles(group_of(by, group).each_ref()));
        multiply_rows(&mut rows, factors.each_ref(), &mut work);
        for (to, row) in to.chunks_mut(LANES).zip(&rows) {
            for (to, l) in to.iter_mut().zip(reduced(row)) {
                *to = blst_fr { l }.into();
            }
        }
    }
}

/// The words of a group.
#[inline(always)]
fn group_of(values: &[Scalar; BLOCK], group: usize) -> [[u64; 4]; LANES] {
    each(|lane| words(&values[LANES * group + lane]))
}

/// From values on the domain to those on its coset, times the domain's size. `factors` are one
/// and the coset's generator.
///
/// The last pass of the one transform and the first of the other are one.
///
/// # Errors
/// [`KernelError::Memory`], [`KernelError::Stopped`].
pub(crate) fn move_to_coset(
    values: &mut [Scalar],
    factors: [&Scalar; 2],
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
        gather_pass(pass, values, work)?;
    }
    Ok(())
}

/// With v the inverse transform of `values`, unscaled, and g the coset's generator, `to` becomes
/// `sums[i] · sum_factor − v[i] · factor / g^i` in natural order, of sums in bit-reversed order.
/// All are as long; `values` are overwritten. `factors` are the factor, and the factor divided
/// by g.
///
/// # Errors
/// [`KernelError::LengthMismatch`], [`KernelError::Memory`], [`KernelError::Stopped`].
pub(crate) fn interpolate_difference(
    [values, to]: [&mut [Scalar]; 2],
    (sums, sum_factor): (&[Scalar], &Scalar),
    factors: [&Scalar; 2],
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

/// The last pass of an inverse transform, the shift to the coset, and the first pass of a
/// transform.
fn shift_pass(
    pass: &Pass,
    values: &mut [Scalar],
    factors: [&Scalar; 2],
    work: (Work<'_>, &Rows<'_, Row>),
) -> Result<(), KernelError> {
    let (Work { table, .. }, _) = work;
    let token = table.token();
    for_each_task(pass, values, work, |rows, cells| {
        super::read(token, cells, rows);
        let twiddles = (table, cells.lanes());
        super::scatter_rows::<true>(token, rows, pass.layers, twiddles);
        super::shift_rows(token, pass, rows, twiddles, factors);
        super::gather_rows(token, rows, pass.layers, twiddles);
        super::write(token, cells, rows);
    })
}

/// Shifts the values of a task to the coset.
#[target_feature(enable = "avx2,fma")]
pub(super) fn shift_rows(
    pass: &Pass,
    rows: &mut [Row],
    (table, lanes): (Table<'_>, &Lanes),
    factors: [&Scalar; 2],
) {
    let mut shift = Shift::new::<false>(pass, lanes, table, factors);
    for (i, block) in rows.as_chunks_mut().0.iter_mut().enumerate() {
        let shifted = shift.apply::<false>(GROUPS * i, block);
        *block = shifted.map(Row);
    }
}

/// The last pass of an inverse transform, whose values are shifted back, subtracted and left in
/// natural order.
fn difference_pass(
    pass: &Pass,
    vectors: [&mut [Scalar]; 2],
    sums: (&[Scalar], &Scalar),
    factors: [&Scalar; 2],
    work: (Work<'_>, &Rows<'_, Row>),
) -> Result<(), KernelError> {
    let (Work { table, context }, rows) = work;
    let token = table.token();
    for_each_reversed_task(pass, vectors, |cells, to| {
        rows.with(|rows| {
            let rows = &mut rows[..pass.rows];
            super::read(token, cells, rows);
            let twiddles = (table, cells.lanes());
            super::scatter_rows::<true>(token, rows, pass.layers, twiddles);
            super::write_differences(token, pass, rows, twiddles, factors, sums, to);
        })?;
        context.check()
    })
}

/// The shifts of a task's values, or their negative inverses.
struct Shift<'a> {
    table: Table<'a>,
    /// The factors of the lanes, as twiddles.
    of_lanes: ScalarLimbs,
    work: ScalarWork,
}

impl<'a> Shift<'a> {
    /// Each lane's factor is multiplied by that of the half of the indices that the lane is in.
    #[target_feature(enable = "avx2,fma")]
    fn new<const INVERSE: bool>(
        pass: &Pass,
        lanes: &Lanes,
        table: Table<'a>,
        factors: [&Scalar; 2],
    ) -> Self {
        let firsts = pass.indices(lanes, 0);
        let half = (pass.rows << pass.log_blocks) / 2;
        let entries = table.entries::<INVERSE>(firsts.map(|first| first % half));
        let halves = firsts.map(|first| words(factors[first / half]));
        let (mut work, mut products) = (ScalarWork::new(), [entries; GROUPS]);
        let halves = load_twiddles(halves.each_ref());
        multiply_rows(&mut products, [&halves; GROUPS], &mut work);
        Self {
            table,
            // The fours of both are the twiddles' four: a product divides by four.
            of_lanes: products[0],
            work,
        }
    }

    /// Shifted values of four rows from number `first` on.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn apply<const INVERSE: bool>(
        &mut self,
        first: usize,
        rows: &[Row; GROUPS],
    ) -> [ScalarLimbs; GROUPS] {
        let of_rows: [_; GROUPS] = each(|i| self.table.entries::<INVERSE>([first + i; LANES]));
        let mut values = rows.map(|row| row.0);
        multiply_rows(&mut values, of_rows.each_ref(), &mut self.work);
        multiply_rows(&mut values, [&self.of_lanes; GROUPS], &mut self.work);
        values
    }
}

/// Shifts the values of a task back, and writes the differences.
#[target_feature(enable = "avx2,fma")]
pub(super) fn write_differences(
    pass: &Pass,
    rows: &[Row],
    (table, lanes): (Table<'_>, &Lanes),
    factors: [&Scalar; 2],
    (sums, sum_factor): (&[Scalar], &Scalar),
    to: &mut Reversed<'_>,
) {
    // The last pass has blocks. The compiler makes the loop for them alone.
    let Lanes::Blocks { .. } = lanes else {
        return;
    };
    let mut shift = Shift::new::<true>(pass, lanes, table, factors);
    let mut places = to.rows_mut();
    let sum_factor = load_twiddles([&words(sum_factor); LANES]);
    for (i, block) in rows.as_chunks::<GROUPS>().0.iter().enumerate() {
        // The inverses of both parts are negative, which is positive: hence minus.
        let minus = shift.apply::<true>(GROUPS * i, block);
        let mut differences = each(|row| {
            let indices = pass.indices(lanes, GROUPS * i + row);
            load(indices.map(|index| words(&sums[index])).each_ref())
        });
        multiply_rows(&mut differences, [&sum_factor; GROUPS], &mut shift.work);
        for ((sum, minus), places) in differences.iter().zip(&minus).zip(&mut places) {
            let difference = each(|i| _mm256_sub_pd(sum[i], minus[i]));
            for (place, l) in places.into_iter().zip(reduced(&difference)) {
                *place = blst_fr { l }.into();
            }
        }
    }
}
