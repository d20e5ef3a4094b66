//! Transforms over the scalar field, eight columns or eight blocks at a time.
//!
//! The passes are those of the portable transform. In all but the last, the
//! lanes are neighbouring columns, which share their twiddles. In the last a
//! block is one column, and the lanes are neighbouring blocks. Within a pass
//! two layers are done together, so that values are loaded and stored half
//! as often.

#![allow(unsafe_code)] // enters functions that enable the instructions, shares slices

use std::ops::Range;

use rayon::prelude::*;

use super::Ifma;
use super::fr::{Fr, Words};
use super::lanes::{LANES, each_lane};
use crate::context::Context;
use crate::error::KernelError;
use crate::ntt::{self, Shared, reverse};
use cuzk_memory::Plain;

/// Most layers in a pass: 2^11 rows of 320 bytes fit a second-level cache.
const LAYERS_MAX: u32 = 11;

/// Smallest transform: both kinds of passes need eight lanes.
pub(crate) const LOG_SIZE_MIN: u32 = 6;

/// The lanes of a task.
#[derive(Clone, Copy)]
pub(super) enum Lanes {
    /// Eight columns of one block.
    Columns { block: usize, first: usize },
    /// Eight blocks of one column, whose numbers with their bits reversed are
    /// consecutive: so are the places of a row's values in reversed order.
    Blocks {
        blocks: [usize; LANES],
        first_reversed: usize,
    },
}

impl Lanes {
    /// Whether all are of a layer's first block, whose twiddle is one.
    #[inline(always)]
    fn are_of_the_first_block(&self) -> bool {
        matches!(self, Lanes::Columns { block: 0, .. })
    }
}

/// One pass over the values: the blocks of its first layer are matrices with
/// a row for every combination of its layers' choices.
pub(super) struct Pass {
    pub(super) layers: u32,
    pub(super) rows: usize,
    columns: usize,
    /// Logarithm of the number of blocks.
    pub(super) log_blocks: u32,
}

impl Pass {
    fn new(len: usize, layers: &Range<u32>) -> Pass {
        Pass {
            layers: layers.end - layers.start,
            rows: 1 << layers.len(),
            columns: len >> layers.end,
            log_blocks: layers.start,
        }
    }

    fn tasks(&self) -> usize {
        (self.columns << self.log_blocks) / LANES
    }

    /// The lanes of a task. Columns and blocks are powers of two, and one of
    /// them at least eight.
    fn lanes(&self, task: usize) -> Lanes {
        if self.columns == 1 {
            let first_reversed = task * LANES;
            Lanes::Blocks {
                blocks: each_lane(|lane| reverse(first_reversed + lane, self.log_blocks)),
                first_reversed,
            }
        } else {
            let groups = self.columns / LANES;
            Lanes::Columns {
                block: task / groups,
                first: task % groups * LANES,
            }
        }
    }

    /// The indices of a row's values.
    #[inline(always)]
    pub(super) fn indices(&self, lanes: &Lanes, row: usize) -> [usize; LANES] {
        match lanes {
            Lanes::Columns { block, first } => {
                let start = (block * self.rows + row) * self.columns + first;
                each_lane(|lane| start + lane)
            }
            Lanes::Blocks { blocks, .. } => each_lane(|lane| blocks[lane] * self.rows + row),
        }
    }
}

/// The passes of a transform, of which there are at least two. The lanes of the
/// last are blocks, those of the others columns.
pub(super) fn passes(len: usize) -> Vec<Pass> {
    let layers = len.ilog2();
    let count = layers.div_ceil(LAYERS_MAX).max(2);
    (0..count)
        .map(|i| Pass::new(len, &(layers * i / count..layers * (i + 1) / count)))
        .collect()
}

/// The table of twiddles, each sixteen times as large, as [`Fr`] wants
/// factors.
#[derive(Clone, Copy)]
pub(crate) struct Table<'a> {
    token: Ifma,
    entries: &'a [Words],
    minus_one: &'a Words,
}

impl<'a> Table<'a> {
    /// `minus_one` is sixteen times −1.
    pub(crate) fn new(token: Ifma, entries: &'a [Words], minus_one: &'a Words) -> Table<'a> {
        Table {
            token,
            entries,
            minus_one,
        }
    }

    pub(super) fn token(&self) -> Ifma {
        self.token
    }

    /// The twiddle of block i; for the inverse, its negative inverse.
    #[inline(always)]
    fn entry<const INVERSE: bool>(&self, i: usize) -> &'a Words {
        match (INVERSE, i) {
            (false, _) => &self.entries[i],
            (true, 0) => self.minus_one,
            (true, _) => &self.entries[i ^ ((1 << i.ilog2()) - 1)],
        }
    }

    /// The twiddles of block j at a depth below the blocks of the lanes.
    #[inline(always)]
    fn get<const INVERSE: bool>(&self, lanes: &Lanes, depth: u32, j: usize) -> Fr {
        match lanes {
            Lanes::Columns { block, .. } => {
                Fr::broadcast(self.token, self.entry::<INVERSE>((block << depth) + j))
            }
            Lanes::Blocks { blocks, .. } => {
                let index = |lane: usize| (blocks[lane] << depth) + j;
                let entries = each_lane(|lane| self.entry::<INVERSE>(index(lane)));
                Fr::gather(self.token, entries)
            }
        }
    }

    /// Entries of the table, or their negative inverses.
    #[inline(always)]
    pub(super) fn entries<const INVERSE: bool>(&self, indices: [usize; LANES]) -> Fr {
        Fr::gather(
            self.token,
            each_lane(|lane| self.entry::<INVERSE>(indices[lane])),
        )
    }

    /// An entry of the table, or its negative inverse, in all lanes.
    #[inline(always)]
    pub(super) fn splat<const INVERSE: bool>(&self, index: usize) -> Fr {
        Fr::broadcast(self.token, self.entry::<INVERSE>(index))
    }
}

