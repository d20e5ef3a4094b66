//! Sums of selected bases, for many columns of bits at once, against their slow twin.

#![allow(clippy::unwrap_used)] // the helpers of tests may panic

use std::sync::atomic::{AtomicUsize, Ordering};

use blstrs::{G1Affine, G2Affine, Scalar};
use cuzk_kernels::msm::{self, Bases, BasesError, Bits, PackedScalars};
use cuzk_kernels::{Context, Isa, KernelError, naive};
use cuzk_memory::{Checkpoint, Mapped};
use ff::Field;
use group::prime::PrimeCurveAffine;
use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The kind of columns of a case.
#[derive(Clone, Copy, Debug)]
enum Labels {
    /// Each bit by chance.
    Uniform,
    Zero,
    One,
    /// Mostly the same bit in all columns, as partitions of a circuit have it.
    Correlated,
    /// A bit in fifty.
    Sparse,
    /// A thousand bases and more with one label, then as many with another.
    Runs,
    /// Half of the bases are in all columns, the others have labels by chance.
    Heavy,
}

/// The kind of bases of a case.
#[derive(Clone, Copy, Debug)]
enum Points {
    Random,
    Repeated,
    /// P and −P in turns.
    Opposite,
    Infinity,
    SomeInfinity,
}

const LABELS: [Labels; 7] = [
    Labels::Uniform,
    Labels::Zero,
    Labels::One,
    Labels::Correlated,
    Labels::Sparse,
    Labels::Runs,
    Labels::Heavy,
];

const POINTS: [Points; 5] = [
    Points::Random,
    Points::Repeated,
    Points::Opposite,
    Points::Infinity,
    Points::SomeInfinity,
];

fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

/// The words of each column.
fn columns(kind: Labels, columns: usize, len: usize, rng: &mut ChaCha8Rng) -> Vec<Vec<u64>> {
    let mut words = vec![vec![0; len.div_ceil(64)]; columns];
    let (mut run, mut run_label) = (0, 0);
    for i in 0..len {
        let uniform: u64 = rng.r#gen();
        if run == 0 {
            (run, run_label) = (rng.gen_range(1000..2500), uniform);
        }
        run -= 1;
        let label = match kind {
            Labels::Uniform => uniform,
            Labels::Zero => 0,
            Labels::One => u64::MAX,
            Labels::Correlated if rng.gen_bool(0.1) => uniform,
            Labels::Correlated => [0, u64::MAX][i % 2],
            Labels::Sparse if rng.gen_bool(0.02) => 1 << rng.gen_range(0..columns.max(1)),
            Labels::Sparse => 0,
            Labels::Runs => run_label,
            Labels::Heavy if i % 2 == 0 => u64::MAX,
            Labels::Heavy => uniform,
        };
        for (j, words) in words.iter_mut().enumerate() {
            words[i / 64] |= (label >> (j % 64) & 1) << (i % 64);
        }
    }
    words
}

/// Points without a multiplication each: walks along a random step.
fn points<A>(kind: Points, len: usize, rng: &mut ChaCha8Rng) -> Vec<A>
where
    A: PrimeCurveAffine<Scalar = Scalar> + From<A::Curve>,
{
    let mut point = A::generator() * Scalar::random(&mut *rng);
    let step = A::generator() * Scalar::random(&mut *rng);
    (0..len)
        .map(|i| match kind {
            Points::Random => {
                point += step;
                A::from(point)
            }
            Points::Repeated => A::from(point),
            Points::Opposite if i % 2 == 0 => A::from(point),
            Points::Opposite => A::from(-point),
            Points::SomeInfinity if rng.gen_range(0..3) > 0 => {
                point += step;
                A::from(point)
            }
            Points::Infinity | Points::SomeInfinity => A::identity(),
        })
        .collect()
}

fn bits(words: &[Vec<u64>], len: usize) -> Vec<Bits<'_>> {
    let bits = words.iter().map(|words| Bits::new(len, words).unwrap());
    bits.collect()
}

fn slices(words: &[Vec<u64>]) -> Vec<&[u64]> {
    words.iter().map(Vec::as_slice).collect()
}

fn check_g1((points_kind, labels): (Points, Labels), k: usize, len: usize, seed: u64) {
    let mut rng = rng(seed);
    let bases: Vec<G1Affine> = points(points_kind, len, &mut rng);
    let words = columns(labels, k, len, &mut rng);
    let expected = naive::columns(&bases, &slices(&words));
    let (columns, bases) = (bits(&words, len), bases.as_slice());
    for isa in Isa::all() {
        let case = format!("{isa} {points_kind:?} {labels:?} {k} of {len}");
        let sums = msm::g1_columns(isa, bases, &columns).unwrap();
        assert_eq!(sums, expected, "{case}");
        for sets in [1, 2, k] {
            // One set of sixteen columns has 2^16 buckets, which are not checked each time.
            if k.div_ceil(sets.max(1)) <= 11 {
                let sums = msm::g1_columns_in_sets(isa, sets, &bases, &columns).unwrap();
                assert_eq!(sums, expected, "{case}, {sets} sets");
            }
        }
    }
}

