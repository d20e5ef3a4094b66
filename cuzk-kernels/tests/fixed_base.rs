//! Fixed-base multiplication against its slow twin.

use blstrs::{G1Affine, G2Affine, Scalar};
use cuzk_kernels::fixed_base::{G1Table, G2Table};
use cuzk_kernels::{Isa, KernelError, naive};
use ff::{Field, PrimeField};
use group::prime::PrimeCurveAffine;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

fn scalars(len: usize, seed: u64) -> Vec<Scalar> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut scalars: Vec<Scalar> = vec![
        Scalar::ZERO,
        Scalar::ONE,
        -Scalar::ONE,
        Scalar::from(2),
        Scalar::TWO_INV,
    ];
    scalars.resize_with(len.max(5), || Scalar::random(&mut rng));
    scalars.truncate(len);
    scalars
}

#[test]
fn g1_agrees_with_its_twin() {
    let base = naive::fixed_base(G1Affine::generator(), &scalars(6, 1))[5];
    for (len, expected_len) in [(0, 0), (1, 1), (5, 100), (700, 10), (700, 100_000)] {
        let scalars = scalars(len, 2);
        let expected = naive::fixed_base(base, &scalars);
        for isa in Isa::all() {
            let mut out = vec![G1Affine::generator(); len];
            G1Table::with(isa, base, expected_len)
                .mul_many(&scalars, &mut out)
                .unwrap();
            assert_eq!(out, expected, "{isa} {len} {expected_len}");
        }
    }
}

#[test]
fn g2_agrees_with_its_twin() {
    let base = naive::fixed_base(G2Affine::generator(), &scalars(6, 1))[5];
    for (len, expected_len) in [(0, 0), (1, 1), (5, 100), (300, 10), (300, 30_000)] {
        let scalars = scalars(len, 2);
        let expected = naive::fixed_base(base, &scalars);
        for isa in Isa::all() {
            let mut out = vec![G2Affine::generator(); len];
            G2Table::with(isa, base, expected_len)
                .mul_many(&scalars, &mut out)
                .unwrap();
            assert_eq!(out, expected, "{isa} {len} {expected_len}");
        }
    }
}

#[test]
fn more_scalars_than_a_batch() {
    let scalars = scalars(5000, 3);
    let sample: Vec<usize> = (0..scalars.len()).step_by(7).collect();
    let sampled: Vec<Scalar> = sample.iter().map(|i| scalars[*i]).collect();
    let expected = naive::fixed_base(G1Affine::generator(), &sampled);
    for isa in Isa::all() {
        let mut out = vec![G1Affine::identity(); scalars.len()];
        G1Table::with(isa, G1Affine::generator(), scalars.len())
            .mul_many(&scalars, &mut out)
            .unwrap();
        let ours: Vec<G1Affine> = sample.iter().map(|i| out[*i]).collect();
        assert_eq!(ours, expected, "{isa}");
    }
}

#[test]
fn infinity_and_zero_give_infinity() {
    let scalars = scalars(20, 4);
    for isa in Isa::all() {
        let mut out = vec![G1Affine::generator(); 20];
        G1Table::with(isa, G1Affine::identity(), 20)
            .mul_many(&scalars, &mut out)
            .unwrap();
        assert!(out.iter().all(|point| bool::from(point.is_identity())));

        let mut out = vec![G2Affine::generator(); 3];
        G2Table::with(isa, G2Affine::generator(), 3)
            .mul_many(&[Scalar::ZERO; 3], &mut out)
            .unwrap();
        assert!(out.iter().all(|point| bool::from(point.is_identity())));
    }
}

#[test]
fn lengths_are_checked() {
    let table = G1Table::new(G1Affine::generator(), 1);
    assert!(matches!(
        table.mul_many(&[Scalar::ONE], &mut []),
        Err(KernelError::LengthMismatch {
            expected: 1,
            got: 0,
            ..
        })
    ));
}
