//! Multi-scalar multiplication against its slow twin, in both groups.

#![allow(clippy::unwrap_used)] // the helpers of tests may panic

use blstrs::{G1Affine, G1Projective, G2Affine, Scalar};
use cuzk_kernels::msm::{
    self, Bases, BasesError, Chosen, MsmTerm, Multiples, PackedScalars, Shape, WithMultiples,
};
use cuzk_kernels::{Isa, KernelError, naive};
use ff::Field;
use group::{Group, prime::PrimeCurveAffine};
use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The kind of scalars of a case.
#[derive(Clone, Copy, Debug)]
enum Scalars {
    Random,
    Zero,
    One,
    MinusOne,
    Small,
    Same,
    /// Mostly zeros and ones, as a witness.
    Witness,
}

/// The kind of bases of a case.
#[derive(Clone, Copy, Debug)]
enum Points {
    Random,
    Repeated,
    Opposite,
    Infinity,
    SomeInfinity,
}

const SCALARS: [Scalars; 7] = [
    Scalars::Random,
    Scalars::Zero,
    Scalars::One,
    Scalars::MinusOne,
    Scalars::Small,
    Scalars::Same,
    Scalars::Witness,
];

const POINTS: [Points; 5] = [
    Points::Random,
    Points::Repeated,
    Points::Opposite,
    Points::Infinity,
    Points::SomeInfinity,
];

fn scalars(kind: Scalars, len: usize, rng: &mut ChaCha8Rng) -> Vec<Scalar> {
    let same = Scalar::random(&mut *rng);
    (0..len)
        .map(|_| match kind {
            Scalars::Random => Scalar::random(&mut *rng),
            Scalars::Zero => Scalar::ZERO,
            Scalars::One => Scalar::ONE,
            Scalars::MinusOne => -Scalar::ONE,
            Scalars::Small => Scalar::from(rng.gen_range(0..5)),
            Scalars::Same => same,
            Scalars::Witness => match rng.gen_range(0..50) {
                0..25 => Scalar::ZERO,
                25..48 => Scalar::ONE,
                48 => -Scalar::ONE,
                _ => Scalar::random(&mut *rng),
            },
        })
        .collect()
}

/// Points without a multiplication each: walks along a few random steps.
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

fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

/// Packs scalars: ones as bits, marks of the others, and the others.
fn pack(scalars: &[Scalar]) -> (Vec<u64>, Vec<u64>, Vec<Scalar>) {
    let words = scalars.len().div_ceil(64);
    let (mut ones, mut wide, mut values) = (vec![0; words], vec![0; words], Vec::new());
    for (i, scalar) in scalars.iter().enumerate() {
        if *scalar == Scalar::ONE {
            ones[i / 64] |= 1 << (i % 64);
        } else if *scalar != Scalar::ZERO {
            wide[i / 64] |= 1 << (i % 64);
            values.push(*scalar);
        }
    }
    (ones, wide, values)
}

fn check_g1(points_kind: Points, scalars_kind: Scalars, len: usize, seed: u64) {
    let mut rng = rng(seed);
    let bases: Vec<G1Affine> = points(points_kind, len, &mut rng);
    let scalars = scalars(scalars_kind, len, &mut rng);
    let expected = naive::msm(&bases, &scalars);
    for isa in Isa::all() {
        assert_eq!(
            msm::g1_with(isa, bases.as_slice(), &scalars).unwrap(),
            expected,
            "{isa} {points_kind:?} {scalars_kind:?} {len}"
        );
        let (ones, wide, values) = pack(&scalars);
        let packed = PackedScalars::new(len, &ones, &wide, &values).unwrap();
        assert_eq!(
            msm::g1_packed(isa, bases.as_slice(), &packed).unwrap(),
            expected,
            "packed, {isa} {points_kind:?} {scalars_kind:?} {len}"
        );
    }
}

