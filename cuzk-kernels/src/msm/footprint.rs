//! How much memory a sum holds at most, from how many terms it has.
//!
//! Not an allocator: a caller reserves what this says before it starts a sum.

use blstrs::{G1Affine, G2Affine};

use super::CHUNK;
use super::window::plan;
use crate::affine::{Addition, BATCH, Kernel, Portable};
use crate::digits::Recoded;
#[cfg(target_arch = "x86_64")]
use crate::ifma;
use crate::isa::{Implementation, Isa};

/// The terms of a sum, or of a part of it that fills the same buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TermCount {
    /// Those whose scalars are neither 0 nor ±1.
    pub wide: usize,
    /// Whether its scalars are plain, and have to be told apart first.
    pub is_plain: bool,
}

/// Bytes that a sum in G1 over these parts holds at most on `threads` threads,
/// besides its scalars, its bases, and less than a megabyte a thread.
#[must_use]
pub fn g1_sum_bytes(isa: Isa, parts: &[TermCount], threads: usize) -> usize {
    match isa.implementation() {
        Implementation::Portable => sum_bytes::<Portable<G1Affine>>(parts, threads),
        #[cfg(target_arch = "x86_64")]
        Implementation::Ifma(_) => sum_bytes::<ifma::G1>(parts, threads),
    }
}

/// The same in G2.
#[must_use]
pub fn g2_sum_bytes(isa: Isa, parts: &[TermCount], threads: usize) -> usize {
    match isa.implementation() {
        Implementation::Portable => sum_bytes::<Portable<G2Affine>>(parts, threads),
        #[cfg(target_arch = "x86_64")]
        Implementation::Ifma(_) => sum_bytes::<ifma::G2>(parts, threads),
    }
}

fn sum_bytes<K: Kernel>(parts: &[TermCount], threads: usize) -> usize {
    let threads = threads.max(1);
    let point_bytes = size_of::<K::Point>();
    // Slopes in progress take about an eighth more than the points themselves.
    let batch_bytes = BATCH * (point_bytes * 9 / 8 + 2 * size_of::<Addition>());
    let wide: usize = parts.iter().map(|part| part.wide).sum();
    if wide == 0 {
        return 0;
    }
    let plan = plan(wide, threads);
    let sets = plan.positions.div_ceil(plan.together) * plan.splits;
    let longest = parts.iter().map(|part| part.wide).max().unwrap_or(0);
    let indices = parts.iter().map(|part| {
        // Once in pieces and once together.
        let copies = if part.is_plain { 2 } else { 1 };
        copies * part.wide * size_of::<u32>()
    });
    plan.buckets() * point_bytes
        + sets * batch_bytes
        + longest.min(CHUNK) * (point_bytes + size_of::<Recoded>())
        + indices.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(wide: usize) -> [TermCount; 1] {
        [TermCount {
            wide,
            is_plain: false,
        }]
    }

    #[test]
    fn more_terms_hold_more_and_buckets_are_bounded() {
        for isa in Isa::all() {
            let bytes = [0, 1 << 10, 1 << 14, 1 << 17, 1 << 20, 1 << 27]
                .map(|wide| g1_sum_bytes(isa, &packed(wide), 2));
            assert!(bytes.is_sorted());
            // A hundred times as many terms add little but their indices.
            assert!(bytes[5] - bytes[4] < 5 << 27);
            let plain = TermCount {
                wide: 1 << 20,
                is_plain: true,
            };
            let more = g1_sum_bytes(isa, &[plain], 2) - bytes[4];
            assert_eq!(more, 4 << 20);
            assert!(g2_sum_bytes(isa, &packed(1 << 17), 2) > bytes[3]);
        }
    }

    #[test]
    fn parts_share_their_buckets() {
        let isa = Isa::PORTABLE;
        let one = g1_sum_bytes(isa, &packed(1 << 20), 2);
        let two = g1_sum_bytes(isa, &[packed(1 << 19), packed(1 << 19)].concat(), 2);
        assert!(two <= one);
    }
}
