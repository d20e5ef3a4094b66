//! How much memory a sum takes, from how many terms it has.
//!
//! Not an allocator: a caller reserves what this says before it starts a sum.

use blstrs::{G1Affine, G2Affine};

use super::multiples::Shape;
use super::selected::DECODED;
use super::window::{Plan, plan, with_multiples};
use super::workspace::{self, Area};
use super::{CHUNK, same_shapes};
use crate::affine::{Kernel, Serial};
use crate::arithmetic::{Blst, Portable};
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
    /// In which shape all of them have multiples of their bases that are used, if
    /// they have.
    pub multiples: Option<Shape>,
}

/// What a sum takes, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SumMemory {
    /// Of each block that it takes from its [`Memory`](cuzk_memory::Memory), in order.
    /// It holds all of them until it ends where all parts have multiples of one shape, or
    /// none has; else those of one shape after those of another.
    pub blocks: Vec<usize>,
    /// On the heap, at most, but for a few kilobytes.
    pub heap_bytes: usize,
}

impl SumMemory {
    /// Of a sum in G1 over these parts on `threads` threads.
    #[must_use]
    pub fn of_g1(isa: Isa, parts: &[TermCount], threads: usize) -> Self {
        match isa.implementation() {
            Implementation::Portable => Self::of::<Serial<G1Affine, Portable>>(parts, threads),
            Implementation::Scalar => Self::of::<Serial<G1Affine, Blst>>(parts, threads),
            #[cfg(target_arch = "x86_64")]
            Implementation::Ifma(_) => Self::of::<ifma::G1>(parts, threads),
        }
    }

    /// The same in G2.
    #[must_use]
    pub fn of_g2(isa: Isa, parts: &[TermCount], threads: usize) -> Self {
        match isa.implementation() {
            Implementation::Portable => Self::of::<Serial<G2Affine, Portable>>(parts, threads),
            Implementation::Scalar => Self::of::<Serial<G2Affine, Blst>>(parts, threads),
            #[cfg(target_arch = "x86_64")]
            Implementation::Ifma(_) => Self::of::<ifma::G2>(parts, threads),
        }
    }

    fn of<K: Kernel>(parts: &[TermCount], threads: usize) -> Self {
        let threads = threads.max(1);
        let marks = plans(parts, threads).map(|plan| marks_bytes(&plan, threads));
        let of_thread = workspace::HEAP_BYTES + DECODED * size_of::<K::Affine>();
        Self {
            blocks: sum_blocks::<K>(parts, threads),
            heap_bytes: threads * of_thread + marks.max().unwrap_or(0),
        }
    }
}

/// How the parts' buckets are filled, one set of parts after the other.
fn plans(parts: &[TermCount], threads: usize) -> impl Iterator<Item = Plan> {
    let shapes = parts.iter().filter_map(|part| part.multiples);
    let others = parts.iter().filter(|part| part.multiples.is_none());
    let wide: usize = others.map(|part| part.wide).sum();
    shapes
        .map(move |shape| with_multiples(shape, threads))
        .chain((wide > 0).then(|| plan(wide, threads)))
}

/// What marks buckets: the filled ones of all sets, and on each thread those of a batch.
fn marks_bytes(plan: &Plan, threads: usize) -> usize {
    (plan.sets() + threads) * plan.set_len().div_ceil(64) * size_of::<u64>()
}

/// Bytes of the buckets of a sum in G2 with `wide` scalars that are neither 0
/// nor ±1, on `threads` threads.
pub fn g2_bucket_bytes(isa: Isa, wide: usize, threads: usize) -> usize {
    if wide == 0 {
        return 0;
    }
    let point_bytes = match isa.implementation() {
        Implementation::Portable | Implementation::Scalar => size_of::<G2Affine>(),
        #[cfg(target_arch = "x86_64")]
        Implementation::Ifma(_) => size_of::<<ifma::G2 as Kernel>::Point>(),
    };
    plan(wide, threads.max(1)).buckets() * point_bytes
}

fn sum_blocks<K: Kernel>(parts: &[TermCount], threads: usize) -> Vec<usize> {
    let plain = parts.iter().filter(|part| part.is_plain);
    // One bit for each scalar.
    let plain = plain
        .map(|part| part.wide.div_ceil(64) * size_of::<u64>())
        .filter(|bytes| *bytes > 0);
    let mut blocks: Vec<_> = Area::<K>::blocks(threads)
        .into_iter()
        .chain(plain)
        .collect();
    let (in_rows, others): (Vec<_>, Vec<_>) =
        parts.iter().partition(|part| part.multiples.is_some());
    for same_shape in same_shapes(&in_rows, |part: &&TermCount| part.multiples) {
        if let Some(shape) = same_shape.first().and_then(|part| part.multiples) {
            blocks.push(with_multiples(shape, threads).buckets() * size_of::<K::Point>());
            blocks.extend(chunk_blocks(longest(same_shape)));
        }
    }
    let wide: usize = others.iter().map(|part| part.wide).sum();
    if wide > 0 {
        let longest = longest(&others);
        blocks.push(plan(wide, threads).buckets() * size_of::<K::Point>());
        blocks.push(longest * size_of::<K::Point>());
        blocks.extend(chunk_blocks(longest));
    }
    blocks
}

/// Terms of the longest chunk.
fn longest(parts: &[&TermCount]) -> usize {
    let longest = parts.iter().map(|part| part.wide).max();
    longest.unwrap_or(0).min(CHUNK)
}

