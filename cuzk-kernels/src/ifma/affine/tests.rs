use super::*;
use crate::affine::CurveOf;
use crate::affine::tests::check_kernel;
use blstrs::Scalar;
use ff::Field;
use group::UncompressedEncoding;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// Encoded points come out as decoded ones do, wherever they stand, and
/// what is no point is noticed in every lane.
fn check_encodings<A, C>(kernel: Affine<A, C>)
where
    A: Coordinates<Base = C::Base> + UncompressedEncoding + From<CurveOf<Affine<A, C>>>,
    C: Coordinate,
{
    let mut rng = ChaCha8Rng::seed_from_u64(8);
    let points: Vec<A> = (0..21)
        .map(|_| (A::generator() * Scalar::random(&mut rng)).into())
        .collect();
    let encode = |point: &A| point.to_uncompressed().as_ref().to_vec();
    let encoded: Vec<Vec<u8>> = points.iter().map(encode).collect();
    for len in [1, 7, 8, 9, 21] {
        let indices: Vec<u32> = (0..len).map(|i| (i * 5 + 2) % 21).collect();
        let mut got = vec![kernel.infinity(); indices.len()];
        assert!(kernel.import_encoded(&encoded.concat(), &indices, &mut got));
        let mut decoded = vec![A::identity(); got.len()];
        kernel.export(&got, &mut decoded);
        let expected: Vec<A> = indices.iter().map(|i| points[*i as usize]).collect();
        assert_eq!(decoded, expected);
    }
    let indices: Vec<u32> = (0..21).collect();
    let mut to = vec![kernel.infinity(); 21];
    let point_bytes = encoded[0].len();
    for at in 0..21 {
        let good = encoded.concat();
        assert!(!kernel.import_encoded(&good[..good.len() - 1], &indices, &mut to));
        let start = at * point_bytes;
        for byte in [0, 1, point_bytes / 2 - 1, point_bytes / 2, point_bytes - 1] {
            let mut bad = good.clone();
            bad[start + byte] ^= 0x40;
            assert!(
                !kernel.import_encoded(&bad, &indices, &mut to),
                "{at} {byte}"
            );
        }
        let mut infinite = good.clone();
        infinite[start..start + point_bytes].copy_from_slice(&encode(&A::identity()));
        assert!(!kernel.import_encoded(&infinite, &indices, &mut to));
        let mut unreduced = good;
        unreduced[start..start + point_bytes].fill(0x1f);
        assert!(!kernel.import_encoded(&unreduced, &indices, &mut to));
    }
}

#[test]
fn encoded_points_are_read_in_g1() {
    if let Some(token) = crate::testing::token() {
        check_encodings(G1::new(token));
    }
}

#[test]
fn encoded_points_are_read_in_g2() {
    if let Some(token) = crate::testing::token() {
        check_encodings(G2::new(token));
    }
}

#[test]
fn g1_additions_agree_with_the_group_law() {
    if let Some(token) = crate::testing::token() {
        check_kernel(G1::new(token));
    }
}

#[test]
fn g2_additions_agree_with_the_group_law() {
    if let Some(token) = crate::testing::token() {
        check_kernel(G2::new(token));
    }
}
