//! The layers of a pass on the rows of a task: butterflies, two layers at a time.

use super::field::fr::Fr;
use super::passes::Lanes;
use super::twiddles::Table;

/// All layers of a pass on rows below 1.01 r. A layer adds at most 2 r, except those of
/// [`unit_quarters`]. These leave at most 9.1 r, and at most eight layers follow them, so
/// rows stay below 26 r.
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