fn check_g2(points_kind: Points, scalars_kind: Scalars, len: usize, seed: u64) {
    let mut rng = rng(seed);
    let bases: Vec<G2Affine> = points(points_kind, len, &mut rng);
    let scalars = scalars(scalars_kind, len, &mut rng);
    let expected = naive::msm(&bases, &scalars);
    for isa in Isa::all() {
        assert_eq!(
            msm::g2_with(isa, bases.as_slice(), &scalars).unwrap(),
            expected,
            "{isa} {points_kind:?} {scalars_kind:?} {len}"
        );
        let (ones, wide, values) = pack(&scalars);
        let packed = PackedScalars::new(len, &ones, &wide, &values).unwrap();
        assert_eq!(
            msm::g2_packed(isa, bases.as_slice(), &packed).unwrap(),
            expected,
            "packed, {isa} {points_kind:?} {scalars_kind:?} {len}"
        );
    }
}

#[test]
fn every_kind_of_points_and_scalars() {
    for points in POINTS {
        for scalars in SCALARS {
            for len in [1, 2, 33, 700] {
                check_g1(points, scalars, len, 1);
            }
            for len in [1, 2, 65, 300] {
                check_g2(points, scalars, len, 2);
            }
        }
    }
}

#[test]
fn many_terms() {
    for (points, scalars) in [
        (Points::Random, Scalars::Random),
        (Points::Repeated, Scalars::Random),
        (Points::Random, Scalars::Same),
        (Points::SomeInfinity, Scalars::Witness),
    ] {
        check_g1(points, scalars, (1 << 12) + 1, 3);
    }
    check_g2(Points::Random, Scalars::Random, 1 << 12, 4);
}

/// More terms than a chunk, checked without a twin: every base is a known
/// multiple of the generator.
#[test]
fn more_terms_than_a_chunk() {
    let mut rng = rng(5);
    let len = (1 << 17) + 100;
    let step = Scalar::random(&mut rng);
    let factors: Vec<Scalar> = (0..64u64).map(|i| step * Scalar::from(i)).collect();
    let few: Vec<G1Affine> = naive::fixed_base(G1Affine::generator(), &factors);
    let bases: Vec<G1Affine> = (0..len).map(|i| few[i % few.len()]).collect();
    let scalars = scalars(Scalars::Random, len, &mut rng);
    let sum: Scalar = scalars
        .iter()
        .enumerate()
        .map(|(i, s)| s * factors[i % factors.len()])
        .sum();
    for isa in Isa::all() {
        assert_eq!(
            msm::g1_with(isa, bases.as_slice(), &scalars).unwrap(),
            G1Affine::generator() * sum,
            "{isa}"
        );
        let (ones, wide, values) = pack(&scalars);
        let packed = PackedScalars::new(len, &ones, &wide, &values).unwrap();
        assert_eq!(
            msm::g1_packed(isa, bases.as_slice(), &packed).unwrap(),
            G1Affine::generator() * sum,
            "packed, {isa}"
        );
    }
}

/// The parts of a sum share its buckets, however long each is and however its
/// scalars are kept.
#[test]
fn joined_parts_are_the_sum_of_sums() {
    let mut rng = rng(9);
    for lens in [&[][..], &[0], &[300], &[1, 2], &[700, 0, 33], &[5000, 4000]] {
        let kinds = [Scalars::Random, Scalars::Witness, Scalars::Same];
        let bases: Vec<Vec<G1Affine>> = lens
            .iter()
            .map(|len| points(Points::SomeInfinity, *len, &mut rng))
            .collect();
        let scalars: Vec<Vec<Scalar>> = lens
            .iter()
            .zip(kinds)
            .map(|(len, kind)| scalars(kind, *len, &mut rng))
            .collect();
        let expected: G1Projective = bases
            .iter()
            .zip(&scalars)
            .map(|(bases, scalars)| naive::msm(bases, scalars))
            .sum();
        let slices: Vec<&[G1Affine]> = bases.iter().map(Vec::as_slice).collect();
        let packed: Vec<_> = scalars.iter().map(|scalars| pack(scalars)).collect();
        let parts: Vec<MsmTerm<'_, G1Affine>> = slices
            .iter()
            .zip(&scalars)
            .zip(&packed)
            .enumerate()
            .map(|(i, ((bases, scalars), (ones, wide, values)))| match i {
                1 => MsmTerm::new(
                    bases,
                    PackedScalars::new(scalars.len(), ones, wide, values).unwrap(),
                ),
                _ => MsmTerm::new(bases, scalars.as_slice()),
            })
            .collect();
        for isa in Isa::all() {
            let sum = msm::g1_of_terms(isa, &parts).unwrap();
            assert_eq!(sum, expected, "{isa} {lens:?}");
        }
    }
}