/// Which terms a chunk has, and their scalars.
fn chunk_blocks(terms: usize) -> impl Iterator<Item = usize> {
    let blocks = [terms * size_of::<u32>(), terms * size_of::<Recoded>()];
    blocks.into_iter().filter(|bytes| *bytes > 0)
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
    use crate::context::Context;
    use crate::error::KernelError;
    use crate::msm::{Chosen, Multiples, PackedScalars, Part, WithMultiples};
    use crate::msm::{g1_joined, g2_joined};
    use cuzk_memory::NEVER_STOP;
    use cuzk_memory::{Block, Memory};

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
            checkpoint: &NEVER_STOP,
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
                multiples: None,
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
            let said = SumMemory::of_g1(isa, &counts(&[true, false]), threads).blocks;
            assert_eq!(memory.0.into_inner().unwrap(), said);

            let memory = Noting::default();
            g2_joined(context(isa, &memory), &[Part::new(&g2, packed)]).unwrap();
            let said = SumMemory::of_g2(isa, &counts(&[false]), threads).blocks;
            assert_eq!(memory.0.into_inner().unwrap(), said);
        }
    }

    /// Of the blocks that a sum takes its buckets are the first after what threads work
    /// with.
    #[test]
    fn buckets_are_of_so_many_bytes() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let scalars: Vec<Scalar> = (0..3000).map(|_| Scalar::random(&mut rng)).collect();
        let bases = vec![G2Affine::generator(); 3000];
        for (terms, threads) in [(1_usize, 1), (1000, 2), (3000, 5)] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
            let pool = pool.build().unwrap();
            let marks: Vec<u64> = (0..terms.div_ceil(64) as u64)
                .map(|word| u64::MAX >> (64 - (terms as u64 - 64 * word).min(64)))
                .collect();
            let (none, bases) = (vec![0; marks.len()], &bases[..terms]);
            let packed = PackedScalars::new(terms, &none, &marks, &scalars[..terms]).unwrap();
            for isa in Isa::all() {
                let memory = Noting::default();
                let part = Part::new(&bases, packed);
                pool.install(|| g2_joined(context(isa, &memory), &[part]))
                    .unwrap();
                let taken = memory.0.into_inner().unwrap();
                let said = g2_bucket_bytes(isa, terms, threads);
                assert_eq!(taken.get(2), Some(&said), "{isa} {terms} {threads}");
            }
        }
        assert_eq!(g2_bucket_bytes(Isa::best(), 0, 4), 0);
    }

    /// In every order of parts with multiples of a shape, of another, and with none.
    #[test]
    fn sums_with_multiples_take_what_is_said() {
        let Some(isa) = Isa::ifma() else { return };
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let scalars: Vec<Scalar> = (0..500).map(|_| Scalar::random(&mut rng)).collect();
        let g1 = &vec![G1Affine::generator(); 500][..];
        let chosen = Chosen::new(500, |_| true);
        let shapes = [(16, 16), (9, 3)].map(|(bits, rows)| Shape::new(bits, rows).unwrap());
        let rows = shapes.map(|shape| {
            let bytes = shape.rows() * G1Affine::row_bytes(isa, 500).unwrap();
            let mut block = Block::map(bytes).unwrap();
            let words = block.values_mut::<u64>(bytes / 8);
            let mut at = 0;
            G1Affine::write_rows::<KernelError>(isa.into(), shape, &chosen, &g1, |row| {
                for word in row.as_chunks().0 {
                    words[at] = u64::from_ne_bytes(*word);
                    at += 1;
                }
                Ok(())
            })
            .unwrap();
            block
        });
        let part = |which: Option<usize>| {
            let part = Part::new(&g1, &scalars[..]);
            let multiples = which.map(|which| {
                let (shape, block) = (shapes[which], &rows[which]);
                let words = block.values::<u64>(block.bytes() / 8);
                Multiples::new(isa, shape, &chosen, bytemuck::cast_slice(words)).unwrap()
            });
            part.with_multiples(multiples)
        };
        let count = |which: Option<usize>| TermCount {
            wide: 500,
            is_plain: true,
            multiples: which.map(|which| shapes[which]),
        };
        let kinds = [None, Some(0), Some(1)];
        let pairs = kinds.into_iter().flat_map(|a| kinds.map(|b| vec![a, b]));
        let triples = [
            vec![Some(0), Some(1), Some(0)],
            vec![Some(1), None, Some(1)],
        ];
        for threads in [1, 2, 7] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
            let pool = pool.build().unwrap();
            for kinds in pairs.clone().chain(triples.clone()) {
                let memory = Noting::default();
                let parts: Vec<_> = kinds.iter().map(|which| part(*which)).collect();
                pool.install(|| g1_joined(context(isa, &memory), &parts))
                    .unwrap();
                let counts: Vec<_> = kinds.iter().map(|which| count(*which)).collect();
                let said = SumMemory::of_g1(isa, &counts, threads).blocks;
                assert_eq!(memory.0.into_inner().unwrap(), said, "{kinds:?} {threads}");
            }
        }
    }

    fn packed(wide: usize) -> [TermCount; 1] {
        [TermCount {
            wide,
            is_plain: false,
            multiples: None,
        }]
    }

    fn g1_bytes(isa: Isa, parts: &[TermCount]) -> usize {
        SumMemory::of_g1(isa, parts, 2).blocks.iter().sum()
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
        let isa = Isa::SCALAR;
        let one = g1_bytes(isa, &packed(1 << 20));
        let two = g1_bytes(isa, &[packed(1 << 19), packed(1 << 19)].concat());
        assert!(two <= one);
    }
}
