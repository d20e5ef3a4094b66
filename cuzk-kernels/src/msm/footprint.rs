//! How much memory a sum takes, from how many terms it has.
//!
//! Not an allocator: a caller reserves what this says before it starts a sum.

use blstrs::{G1Affine, G2Affine};

use super::CHUNK;
use super::window::plan;
use crate::affine::{Kernel, Portable};
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

/// Bytes of each block that a sum in G1 over these parts takes from its
/// [`Memory`](crate::memory::Memory) on `threads` threads, all of which it holds
/// until it ends. Without multiples of the bases; with them it takes less. It
/// takes less than a megabyte a thread elsewhere.
#[must_use]
pub fn g1_sum_blocks(isa: Isa, parts: &[TermCount], threads: usize) -> Vec<usize> {
    match isa.implementation() {
        Implementation::Portable => sum_blocks::<Portable<G1Affine>>(parts, threads),
        #[cfg(target_arch = "x86_64")]
        Implementation::Ifma(_) => sum_blocks::<ifma::G1>(parts, threads),
    }
}

/// The same in G2.
#[must_use]
pub fn g2_sum_blocks(isa: Isa, parts: &[TermCount], threads: usize) -> Vec<usize> {
    match isa.implementation() {
        Implementation::Portable => sum_blocks::<Portable<G2Affine>>(parts, threads),
        #[cfg(target_arch = "x86_64")]
        Implementation::Ifma(_) => sum_blocks::<ifma::G2>(parts, threads),
    }
}

fn sum_blocks<K: Kernel>(parts: &[TermCount], threads: usize) -> Vec<usize> {
    let wide: usize = parts.iter().map(|part| part.wide).sum();
    if wide == 0 {
        return Vec::new();
    }
    let plain = parts.iter().filter(|part| part.is_plain);
    // One bit for each scalar.
    let marks = plain.map(|part| part.wide.div_ceil(64) * size_of::<u64>());
    let longest = parts.iter().map(|part| part.wide).max();
    let longest = longest.unwrap_or(0).min(CHUNK);
    let point_bytes = size_of::<K::Point>();
    marks
        .chain([
            plan(wide, threads.max(1)).buckets() * point_bytes,
            longest * point_bytes,
            longest * size_of::<u32>(),
            longest * size_of::<Recoded>(),
        ])
        .collect()
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Mutex;

    use blstrs::{G1Affine, G2Affine, Scalar};
    use ff::Field;
    use group::prime::PrimeCurveAffine;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::checkpoint::{Context, Unhindered};
    use crate::memory::{Block, Memory};
    use crate::msm::{PackedScalars, Part, g1_joined, g2_joined};

    /// Notes what is asked for.
    #[derive(Default)]
    struct Noting(Mutex<Vec<usize>>);

    impl Memory for Noting {
        fn take(&self, bytes: usize) -> io::Result<Block> {
            self.0.lock().unwrap().push(bytes);
            Block::map(bytes)
        }

        fn give_back(&self, _: Block) {}
    }

    fn context(isa: Isa, memory: &Noting) -> Context<'_> {
        Context {
            isa,
            checkpoint: &Unhindered,
            memory,
        }
    }

    #[test]
    fn sums_take_what_is_said() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let scalars: Vec<Scalar> = (0..1000).map(|_| Scalar::random(&mut rng)).collect();
        let (none, all) = (vec![0; 16], vec![u64::MAX; 15]);
        let all = [&all[..], &[u64::MAX >> 24]].concat();
        let packed = PackedScalars::new(1000, &none, &all, &scalars).unwrap();
        let counts = |parts: &[bool]| -> Vec<TermCount> {
            let count = |&is_plain| TermCount {
                wide: 1000,
                is_plain,
            };
            parts.iter().map(count).collect()
        };
        let g1 = &vec![G1Affine::generator(); 1000][..];
        let g2 = &vec![G2Affine::generator(); 1000][..];
        let threads = rayon::current_num_threads();
        for isa in Isa::all() {
            let memory = Noting::default();
            let parts = [Part::new(&g1, &scalars[..]), Part::new(&g1, packed)];
            g1_joined(context(isa, &memory), &parts).unwrap();
            let said = g1_sum_blocks(isa, &counts(&[true, false]), threads);
            assert_eq!(memory.0.into_inner().unwrap(), said);

            let memory = Noting::default();
            g2_joined(context(isa, &memory), &[Part::new(&g2, packed)]).unwrap();
            let said = g2_sum_blocks(isa, &counts(&[false]), threads);
            assert_eq!(memory.0.into_inner().unwrap(), said);
        }
    }

    fn packed(wide: usize) -> [TermCount; 1] {
        [TermCount {
            wide,
            is_plain: false,
        }]
    }

    fn g1_bytes(isa: Isa, parts: &[TermCount]) -> usize {
        g1_sum_blocks(isa, parts, 2).iter().sum()
    }

    #[test]
    fn more_terms_take_more_and_buckets_are_bounded() {
        for isa in Isa::all() {
            let bytes = [0, 1 << 10, 1 << 14, 1 << 17, 1 << 20, 1 << 27]
                .map(|wide| g1_bytes(isa, &packed(wide)));
            assert!(bytes.is_sorted());
            // A hundred times as many terms add nothing.
            assert_eq!(bytes[5], bytes[4]);
        }
    }

    #[test]
    fn parts_share_their_buckets() {
        let isa = Isa::PORTABLE;
        let one = g1_bytes(isa, &packed(1 << 20));
        let two = g1_bytes(isa, &[packed(1 << 19), packed(1 << 19)].concat());
        assert!(two <= one);
    }
}
