//! Products of pairings, and scaled points, against blst's one by one.

#![allow(clippy::unwrap_used, reason = "a failure here fails the test")]

use blstrs::{G1Affine, G2Affine, Gt, Scalar};
use cuzk_kernels::pairing::{PairingTerm, products};
use cuzk_kernels::{Context, Isa, KernelError, multiply_add};
use cuzk_memory::{Cancellation, Checkpoint, Mapped};
use ff::Field;
use group::prime::PrimeCurveAffine;
use group::{Curve, Group};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// Points of a group, the last of which is at infinity if `with_infinity`.
fn points<A>(len: usize, seed: u64, with_infinity: bool) -> Vec<A>
where
    A: PrimeCurveAffine<Scalar = Scalar>,
    A::Curve: Curve<AffineRepr = A>,
{
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut points: Vec<A> = (0..len)
        .map(|_| (A::generator() * Scalar::random(&mut rng)).to_affine())
        .collect();
    if let Some(last) = points.last_mut().filter(|_| with_infinity) {
        *last = A::identity();
    }
    points
}

fn scalars(len: usize, seed: u64) -> Vec<Scalar> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut scalars = vec![Scalar::ZERO, Scalar::ONE, -Scalar::ONE, Scalar::from(16)];
    scalars.resize_with(len.max(4), || Scalar::random(&mut rng));
    scalars.truncate(len);
    scalars
}

/// The product of the pairings, one by one.
fn slow(left: &[G1Affine], right: &[G2Affine]) -> Gt {
    let pairs = left.iter().zip(right);
    pairs.map(|(p, q)| blstrs::pairing(p, q)).sum()
}

/// Terms of which a product has points of two, and two products share points of G2.
fn check_products(isa: Isa, len: usize, with_infinity: bool) {
    let [a, b, c] = [1, 2, 3].map(|seed| points::<G1Affine>(len, seed, with_infinity));
    let [v, w] = [4, 5].map(|seed| points::<G2Affine>(len, seed, with_infinity));
    let terms = [
        PairingTerm {
            g2: &v,
            factors: vec![(0, &a), (1, &b)],
        },
        PairingTerm {
            g2: &w,
            factors: vec![(0, &b), (2, &c), (3, &a)],
        },
    ];
    let expected = [
        slow(&a, &v) + slow(&b, &w),
        slow(&b, &v),
        slow(&c, &w),
        slow(&a, &w),
        Gt::identity(),
    ];
    let products = products(isa, 5, &terms).unwrap();
    assert_eq!(products, expected, "{isa} {len}");
}

#[test]
fn products_agree_with_single_pairings() {
    for isa in Isa::all() {
        for len in [0, 1, 2, 5, 8, 11, 33] {
            check_products(isa, len, false);
        }
        check_products(isa, 9, true);
    }
}

#[test]
fn a_factor_of_another_length_or_product_is_refused() {
    let (g1, g2) = (
        points::<G1Affine>(2, 1, false),
        points::<G2Affine>(2, 2, false),
    );
    for (product, points) in [(0, &g1[..1]), (1, &g1[..])] {
        let terms = [PairingTerm {
            g2: &g2,
            factors: vec![(product, points)],
        }];
        let refused = products(Isa::best(), 1, &terms);
        assert!(matches!(refused, Err(KernelError::LengthMismatch { .. })));
    }
}

#[test]
fn scaled_points_agree_with_single_multiplications() {
    for isa in Isa::all() {
        for len in [0, 1, 7, 8, 20] {
            let scalars = scalars(len, 9);
            let g1 = points::<G1Affine>(len, 1, false);
            let added = points::<G1Affine>(len, 2, len > 9);
            let slow = |i: usize| (g1[i] * scalars[i] + added[i]).to_affine();
            let expected: Vec<G1Affine> = (0..len).map(slow).collect();
            let out = multiply_add::g1(isa, &added, &g1, &scalars).unwrap();
            assert_eq!(out, expected, "{isa} {len}");

            let g2 = points::<G2Affine>(len, 3, len > 9);
            let added = points::<G2Affine>(len, 4, false);
            let slow = |i: usize| (g2[i] * scalars[i] + added[i]).to_affine();
            let expected: Vec<G2Affine> = (0..len).map(slow).collect();
            let out = multiply_add::g2(isa, &added, &g2, &scalars).unwrap();
            assert_eq!(out, expected, "{isa} {len}");
        }
    }
}

/// A result may be at infinity, and an addend may equal the scaled point or be its opposite.
#[test]
fn scaled_points_that_meet_their_addends_are_added() {
    let g = points::<G1Affine>(9, 1, false);
    let scalars = scalars(9, 2);
    let scaled: Vec<G1Affine> = (0..9).map(|i| (g[i] * scalars[i]).to_affine()).collect();
    let opposite: Vec<G1Affine> = scaled.iter().map(|point| -point).collect();
    let doubled: Vec<G1Affine> = scaled
        .iter()
        .map(|point| point.to_curve().double().to_affine())
        .collect();
    for isa in Isa::all() {
        let sums = multiply_add::g1(isa, &opposite, &g, &scalars).unwrap();
        assert_eq!(sums, vec![G1Affine::identity(); 9], "{isa}");
        assert_eq!(
            multiply_add::g1(isa, &scaled, &g, &scalars).unwrap(),
            doubled
        );
        let short = multiply_add::g1(isa, &scaled, &g, &scalars[1..]);
        assert!(matches!(short, Err(KernelError::LengthMismatch { .. })));
    }
}

#[test]
fn both_stop_when_cancelled() {
    let cancellation = Cancellation::default();
    cancellation.cancel();
    let (g1, g2) = (
        points::<G1Affine>(9, 1, false),
        points::<G2Affine>(9, 2, false),
    );
    for isa in Isa::all() {
        let context = Context {
            isa,
            checkpoint: &Checkpoint::new(&cancellation),
            memory: &Mapped,
        };
        let terms = [PairingTerm {
            g2: &g2,
            factors: vec![(0, &g1)],
        }];
        assert!(matches!(
            products(context, 1, &terms),
            Err(KernelError::Stopped)
        ));
        let scaled = multiply_add::g2(context, &g2, &g2, &scalars(9, 3));
        assert!(matches!(scaled, Err(KernelError::Stopped)));
    }
}
