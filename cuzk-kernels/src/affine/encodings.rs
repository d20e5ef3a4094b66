//! The property of every kernel that reads encoded points: it reads what its slow twin reads,
//! and refuses the rest.

use blstrs::{Fp, Fp2, G1Affine, G2Affine};
use ff::Field;
use group::UncompressedEncoding;
use group::prime::PrimeCurveAffine;
use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{Coordinates, CurveOf, Kernel};
use crate::arithmetic::CHARACTERISTIC;

/// Bytes of a component.
const BYTES: usize = 48;

/// A curve whose points are made, off it too.
pub(crate) trait Curve: Coordinates + UncompressedEncoding {
    /// Components of a coordinate.
    const COMPONENTS: usize;
    /// The constant b of the curve y² = x³ + b.
    fn b() -> Self::Base;
    /// A coordinate of random components, or of one alone.
    fn coordinate(components: [Fp; 2]) -> Self::Base;
    /// The components of a coordinate as they are encoded.
    fn encode(coordinate: Self::Base) -> Vec<u8>;
}

impl Curve for G1Affine {
    const COMPONENTS: usize = 1;
    fn b() -> Fp {
        Fp::from(4)
    }
    fn coordinate([c0, _]: [Fp; 2]) -> Fp {
        c0
    }
    fn encode(coordinate: Fp) -> Vec<u8> {
        coordinate.to_bytes_be().to_vec()
    }
}

impl Curve for G2Affine {
    const COMPONENTS: usize = 2;
    fn b() -> Fp2 {
        Fp2::new(Fp::from(4), Fp::from(4))
    }
    fn coordinate([c0, c1]: [Fp; 2]) -> Fp2 {
        Fp2::new(c0, c1)
    }
    fn encode(coordinate: Fp2) -> Vec<u8> {
        [coordinate.c1(), coordinate.c0()]
            .map(|c| c.to_bytes_be())
            .concat()
    }
}

/// The encoding of a point off the curve by `difference`, with an x from `x` on.
fn off_by<A: Curve>(difference: A::Base, mut x: A::Base) -> Vec<u8> {
    loop {
        let y: Option<A::Base> = (x.square() * x + A::b() + difference).sqrt().into();
        match y {
            Some(y) => return [A::encode(x), A::encode(y)].concat(),
            None => x += A::Base::ONE,
        }
    }
}

/// The slow twin: blst's, of a point that is neither infinite nor compressed.
fn decode<A: Curve>(bytes: &[u8]) -> Option<A> {
    let mut encoded = A::Uncompressed::default();
    encoded.as_mut().copy_from_slice(bytes);
    let point: Option<A> = A::from_uncompressed_unchecked(&encoded).into();
    point.filter(|point| bytes[0] & 0x80 == 0 && !bool::from(point.is_identity()))
}

/// Adds the modulus to a component, or as many of its bits as fit.
fn add_modulus(component: &mut [u8]) {
    let mut carry = 0_u16;
    for (i, byte) in component.iter_mut().rev().enumerate() {
        let modulus = CHARACTERISTIC[i / 8].to_le_bytes()[i % 8];
        carry += u16::from(*byte) + u16::from(modulus);
        [*byte, _] = carry.to_le_bytes();
        carry >>= 8;
    }
}

