//! The layers of a pass on the rows of a task, four butterflies at a time.
//!
//! A row has the same scalar of four lanes. Invariant: limbs of rows stay below 2^49, and values
//! below 2^6 times the order, with at most eleven layers.

use std::arch::x86_64::*;

use super::GROUPS;
use super::assembly::{clear_low_scalars, product_scalars, reduce_high_scalars};
use super::rows::{Lanes, Row, Table};
use super::scalar::{ScalarLimbs, ScalarWork, carried, centred};

/// Depths at which a block whose twiddle is one is only added. Values double there.
const UNIT_DEPTHS: u32 = 2;

/// All layers of a pass on residues, in natural order. A layer adds a product, which is at most
/// 0.6 of the order and a ninth of its factor, or doubles.
#[target_feature(enable = "avx2,fma")]
pub(super) fn scatter_rows<const INVERSE: bool>(
    rows: &mut [Row],
    layers: u32,
    (table, lanes): (Table<'_>, &Lanes),
) {
    let mut work = ScalarWork::new();
    for depth in 0..layers {
        let half = rows.len() >> (depth + 1);
        let mut twiddles = Twiddles::new::<INVERSE>(table, lanes, depth);
        for first in (0..rows.len() / 2).step_by(GROUPS) {
            let pairs = pairs(first, half);
            if first < half
                && depth < UNIT_DEPTHS
                && lanes.are_of_the_first_block()
                && half >= GROUPS
            {
                for (u, l) in pairs {
                    let (upper, lower) = (rows[u].0, rows[l].0);
                    rows[u].0 = sum(&upper, &lower);
                    rows[l].0 = difference(&upper, &lower);
                }
                continue;
            }
            twiddles.load::<INVERSE>((table, lanes), first, half);
            for (g, (_, l)) in pairs.into_iter().enumerate() {
                product_scalars(&rows[l].0, twiddles.get(g), &mut work.0[g]);
            }
            clear_low_scalars(&mut work.0);
            for ((u, l), columns) in pairs.into_iter().zip(&work.0) {
                let upper = rows[u].0;
                reduce_high_scalars(columns, &mut rows[l].0);
                let product = carried(&rows[l].0);
                let (plus, minus) = (sum(&upper, &product), difference(&upper, &product));
                (rows[u].0, rows[l].0) = if INVERSE {
                    (minus, plus)
                } else {
                    (plus, minus)
                };
            }
        }
    }
}

/// All layers of a pass on residues, in bit-reversed order. A layer doubles values, or makes
/// them products. Doubled ones are centred in every second layer.
#[target_feature(enable = "avx2,fma")]
pub(super) fn gather_rows(rows: &mut [Row], layers: u32, (table, lanes): (Table<'_>, &Lanes)) {
    let mut work = ScalarWork::new();
    for depth in (0..layers).rev() {
        let half = rows.len() >> (depth + 1);
        let mut twiddles = Twiddles::new::<false>(table, lanes, depth);
        for first in (0..rows.len() / 2).step_by(GROUPS) {
            let pairs = pairs(first, half);
            twiddles.load::<false>((table, lanes), first, half);
            for (g, (u, l)) in pairs.into_iter().enumerate() {
                let (upper, lower) = (rows[u].0, rows[l].0);
                let both = sum(&upper, &lower);
                rows[u].0 = if depth % 2 == 0 { centred(&both) } else { both };
                let between = difference(&upper, &lower);
                product_scalars(&between, twiddles.get(g), &mut work.0[g]);
            }
            clear_low_scalars(&mut work.0);
            for ((_, l), columns) in pairs.into_iter().zip(&work.0) {
                reduce_high_scalars(columns, &mut rows[l].0);
                rows[l].0 = carried(&rows[l].0);
            }
        }
    }
}

/// The rows of four butterflies from number `first` on, of blocks of twice `half` rows.
#[inline(always)]
fn pairs(first: usize, half: usize) -> [(usize, usize); GROUPS] {
    std::array::from_fn(|g| {
        let (block, row) = ((first + g) / half, (first + g) % half);
        let upper = 2 * half * block + row;
        (upper, upper + half)
    })
}

/// The twiddles of four butterflies.
struct Twiddles {
    depth: u32,
    limbs: [ScalarLimbs; GROUPS],
    /// True if all have the first.
    is_one: bool,
}

impl Twiddles {
    #[target_feature(enable = "avx2,fma")]
    fn new<const INVERSE: bool>(table: Table<'_>, lanes: &Lanes, depth: u32) -> Self {
        Self {
            depth,
            limbs: [table.get::<INVERSE>(lanes, depth, 0); GROUPS],
            is_one: true,
        }
    }

    /// Loads those of the butterflies from number `first` on, unless they are loaded.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn load<const INVERSE: bool>(
        &mut self,
        (table, lanes): (Table<'_>, &Lanes),
        first: usize,
        half: usize,
    ) {
        if half >= GROUPS {
            if first.is_multiple_of(half) && first != 0 {
                self.limbs[0] = table.get::<INVERSE>(lanes, self.depth, first / half);
            }
            return;
        }
        self.is_one = false;
        for g in 0..GROUPS {
            self.limbs[g] = match (first + g) % half {
                0 => table.get::<INVERSE>(lanes, self.depth, (first + g) / half),
                _ => self.limbs[g - 1],
            };
        }
    }

    #[inline(always)]
    fn get(&self, group: usize) -> &ScalarLimbs {
        &self.limbs[if self.is_one { 0 } else { group }]
    }
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn sum(a: &ScalarLimbs, b: &ScalarLimbs) -> ScalarLimbs {
    std::array::from_fn(|i| _mm256_add_pd(a[i], b[i]))
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn difference(a: &ScalarLimbs, b: &ScalarLimbs) -> ScalarLimbs {
    std::array::from_fn(|i| _mm256_sub_pd(a[i], b[i]))
}
