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
use crate::msm::{Bits, Chosen, MsmTerm, Multiples, PackedScalars, WithMultiples};
use crate::msm::{g1_columns, g1_of_terms, g2_columns, g2_of_terms};
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
    let counts = |parts: &[bool]| -> Vec<MsmTermSize> {
        let count = |&is_plain| MsmTermSize {
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
        let parts = [MsmTerm::new(&g1, &scalars[..]), MsmTerm::new(&g1, packed)];
        g1_of_terms(context(isa, &memory), &parts).unwrap();
        let said = MsmMemory::of_g1(isa, &counts(&[true, false]), threads).blocks;
        assert_eq!(memory.0.into_inner().unwrap(), said);

        let memory = Noting::default();
        g2_of_terms(context(isa, &memory), &[MsmTerm::new(&g2, packed)]).unwrap();
        let said = MsmMemory::of_g2(isa, &counts(&[false]), threads).blocks;
        assert_eq!(memory.0.into_inner().unwrap(), said);
    }
}

/// For one pass and for several, with fewer pieces than threads, and with more.
#[test]
fn columns_take_what_is_said() {
    let lens = [0, 1, 8193, 30_000];
    let words = vec![u64::MAX; 469];
    let (g1, g2) = (
        vec![G1Affine::generator(); 30_000],
        vec![G2Affine::generator(); 30_000],
    );
    for (threads, columns) in [(1, 1), (2, 10), (3, 17), (7, 0)] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        let pool = pool.build().unwrap();
        for (isa, len) in Isa::all()
            .into_iter()
            .flat_map(|isa| lens.map(|len| (isa, len)))
        {
            // No bit past the end.
            let ends = [words[..len / 64].to_vec(), vec![(1 << (len % 64)) - 1]].concat();
            let columns = vec![Bits::new(len, &ends).unwrap(); columns];
            let memory = Noting::default();
            pool.install(|| g1_columns(context(isa, &memory), &g1[..len], &columns))
                .unwrap();
            let said = MsmMemory::of_g1_columns(isa, columns.len(), len, threads).blocks;
            assert_eq!(
                memory.0.into_inner().unwrap(),
                said,
                "{isa} {len} {threads}"
            );

            let memory = Noting::default();
            pool.install(|| g2_columns(context(isa, &memory), &g2[..len], &columns))
                .unwrap();
            let said = MsmMemory::of_g2_columns(isa, columns.len(), len, threads).blocks;
            assert_eq!(
                memory.0.into_inner().unwrap(),
                said,
                "{isa} {len} {threads}"
            );
        }
    }
}

/// Of the blocks that an MSM takes, its buckets are the first after what threads work with.
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
            let part = MsmTerm::new(&bases, packed);
            pool.install(|| g2_of_terms(context(isa, &memory), &[part]))
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
    let Some(isa) = crate::testing::ifma() else {
        return;
    };
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
        let part = MsmTerm::new(&g1, &scalars[..]);
        let multiples = which.map(|which| {
            let (shape, block) = (shapes[which], &rows[which]);
            let words = block.values::<u64>(block.bytes() / 8);
            Multiples::new(isa, shape, &chosen, bytemuck::cast_slice(words)).unwrap()
        });
        part.with_multiples(multiples)
    };
    let count = |which: Option<usize>| MsmTermSize {
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
            pool.install(|| g1_of_terms(context(isa, &memory), &parts))
                .unwrap();
            let counts: Vec<_> = kinds.iter().map(|which| count(*which)).collect();
            let said = MsmMemory::of_g1(isa, &counts, threads).blocks;
            assert_eq!(memory.0.into_inner().unwrap(), said, "{kinds:?} {threads}");
        }
    }
}

fn packed(wide: usize) -> [MsmTermSize; 1] {
    [MsmTermSize {
        wide,
        is_plain: false,
        multiples: None,
    }]
}

fn g1_bytes(isa: Isa, parts: &[MsmTermSize]) -> usize {
    MsmMemory::of_g1(isa, parts, 2).blocks.iter().sum()
}

#[test]
fn more_terms_take_more_and_buckets_are_bounded() {
    for isa in Isa::all() {
        let bytes = [0, 1 << 10, 1 << 14, 1 << 17, 1 << 20, 1 << 27, 1 << 30]
            .map(|wide| g1_bytes(isa, &packed(wide)));
        assert!(bytes.is_sorted());
        // Eight times as many terms add nothing.
        assert_eq!(bytes[6], bytes[5]);
    }
}

#[test]
fn parts_share_their_buckets() {
    let isa = Isa::SCALAR;
    let one = g1_bytes(isa, &packed(1 << 20));
    let two = g1_bytes(isa, &[packed(1 << 19), packed(1 << 19)].concat());
    assert!(two <= one);
}