/// An encoding that may be wrong.
fn encoding<A: Curve>(kind: usize, rng: &mut ChaCha8Rng) -> Vec<u8> {
    let random = [(); 2].map(|()| Fp::random(&mut *rng));
    // A small x stays below 2^381 if the modulus is added.
    let small = [(); 2].map(|()| Fp::from(rng.gen_range(1..50)));
    let on_curve = |components| off_by::<A>(A::Base::ZERO, A::coordinate(components));
    let mut bytes = on_curve(if rng.r#gen() { random } else { small });
    let component = rng.gen_range(0..2 * A::COMPONENTS);
    let len = bytes.len();
    match kind {
        0 => bytes[rng.gen_range(0..len)] ^= 1 << rng.gen_range(0..8),
        1 => bytes[0] ^= rng.gen_range(1..8_u8) << 5,
        2 => add_modulus(&mut bytes[BYTES * component..][..BYTES]),
        3 => bytes = A::identity().to_uncompressed().as_ref().to_vec(),
        4 => bytes[BYTES * component..][..BYTES].fill(rng.r#gen()),
        5 => {
            bytes.fill(0);
            bytes[0] = rng.gen_range(0..8_u8) << 5;
        }
        6 => bytes.rotate_left(len / 2),
        7 => {
            bytes[BYTES * component..][..BYTES].fill(0);
            add_modulus(&mut bytes[BYTES * component..][..BYTES]);
        }
        // On the curve in G1, and of order three.
        8 => bytes = on_curve([Fp::ZERO; 2]),
        _ => {}
    }
    bytes
}

/// Kinds of [`encoding`].
const KINDS: usize = 12;

/// Reads encodings with these indices, and compares with the slow twin.
fn check<K: Kernel>(kernel: K, encodings: &[Vec<u8>], indices: &[u32])
where
    K::Affine: Curve,
{
    let mut points = vec![kernel.infinity(); indices.len()];
    let is_read = kernel.import_encoded(&encodings.concat(), indices, &mut points);
    let expected = indices.iter().map(|i| decode(&encodings[*i as usize]));
    let expected: Option<Vec<K::Affine>> = expected.collect();
    assert_eq!(is_read, expected.is_some(), "{indices:?}");
    if let Some(expected) = expected {
        let mut exported = vec![K::Affine::identity(); points.len()];
        kernel.export(&points, &mut exported);
        assert_eq!(exported, expected);
    }
}

/// The property, of a kernel that reads encoded points.
pub(crate) fn check_encodings<K: Kernel>(kernel: K)
where
    K::Affine: Curve + From<CurveOf<K>>,
{
    every_lane_is_checked(kernel);
    every_bit_of_a_difference_is_checked(kernel);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(500));
    let result = runner.run(&(any::<u64>(), 1..40_u32, 0..KINDS), |(seed, len, kind)| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut encodings: Vec<_> = (0..len)
            .map(|_| encoding::<K::Affine>(KINDS, &mut rng))
            .collect();
        encodings[rng.gen_range(0..len) as usize] = encoding::<K::Affine>(kind, &mut rng);
        let indices: Vec<u32> = (0..len).map(|_| rng.gen_range(0..len)).collect();
        check(kernel, &encodings, &indices);
        Ok(())
    });
    assert!(result.is_ok(), "{result:?}");
}

/// Encoded points come out as decoded ones do, wherever they stand. A wrong one is noticed in
/// every lane.
fn every_lane_is_checked<K: Kernel>(kernel: K)
where
    K::Affine: Curve,
{
    const LEN: u32 = 37;
    let mut rng = ChaCha8Rng::seed_from_u64(8);
    let points: Vec<_> = (0..LEN)
        .map(|_| encoding::<K::Affine>(KINDS, &mut rng))
        .collect();
    for len in [0, 1, 7, 8, 9, 15, 16, 17, 32, LEN] {
        let indices: Vec<u32> = (0..len).map(|i| (i * 5 + 2) % LEN).collect();
        check(kernel, &points, &indices);
    }
    let indices: Vec<u32> = (0..LEN).collect();
    let mut to = vec![kernel.infinity(); points.len()];
    let all = points.concat();
    assert!(!kernel.import_encoded(&all[..all.len() - 1], &indices, &mut to));
    assert!(!kernel.import_encoded(&all, &[0, LEN], &mut to));
    let point_bytes = points[0].len();
    for at in 0..points.len() {
        for byte in [0, 1, point_bytes / 2 - 1, point_bytes / 2, point_bytes - 1] {
            let mut points = points.clone();
            points[at][byte] ^= 0x40;
            check(kernel, &points, &indices);
        }
        for bad in [vec![0x1f; point_bytes], encoding::<K::Affine>(3, &mut rng)] {
            let mut points = points.clone();
            points[at] = bad;
            check(kernel, &points, &indices);
        }
    }
}

/// Points whose equation is off by a power of two are refused. In some kernel's form, such a
/// difference has one limb that is not zero.
fn every_bit_of_a_difference_is_checked<K: Kernel>(kernel: K)
where
    K::Affine: Curve,
{
    let half = Fp::from(2).invert().unwrap();
    let mut power = (0..384).fold(Fp::ONE, |power, _| power * half);
    let mut to = vec![kernel.infinity(); 1];
    for exponent in -384..900_i32 {
        if exponent % 4 == 0 {
            let of = [[power, Fp::ZERO], [Fp::ZERO, power], [power, -power]];
            for components in &of[..2 * K::Affine::COMPONENTS - 1] {
                let difference = K::Affine::coordinate(*components);
                let point = off_by::<K::Affine>(difference, <K::Affine as Coordinates>::Base::ONE);
                assert!(!kernel.import_encoded(&point, &[0], &mut to), "{exponent}");
            }
        }
        power = power.double();
    }
}