/// Eight values of a row, in memory that is lent. Only [`opened`] reads it.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Place(Fr);

// SAFETY: registers, of which all values are valid, and nothing else. That there are
// such registers is proved by who opens them.
unsafe impl Plain for Place {}

const _: () = assert!(size_of::<Place>() == 5 * 64);

/// The values themselves; the token proves that there are such registers.
fn opened(_: Ifma, places: &mut [Place]) -> &mut [Fr] {
    let len = places.len();
    // SAFETY: a place is a value and nothing else.
    unsafe { std::slice::from_raw_parts_mut(places.as_mut_ptr().cast(), len) }
}

/// What tasks hold their rows in.
pub(crate) type Area<'m> = ntt::Area<'m, Place>;

/// The same, of all threads.
pub(crate) type Rows<'a> = ntt::Rows<'a, Place>;

/// Bytes that a thread has rows in, over so many values.
pub(crate) fn rows_bytes(len: usize) -> usize {
    rows_max(&passes(len)) * size_of::<Place>()
}

/// Rows of the pass that has most.
fn rows_max(passes: &[Pass]) -> usize {
    passes.iter().map(|pass| pass.rows).max().unwrap_or(0)
}

/// What these passes have their rows in.
///
/// # Errors
/// [`KernelError::Memory`].
pub(super) fn area<'m>(passes: &[Pass], work: Work<'m>) -> Result<Area<'m>, KernelError> {
    Area::take(work.context.memory, rows_max(passes))
}

/// What transforms work with.
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
            load(table.token, pass, lanes, values, rows);
            scatter_rows::<INVERSE>(rows, pass.layers, table, lanes);
            store(pass, lanes, values, rows);
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
            load(table.token, pass, lanes, values, rows);
            gather_rows::<INVERSE>(rows, pass.layers, table, lanes);
            store(pass, lanes, values, rows);
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
    let token = work.table.token;
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

/// Writes a task's rows back, which are below 32 r.
///
/// # Safety
/// As [`load`].
#[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
pub(super) unsafe fn store(pass: &Pass, lanes: &Lanes, values: &Shared<'_, Words>, rows: &[Fr]) {
    for (row, value) in rows.iter().enumerate() {
        // SAFETY: as in `load`.
        unsafe { write(values, pass.indices(lanes, row), value) };
    }
}

/// # Safety
/// As [`read`], and the indices differ.
#[inline(always)]
pub(super) unsafe fn write(values: &Shared<'_, Words>, indices: [usize; LANES], value: &Fr) {
    value.scatter(each_lane(|lane| {
        // SAFETY: the caller's.
        unsafe { values.element(indices[lane]) }
    }));
}

/// All layers of a pass on rows below 1.01 r. A layer adds at most 2 r, but for
/// those of [`unit_quarters`], which leave at most 9.1 r and are followed by at
/// most eight others: rows stay below 26 r.
#[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
pub(super) fn scatter_rows<const INVERSE: bool>(
    rows: &mut [Fr],
    layers: u32,
    table: Table<'_>,
    lanes: &Lanes,
) {
    let mut depth = layers % 2;
    if depth == 1 {
        let twiddle = table.get::<INVERSE>(lanes, 0, 0);
        let (upper, lower) = rows.split_at_mut(rows.len() / 2);
        for (u, l) in upper.iter_mut().zip(lower) {
            if lanes.are_of_the_first_block() {
                unit_butterfly::<2>(u, l);
            } else {
                scatter_butterfly::<INVERSE>(u, l, &twiddle);
            }
        }
    }
    while depth < layers {
        let block_len = rows.len() >> depth;
        for (j, block) in rows.chunks_exact_mut(block_len).enumerate() {
            let twiddles = Twiddles::new::<INVERSE>(table, lanes, depth, j);
            if j == 0 && depth < 2 && lanes.are_of_the_first_block() {
                unit_quarters::<INVERSE>(block, &twiddles);
                continue;
            }
            for_each_quarter(block, |x| {
                let [a, b, c, d] = x;
                scatter_butterfly::<INVERSE>(a, c, &twiddles.outer);
                scatter_butterfly::<INVERSE>(b, d, &twiddles.outer);
                scatter_butterfly::<INVERSE>(a, b, &twiddles.inner[0]);
                scatter_butterfly::<INVERSE>(c, d, &twiddles.inner[1]);
            });
        }
        depth += 2;
    }
}