fn check_g2((points_kind, labels): (Points, Labels), k: usize, len: usize, seed: u64) {
    let mut rng = rng(seed);
    let bases: Vec<G2Affine> = points(points_kind, len, &mut rng);
    let words = columns(labels, k, len, &mut rng);
    let expected = naive::columns(&bases, &slices(&words));
    let (columns, bases) = (bits(&words, len), bases.as_slice());
    for isa in Isa::all() {
        let case = format!("{isa} {points_kind:?} {labels:?} {k} of {len}");
        let sums = msm::g2_columns(isa, bases, &columns).unwrap();
        assert_eq!(sums, expected, "{case}");
        let sums = msm::g2_columns_in_sets(isa, 2, &bases, &columns).unwrap();
        assert_eq!(sums, expected, "{case}, 2 sets");
    }
}

#[test]
fn every_kind_of_points_and_labels() {
    for case in POINTS.iter().flat_map(|p| LABELS.map(|l| (*p, l))) {
        for (k, len) in [(1, 1), (2, 63), (3, 64), (5, 65), (8, 300), (10, 700)] {
            check_g1(case, k, len, 1);
        }
        for (k, len) in [(1, 65), (4, 2), (10, 200)] {
            check_g2(case, k, len, 2);
        }
    }
}

#[test]
fn every_number_of_columns() {
    for k in (0..=17).chain([33]) {
        check_g1((Points::Random, Labels::Uniform), k, 150, 3);
        check_g2((Points::Random, Labels::Uniform), k, 70, 4);
    }
}

/// More bases than a piece, with more additions than a batch, whose labels change: buckets
/// take all spare slots, and give them back.
#[test]
fn many_bases() {
    for labels in LABELS {
        check_g1((Points::Random, labels), 10, 40_001, 5);
    }
    check_g1((Points::Repeated, Labels::Runs), 5, 20_000, 6);
    check_g1((Points::Opposite, Labels::Heavy), 4, 20_000, 7);
    check_g2((Points::SomeInfinity, Labels::Runs), 10, 12_000, 8);
}

/// 2^16 buckets of one set, most of them empty.
#[test]
fn the_widest_set() {
    let mut rng = rng(9);
    let bases: Vec<G1Affine> = points(Points::Random, 1000, &mut rng);
    let words = columns(Labels::Uniform, 16, 1000, &mut rng);
    let columns = bits(&words, 1000);
    let sums = msm::g1_columns_in_sets(Isa::best(), 1, &bases.as_slice(), &columns).unwrap();
    assert_eq!(sums, naive::columns(&bases, &slices(&words)));
}

#[test]
fn sums_do_not_depend_on_the_number_of_threads() {
    let mut rng = rng(10);
    let len = 50_000;
    let bases: Vec<G1Affine> = points(Points::Random, len, &mut rng);
    let words = columns(Labels::Sparse, 6, len, &mut rng);
    let expected = naive::columns(&bases, &slices(&words));
    for threads in [1, 3, 16] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        let columns = bits(&words, len);
        let sums = || msm::g1_columns(Isa::best(), bases.as_slice(), &columns);
        let sums = pool.build().unwrap().install(sums).unwrap();
        assert_eq!(sums, expected, "{threads} threads");
    }
}

/// The MSMs of partitions are the sums of their ones, and the MSMs of their other scalars.
#[test]
fn ones_and_other_scalars_are_the_whole() {
    let mut rng = rng(11);
    let len = 300;
    let bases: Vec<G1Affine> = points(Points::Random, len, &mut rng);
    let partitions: Vec<(Vec<u64>, Vec<u64>, Vec<Scalar>)> = (0..4)
        .map(|_| {
            let mut words = columns(Labels::Uniform, 2, len, &mut rng);
            let (ones, mut wide) = (words.swap_remove(0), words.swap_remove(0));
            wide.iter_mut()
                .zip(&ones)
                .for_each(|(wide, ones)| *wide &= !ones);
            let count: u32 = wide.iter().map(|word| word.count_ones()).sum();
            let values = (0..count).map(|_| Scalar::random(&mut rng)).collect();
            (ones, wide, values)
        })
        .collect();
    let packed: Vec<PackedScalars<'_>> = partitions
        .iter()
        .map(|(ones, wide, values)| PackedScalars::new(len, ones, wide, values).unwrap())
        .collect();
    let columns: Vec<Bits<'_>> = packed.iter().map(PackedScalars::bits).collect();
    for isa in Isa::all() {
        let ones = msm::g1_columns(isa, bases.as_slice(), &columns).unwrap();
        for (packed, ones) in packed.iter().zip(ones) {
            let whole = msm::g1_packed(isa, bases.as_slice(), packed).unwrap();
            let others = packed.without_ones();
            let others = msm::g1_packed(isa, bases.as_slice(), &others).unwrap();
            assert_eq!(ones + others, whole, "{isa}");
        }
    }
}