/// Bytes as they lie in a mapped file: aligned to a cache line.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// The rows of multiples of the chosen bases.
fn rows<P: WithMultiples>(
    isa: Isa,
    shape: Shape,
    chosen: &Chosen,
    bases: &dyn Bases<P>,
) -> Vec<Line> {
    let mut rows = Vec::new();
    P::write_rows::<KernelError>(isa.into(), shape, chosen, bases, |row| {
        assert_eq!(Some(row.len()), P::row_bytes(isa, chosen.count()));
        rows.extend(row.as_chunks().0.iter().map(|line| Line(*line)));
        Ok(())
    })
    .unwrap();
    rows
}

fn bytes_of(lines: &[Line]) -> &[u8] {
    bytemuck::cast_slice(lines)
}

/// [`msm::g1_of_terms`] or [`msm::g2_of_terms`].
type JoinedSum<P> =
    fn(Isa, &[MsmTerm<'_, P>]) -> Result<<P as PrimeCurveAffine>::Curve, KernelError>;

/// An MSM with multiples of some bases has the right result for every shape. That holds
/// also where a base without multiples has a scalar that takes a multiplication.
fn check_multiples<P>(joined: JoinedSum<P>, len: usize, shapes: impl IntoIterator<Item = Shape>)
where
    P: WithMultiples + PrimeCurveAffine<Scalar = Scalar> + From<P::Curve> + Copy,
{
    let mut rng = rng(10);
    let bases: Vec<P> = points(Points::SomeInfinity, len, &mut rng);
    let slice = bases.as_slice();
    for (shape, threads) in shapes.into_iter().zip([1, 2, 5].into_iter().cycle()) {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        let mut scalars = scalars(Scalars::Witness, len, &mut rng);
        let chosen = Chosen::new(len, |i| ![Scalar::ZERO, Scalar::ONE].contains(&scalars[i]));
        for isa in Isa::all()
            .into_iter()
            .filter(|isa| P::row_bytes(*isa, 1).is_some())
        {
            let lines = rows(isa, shape, &chosen, &slice);
            let bytes = bytes_of(&lines);
            let multiples = Multiples::new(isa, shape, &chosen, bytes).unwrap();
            for outside in [false, true] {
                if outside {
                    let zero = scalars.iter().position(|s| *s == Scalar::ZERO).unwrap();
                    scalars[zero] = Scalar::from(77);
                }
                let part = MsmTerm::new(&slice, scalars.as_slice()).with_multiples(multiples);
                let sum = pool.install(|| joined(isa, &[part, part]).unwrap());
                let expected = naive::msm(&bases, &scalars);
                assert_eq!(sum, expected + expected, "{isa} {shape:?} {outside}");
                // Instructions that the rows are not for.
                let scalar = joined(Isa::SCALAR, &[part]).unwrap();
                assert_eq!(scalar, expected);
            }
        }
    }
}

#[test]
fn multiples_change_nothing() {
    let shapes = |bits: &[u32], rows: &[usize]| -> Vec<Shape> {
        bits.iter()
            .flat_map(|bits| rows.iter().filter_map(|rows| Shape::new(*bits, *rows)))
            .collect()
    };
    check_multiples(
        msm::g1_of_terms,
        400,
        shapes(&[2, 7, 8, 13, 16], &[1, 2, 3, 16, 20, 128]),
    );
    check_multiples(msm::g2_of_terms, 300, shapes(&[4, 11, 15], &[1, 4, 17]));
    check_multiples(msm::g1_of_terms, 5000, [Shape::choose(5000, 2, 16)]);
}

/// Bits need no multiplication, so the multiples that are there are not used. A witness may have
/// nothing else, alone or beside a part that has.
#[test]
fn multiples_of_bases_whose_scalars_are_bits() {
    let Some(isa) = cuzk_kernels::testing::ifma() else {
        return;
    };
    let mut rng = rng(13);
    let bases: Vec<G1Affine> = points(Points::Random, 100, &mut rng);
    let slice = bases.as_slice();
    let chosen = Chosen::new(100, |i| i % 2 == 0);
    let shape = Shape::new(8, 4).unwrap();
    let lines = rows(isa, shape, &chosen, &slice);
    let multiples = Multiples::new(isa, shape, &chosen, bytes_of(&lines)).unwrap();
    let bits: Vec<Scalar> = (0..100).map(|i| Scalar::from(i % 3 % 2)).collect();
    let mut wide = bits.clone();
    wide[8] = Scalar::from(77);
    let [of_bits, of_wide] = [&bits, &wide].map(|scalars| {
        let part = MsmTerm::new(&slice, scalars.as_slice()).with_multiples(multiples);
        (part, naive::msm(&bases, scalars))
    });
    for parts in [&[of_bits][..], &[of_bits, of_wide], &[of_wide, of_bits]] {
        let terms: Vec<_> = parts.iter().map(|(part, _)| *part).collect();
        let expected: G1Projective = parts.iter().map(|(_, sum)| sum).sum();
        assert_eq!(msm::g1_of_terms(isa, &terms).unwrap(), expected);
    }
}

/// Where there are multiples the bases themselves are not read: they could be
/// no points any more.
#[test]
fn multiples_are_what_is_read() {
    let Some(isa) = cuzk_kernels::testing::ifma() else {
        return;
    };
    let mut rng = rng(12);
    let poisoned = Poisoned {
        bases: points(Points::Random, 100, &mut rng),
        bad: 50,
    };
    let scalars = scalars(Scalars::Random, 100, &mut rng);
    let chosen = Chosen::new(100, |_| true);
    let shape = Shape::new(8, 4).unwrap();
    let lines = rows(isa, shape, &chosen, &poisoned.bases.as_slice());
    let multiples = Multiples::new(isa, shape, &chosen, bytes_of(&lines)).unwrap();
    let part = MsmTerm::new(&poisoned, scalars.as_slice());
    assert!(msm::g1_of_terms(isa, &[part]).is_err());
    let sum = msm::g1_of_terms(isa, &[part.with_multiples(multiples)]).unwrap();
    assert_eq!(sum, naive::msm(&poisoned.bases, &scalars));
}

#[test]
fn rows_that_do_not_fit_are_refused() {
    let Some(isa) = cuzk_kernels::testing::ifma() else {
        return;
    };
    let bases: Vec<G1Affine> = points(Points::Random, 10, &mut rng(11));
    let chosen = Chosen::new(10, |i| i != 3);
    let shape = Shape::new(8, 4).unwrap();
    let lines = rows(isa, shape, &chosen, &bases.as_slice());
    let bytes = bytes_of(&lines);
    assert!(Multiples::<G1Affine>::new(isa, shape, &chosen, bytes).is_ok());
    assert!(Multiples::<G1Affine>::new(isa, shape, &chosen, &bytes[64..]).is_err());
    assert!(Multiples::<G1Affine>::new(Isa::SCALAR, shape, &chosen, bytes).is_err());
    let mut moved = vec![Line([0; 64]); lines.len() + 1];
    let moved: &mut [u8] = bytemuck::cast_slice_mut(&mut moved);
    moved[1..=bytes.len()].copy_from_slice(bytes);
    let moved = &moved[1..=bytes.len()];
    assert!(matches!(
        Multiples::<G1Affine>::new(isa, shape, &chosen, moved),
        Err(KernelError::Multiples("out of alignment"))
    ));
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let mut rng = rng(6);
    let bases: Vec<G1Affine> = points(Points::Random, 1000, &mut rng);
    let scalars = scalars(Scalars::Random, 1000, &mut rng);
    let expected = naive::msm(&bases, &scalars);
    for threads in [1, 3, 64] {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        let result = pool.install(|| msm::g1(&bases, &scalars)).unwrap();
        assert_eq!(result, expected, "{threads} threads");
    }
}

/// Also one that nobody can have, and one without scalars that need windows.
#[test]
fn every_width_of_window_gives_the_same() {
    let mut rng = rng(83);
    let g1: Vec<G1Affine> = points(Points::Random, 300, &mut rng);
    let g2: Vec<G2Affine> = points(Points::Random, 60, &mut rng);
    for kind in [Scalars::Random, Scalars::Small, Scalars::One] {
        let scalars = scalars(kind, 300, &mut rng);
        let expected = (
            naive::msm(&g1, &scalars),
            naive::msm(&g2, &scalars[..g2.len()]),
        );
        for isa in Isa::all() {
            // The last have half a million buckets a window. The widest have gigabytes of them.
            let widest = (isa == Isa::best()).then_some([17, 18, 20]);
            for bits in (0..=12).chain(widest.into_iter().flatten()) {
                let sums = (
                    msm::g1_in_windows(isa, bits, &g1, &scalars).unwrap(),
                    msm::g2_in_windows(isa, bits, &g2, &scalars[..g2.len()]).unwrap(),
                );
                assert_eq!(sums, expected, "{isa} {kind:?} {bits}");
            }
        }
    }
}

#[test]
fn windows_widen_with_the_terms() {
    let bits = [1, 1 << 8, 1 << 12, 1 << 16, 1 << 20].map(|terms| msm::window_bits(terms, 2));
    assert!(bits.is_sorted() && bits[0] < bits[4], "{bits:?}");
    assert!(bits.iter().all(|bits| (2..=16).contains(bits)), "{bits:?}");
}

#[test]
fn no_terms_sum_to_infinity() {
    let none = msm::g1(&[], &[]).unwrap();
    assert!(bool::from(none.is_identity()));
}

#[test]
fn lengths_are_checked() {
    assert!(matches!(
        msm::g1(&[G1Affine::generator()], &[]),
        Err(KernelError::LengthMismatch {
            expected: 1,
            got: 0,
            ..
        })
    ));
}

/// Bases that refuse to decode one index.
struct Poisoned {
    bases: Vec<G1Affine>,
    bad: usize,
}

impl Bases<G1Affine> for Poisoned {
    fn len(&self) -> usize {
        self.bases.len()
    }

    fn read(&self, start: usize, out: &mut [G1Affine]) -> Result<(), BasesError> {
        if (start..start + out.len()).contains(&self.bad) {
            return Err(BasesError::Invalid {
                index: self.bad,
                reason: "poisoned".into(),
            });
        }
        self.bases.as_slice().read(start, out)
    }
}

#[test]
fn bases_of_zero_scalars_are_not_read() {
    let mut rng = rng(7);
    let bases = Poisoned {
        bases: points(Points::Random, 100, &mut rng),
        bad: 50,
    };
    let mut scalars = scalars(Scalars::Random, 100, &mut rng);
    assert!(matches!(
        msm::g1_stream(&bases, &scalars),
        Err(KernelError::Bases(BasesError::Invalid { index: 50, .. }))
    ));
    scalars[50] = Scalar::ONE;
    assert!(msm::g1_stream(&bases, &scalars).is_err());
    scalars[50] = Scalar::ZERO;
    assert_eq!(
        msm::g1_stream(&bases, &scalars).unwrap(),
        naive::msm(&bases.bases, &scalars)
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn g1_agrees_with_its_twin(
        len in 0usize..600,
        seed: u64,
        points in prop::sample::select(&POINTS[..]),
        scalars in prop::sample::select(&SCALARS[..]),
    ) {
        check_g1(points, scalars, len, seed);
    }

    #[test]
    fn g2_agrees_with_its_twin(
        len in 0usize..200,
        seed: u64,
        points in prop::sample::select(&POINTS[..]),
        scalars in prop::sample::select(&SCALARS[..]),
    ) {
        check_g2(points, scalars, len, seed);
    }
}