/// Two layers of the transform's first block, where three of four twiddles
/// are one. Rows are below 2.02 r before, and below 9.1 r after.
#[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
fn unit_quarters<const INVERSE: bool>(block: &mut [Fr], twiddles: &Twiddles) {
    for_each_quarter(block, |x| {
        let [a, b, c, d] = x;
        unit_butterfly::<3>(a, c);
        unit_butterfly::<3>(b, d);
        unit_butterfly::<5>(a, b);
        scatter_butterfly::<INVERSE>(c, d, &twiddles.inner[1]);
    });
}

/// All layers of a pass on rows below 2 r. After every two layers rows
/// are below 3.4 r, because the one that only adds is reduced.
#[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
pub(super) fn gather_rows<const INVERSE: bool>(
    rows: &mut [Fr],
    layers: u32,
    table: Table<'_>,
    lanes: &Lanes,
) {
    let mut depth = layers;
    while depth >= 2 {
        depth -= 2;
        let block_len = rows.len() >> depth;
        for (j, block) in rows.chunks_exact_mut(block_len).enumerate() {
            let twiddles = Twiddles::new::<INVERSE>(table, lanes, depth, j);
            for_each_quarter(block, |x| {
                let [a, b, c, d] = x;
                gather_butterfly::<INVERSE>(a, b, &twiddles.inner[0]);
                gather_butterfly::<INVERSE>(c, d, &twiddles.inner[1]);
                gather_butterfly::<INVERSE>(a, c, &twiddles.outer);
                gather_butterfly::<INVERSE>(b, d, &twiddles.outer);
                *a = a.reduce();
            });
        }
    }
    if depth == 1 {
        let twiddle = table.get::<INVERSE>(lanes, 0, 0);
        let (upper, lower) = rows.split_at_mut(rows.len() / 2);
        for (u, l) in upper.iter_mut().zip(lower) {
            if lanes.are_of_the_first_block() {
                unit_butterfly::<4>(u, l);
            } else {
                gather_butterfly::<INVERSE>(u, l, &twiddle);
            }
        }
    }
}

/// The twiddles of a block at two layers: its own, and its two halves'.
struct Twiddles {
    outer: Fr,
    inner: [Fr; 2],
}

impl Twiddles {
    #[inline(always)]
    fn new<const INVERSE: bool>(table: Table<'_>, lanes: &Lanes, depth: u32, j: usize) -> Twiddles {
        Twiddles {
            outer: table.get::<INVERSE>(lanes, depth, j),
            inner: [
                table.get::<INVERSE>(lanes, depth + 1, 2 * j),
                table.get::<INVERSE>(lanes, depth + 1, 2 * j + 1),
            ],
        }
    }
}

/// Calls `f` with one row of each quarter of a block.
#[inline(always)]
fn for_each_quarter(block: &mut [Fr], mut f: impl FnMut([&mut Fr; 4])) {
    let quarter = block.len() / 4;
    let (ab, cd) = block.split_at_mut(2 * quarter);
    let (a, b) = ab.split_at_mut(quarter);
    let (c, d) = cd.split_at_mut(quarter);
    for (((a, b), c), d) in a.iter_mut().zip(b).zip(c).zip(d) {
        f([a, b, c, d]);
    }
}

/// `(u, l) → (u + l·w, u − l·w)`, the inverse with −w for w. The product is
/// below 2 r for `l` below 32 r.
#[inline(always)]
fn scatter_butterfly<const INVERSE: bool>(u: &mut Fr, l: &mut Fr, twiddle: &Fr) {
    let product = l.carried().mul_lazy(twiddle);
    let (sum, difference) = (u.add_lazy(&product), u.sub_lazy::<2>(&product));
    (*u, *l) = if INVERSE {
        (difference, sum)
    } else {
        (sum, difference)
    };
}

/// Either butterfly where the twiddle is one, of `l` below K r.
#[inline(always)]
fn unit_butterfly<const K: u64>(u: &mut Fr, l: &mut Fr) {
    (*u, *l) = (u.add_lazy(l), u.sub_lazy::<K>(l));
}

/// `(u, l) → (u + l, (u − l)·w)`, the inverse with −w for w; `u` and `l` are
/// below 12 r.
#[inline(always)]
fn gather_butterfly<const INVERSE: bool>(u: &mut Fr, l: &mut Fr, twiddle: &Fr) {
    let difference = if INVERSE {
        l.sub_lazy::<12>(u)
    } else {
        u.sub_lazy::<12>(l)
    };
    *u = u.add_lazy(l);
    *l = difference.carried().mul_lazy(twiddle);
}