#[test]
fn lengths_are_checked() {
    let bases = [G1Affine::generator(); 65];
    let right = Bits::new(65, &[0, 1]).unwrap();
    for wrong in [
        Bits::new(64, &[1]).unwrap(),
        Bits::new(66, &[1, 2]).unwrap(),
    ] {
        assert!(matches!(
            msm::g1_columns(Isa::best(), &bases[..], &[right, wrong]),
            Err(KernelError::LengthMismatch { expected: 65, .. })
        ));
    }
    let none = msm::g1_columns(Isa::best(), &bases[..], &[]).unwrap();
    assert!(none.is_empty());
}

/// Bases in ZCash's uncompressed format, as a parameter file has them.
struct Encoded {
    bases: Vec<G1Affine>,
    bytes: Vec<u8>,
}

impl Encoded {
    fn new(bases: Vec<G1Affine>) -> Self {
        let bytes = bases.iter().flat_map(G1Affine::to_uncompressed);
        Self {
            bytes: bytes.collect(),
            bases,
        }
    }
}

impl Bases<G1Affine> for Encoded {
    fn len(&self) -> usize {
        self.bases.len()
    }

    fn encoded(&self) -> Option<&[u8]> {
        Some(&self.bytes)
    }

    /// Refuses a base whose encoding was changed.
    fn read(&self, start: usize, out: &mut [G1Affine]) -> Result<(), BasesError> {
        for (i, out) in out.iter_mut().enumerate() {
            let index = start + i;
            let encoded = self.bases[index].to_uncompressed();
            if self.bytes[96 * index..][..96] != encoded {
                let reason = "changed".into();
                return Err(BasesError::Invalid { index, reason });
            }
            *out = self.bases[index];
        }
        Ok(())
    }
}

#[test]
fn encoded_bases_are_checked_and_those_without_a_label_are_not_read() {
    let mut rng = rng(12);
    let len = 10_000;
    let mut bases = Encoded::new(points(Points::Random, len, &mut rng));
    let mut words = columns(Labels::Uniform, 3, len, &mut rng);
    let bad = 9000;
    for in_column in [true, false] {
        for words in &mut words {
            words[bad / 64] &= !(1 << (bad % 64));
        }
        words[1][bad / 64] |= u64::from(in_column) << (bad % 64);
        let expected = naive::columns(&bases.bases, &slices(&words));
        let columns = bits(&words, len);
        for isa in Isa::all() {
            bases.bytes[96 * bad + 50] ^= 1;
            let changed = msm::g1_columns(isa, &bases, &columns);
            bases.bytes[96 * bad + 50] ^= 1;
            let sums = msm::g1_columns(isa, &bases, &columns).unwrap();
            assert_eq!(sums, expected, "{isa}");
            if in_column {
                let invalid = Err(KernelError::Bases(BasesError::Invalid {
                    index: bad,
                    reason: String::new(),
                }));
                assert_eq!(error(changed), error::<()>(invalid), "{isa}");
            } else {
                assert_eq!(changed.unwrap(), expected, "{isa}");
            }
        }
    }
}

/// The start of an error's text, which names the base.
fn error<T>(result: Result<T, KernelError>) -> Option<String> {
    let text = result.err()?.to_string();
    Some(text.split('(').next()?.to_owned())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn g1_agrees_with_its_twin(
        len in 0usize..600,
        k in 1usize..=10,
        seed: u64,
        points in prop::sample::select(&POINTS[..]),
        labels in prop::sample::select(&LABELS[..]),
    ) {
        check_g1((points, labels), k, len, seed);
    }

    #[test]
    fn g2_agrees_with_its_twin(
        len in 0usize..200,
        k in 1usize..=10,
        seed: u64,
        points in prop::sample::select(&POINTS[..]),
        labels in prop::sample::select(&LABELS[..]),
    ) {
        check_g2((points, labels), k, len, seed);
    }

    /// From some call on the checkpoint says stop, on all threads.
    #[test]
    fn a_stop_at_any_call_is_an_error(
        isa in prop::sample::select(Isa::all()),
        labels in prop::sample::select(&LABELS[..]),
        seed: u64,
        last in 0usize..24,
    ) {
        let mut rng = rng(seed);
        let len = 30_000;
        let bases: Vec<G1Affine> = points(Points::Random, len, &mut rng);
        let words = columns(labels, 7, len, &mut rng);
        let calls = AtomicUsize::new(0);
        let is_cancelled = || calls.fetch_add(1, Ordering::SeqCst) >= last;
        let context = Context {
            isa,
            checkpoint: &Checkpoint::asking(is_cancelled),
            memory: &Mapped,
        };
        match msm::g1_columns(context, bases.as_slice(), &bits(&words, len)) {
            Ok(sums) => {
                prop_assert!(calls.load(Ordering::SeqCst) <= last);
                prop_assert_eq!(sums, naive::columns(&bases, &slices(&words)));
            }
            Err(error) => {
                prop_assert!(matches!(error, KernelError::Stopped));
                prop_assert!(calls.load(Ordering::SeqCst) > last);
            }
        }
    }
}
