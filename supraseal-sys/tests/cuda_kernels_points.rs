//! Sums, MSMs and the decoding of points of the device, run on the host, against naive
//! sums.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective, Scalar};
use cuzk_kernels::naive;
use ff::{Field, PrimeField};
use group::{Curve, Group, prime::PrimeCurveAffine};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use supraseal_sys::emulated::{
    Kernels, NO_BASE, Query, Scalars, scan, scratch_grows, wide_bases, window_bits,
};

fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

trait Point: Kernels<Sum = Self::Curve> + PrimeCurveAffine<Scalar = Scalar> {
    fn affine(points: &[Self::Curve]) -> Vec<Self>;
}

impl Point for G1Affine {
    fn affine(points: &[G1Projective]) -> Vec<Self> {
        let mut affine = vec![Self::identity(); points.len()];
        G1Projective::batch_normalize(points, &mut affine);
        affine
    }
}

impl Point for G2Affine {
    fn affine(points: &[G2Projective]) -> Vec<Self> {
        let mut affine = vec![Self::identity(); points.len()];
        G2Projective::batch_normalize(points, &mut affine);
        affine
    }
}

/// Returns an arithmetic progression of points, with their logarithms.
fn points<P: Point>(len: usize, rng: &mut ChaCha8Rng) -> (Vec<P>, Vec<Scalar>) {
    let (start, step) = (Scalar::random(&mut *rng), Scalar::random(&mut *rng));
    let step_point = P::generator() * step;
    let firsts = std::iter::successors(Some(P::generator() * start), |p| Some(*p + step_point));
    let logs = std::iter::successors(Some(start), |log| Some(*log + step));
    let points: Vec<_> = firsts.take(len).collect();
    (P::affine(&points), logs.take(len).collect())
}

/// Returns points with repeated ones, their negatives and infinity among them.
fn mixed_points<P: Point>(len: usize, rng: &mut ChaCha8Rng) -> Vec<P> {
    let (mut points, _) = points::<P>(len, rng);
    for i in 1..len {
        points[i] = match rng.gen_range(0..8) {
            0 => P::identity(),
            1 => points[i - 1],
            2 => -points[i - 1],
            3 => points[0],
            _ => points[i],
        };
    }
    points
}

fn mixed_scalar(rng: &mut ChaCha8Rng) -> Scalar {
    match rng.gen_range(0..8) {
        0 => Scalar::ZERO,
        1 => Scalar::ONE,
        2 => -Scalar::ONE,
        3 => Scalar::from(rng.gen_range(0..1000u64)),
        4 => -Scalar::from(rng.gen_range(0..1000u64)),
        // Around r / 2, where scalars begin to be negated.
        5 => Scalar::TWO_INV - Scalar::from(rng.gen_range(0..3u64)),
        _ => Scalar::random(rng),
    }
}

/// Returns canonical values: Montgomery's x is the canonical x / 2^256.
fn canonical(values: &[Scalar]) -> Vec<Scalar> {
    let factor = Scalar::from(2).pow_vartime([256]).invert().unwrap();
    values.iter().map(|value| *value * factor).collect()
}

fn check_msm<P: Point>(bases: &[P], values: &[Scalar], bits: u32, expected: P::Curve) {
    let montgomery = Scalars {
        values,
        places: None,
        is_canonical: false,
    };
    let what = format!("n = {}, windows of {bits} bits", values.len());
    assert!(
        P::msm(bases, &montgomery, bits).unwrap() == expected,
        "{what}"
    );
    let values = &canonical(values);
    let canonical = Scalars {
        values,
        is_canonical: true,
        ..montgomery
    };
    assert!(
        P::msm(bases, &canonical, bits).unwrap() == expected,
        "{what}, canonical"
    );
}

fn msm_agrees<P: Point>(lengths: &[usize], bits: &[u32]) {
    let mut rng = rng(10);
    for &len in lengths {
        let bases = mixed_points::<P>(len, &mut rng);
        let scalars: Vec<_> = (0..len).map(|_| mixed_scalar(&mut rng)).collect();
        for &bits in bits {
            check_msm(&bases, &scalars, bits, naive::msm(&bases, &scalars));
        }
    }
}

#[test]
fn msm_g1_agrees_with_naive() {
    msm_agrees::<G1Affine>(&[0, 1, 2, 3, 100, 700], &[4, 5, 7, 8, 11]);
    msm_agrees::<G1Affine>(&[33], &[17]);
}

#[test]
fn msm_g2_agrees_with_naive() {
    msm_agrees::<G2Affine>(&[0, 1, 2, 150], &[4, 8]);
}

/// All scalars are equal. So each window has one bucket, which all threads and several
/// reductions share.
#[test]
fn equal_scalars_and_equal_points() {
    let mut rng = rng(11);
    let (bases, logs) = points::<G1Affine>(3000, &mut rng);
    let sum: Scalar = logs.iter().sum();
    for scalar in [
        Scalar::ONE,
        -Scalar::ONE,
        Scalar::random(&mut rng),
        Scalar::ZERO,
    ] {
        let expected = G1Projective::generator() * (sum * scalar);
        check_msm(&bases, &vec![scalar; bases.len()], 8, expected);
        let same = vec![bases[0]; bases.len()];
        let expected = bases[0] * (scalar * Scalar::from(3000));
        check_msm(&same, &vec![scalar; bases.len()], 6, expected);
    }
}

/// More digits than the smallest pieces hold, with logarithms for the result.
#[test]
fn many_scalars() {
    let mut rng = rng(12);
    let (bases, logs) = points::<G1Affine>(1 << 15, &mut rng);
    let scalars: Vec<_> = logs.iter().map(|_| mixed_scalar(&mut rng)).collect();
    let log: Scalar = logs.iter().zip(&scalars).map(|(log, s)| log * s).sum();
    let bits = window_bits(bases.len());
    assert!((10..=14).contains(&bits), "{bits}");
    check_msm(&bases, &scalars, bits, G1Projective::generator() * log);
}

#[test]
fn scalars_choose_their_bases() {
    let mut rng = rng(13);
    let (bases, _) = points::<G1Affine>(50, &mut rng);
    let values: Vec<_> = (0..200).map(|_| mixed_scalar(&mut rng)).collect();
    let places: Vec<_> = (0..200)
        .map(|_| match rng.gen_range(0..4) {
            0 => NO_BASE,
            _ => rng.gen_range(0..50),
        })
        .collect();
    let expected = values
        .iter()
        .zip(&places)
        .filter(|(_, place)| **place != NO_BASE);
    let expected: G1Projective = expected
        .map(|(value, place)| bases[*place as usize] * value)
        .sum();
    let scalars = Scalars {
        values: &values,
        places: Some(&places),
        is_canonical: false,
    };
    assert_eq!(G1Affine::msm(&bases, &scalars, 7).unwrap(), expected);
}

/// Includes the case in which the tiles' totals are more than a tile.
#[test]
fn scans_agree_with_running_sums() {
    let mut rng = rng(16);
    for len in [0, 1, 7, 2048, 2049, 9_000_000] {
        let words: Vec<u32> = (0..len).map(|_| rng.gen_range(0..9)).collect();
        let mut sums = words.clone();
        assert_eq!(scan(&mut sums), 0);
        let mut before = 0;
        for (sum, word) in sums.iter().zip(&words) {
            assert_eq!(*sum, before);
            before += word;
        }
    }
}

#[test]
fn refuses_windows_out_of_range() {
    let scalars = Scalars {
        values: &[],
        places: None,
        is_canonical: false,
    };
    for bits in [3, 19] {
        assert!(G1Affine::msm(&[], &scalars, bits).is_none());
    }
}

/// Covers all numbers of digits of a thread, and more than the greatest.
#[test]
fn fewer_scalars_need_no_more_scratch() {
    assert!(scratch_grows(400_000, 4));
    assert!(scratch_grows(1_500_000, 17));
}

#[test]
fn windows_grow_with_the_number_of_scalars() {
    assert_eq!([0, 44_000, 1 << 22].map(window_bits), [4, 12, 17]);
}

/// A query, the witness's bits, and the expected selection.
struct Case {
    mask: Vec<u64>,
    ranks: Vec<u32>,
    bits: Vec<u64>,
    /// The query's base of each bit that is set, or `None` outside of it.
    bases: Vec<Option<u32>>,
    bases_total: u32,
}

fn case(words: usize, before: u32, is_masked: bool, rng: &mut ChaCha8Rng) -> Case {
    let mut word = || match rng.gen_range(0..4) {
        0 => 0,
        1 => u64::MAX,
        _ => rng.r#gen::<u64>(),
    };
    let mask: Vec<u64> = (0..words)
        .map(|_| if is_masked { word() } else { u64::MAX })
        .collect();
    let bits: Vec<u64> = (0..words).map(|_| word()).collect();
    let (mut base, mut ranks, mut bases) = (before, vec![], vec![]);
    for (mask, bits) in mask.iter().zip(&bits) {
        ranks.push(base - before);
        for bit in 0..64 {
            let in_query = mask >> bit & 1 == 1;
            if bits >> bit & 1 == 1 {
                bases.push(in_query.then_some(base));
            }
            base += u32::from(in_query);
        }
    }
    Case {
        mask,
        ranks,
        bits,
        bases,
        bases_total: base,
    }
}

fn sum_agrees<P: Point>(words: usize) {
    let mut rng = rng(14);
    for (before, is_masked) in [(0, false), (0, true), (7, true), (3, false)] {
        let case = case(words, before, is_masked, &mut rng);
        let all = mixed_points::<P>(case.bases_total as usize, &mut rng);
        let total = case.bases_total;
        // The whole query, and pieces of it that begin and end within words.
        for (first, end) in [
            (0, total),
            (total / 3, total - total / 4),
            (total / 2, total / 2),
        ] {
            let query = Query {
                mask: is_masked.then_some((&case.mask[..], &case.ranks[..])),
                before,
                first_base: first,
                num_bases: end - first,
            };
            let in_memory = |base: &Option<u32>| base.filter(|base| (first..end).contains(base));
            let selected = case.bases.iter().filter_map(in_memory);
            let expected: P::Curve = selected.map(|base| all[base as usize].to_curve()).sum();
            let bases = &all[first as usize..end as usize];
            let sum = P::sum(bases, &query, &case.bits).unwrap();
            assert!(sum == expected, "{words} words, {first}..{end} of {total}");
            let ranks = ranks(&case.bits);
            let places = wide_bases(&query, &case.bits, &ranks).unwrap();
            let place = |base: &Option<u32>| in_memory(base).map_or(NO_BASE, |base| base - first);
            let expected: Vec<_> = case.bases.iter().map(place).collect();
            assert_eq!(places, expected);
        }
    }
}

/// Returns the number of bits before each word.
fn ranks(words: &[u64]) -> Vec<u32> {
    let counts = words.iter().scan(0, |sum, word| {
        let before = *sum;
        *sum += word.count_ones();
        Some(before)
    });
    counts.collect()
}

#[test]
fn sum_g1_agrees_with_naive() {
    for words in [0, 1, 2, 40, 300] {
        sum_agrees::<G1Affine>(words);
    }
}

#[test]
fn sum_g2_agrees_with_naive() {
    for words in [0, 1, 20] {
        sum_agrees::<G2Affine>(words);
    }
}

fn decode_agrees<P>(encode: impl Fn(&P) -> Vec<u8>)
where
    P: Point + PartialEq,
{
    let points = mixed_points::<P>(300, &mut rng(15));
    let bytes: Vec<u8> = points.iter().flat_map(&encode).collect();
    let (decoded, bad) = P::decode(&bytes).unwrap();
    assert!(decoded == points && bad.is_none());
    // A compressed point, the other root's flag, a false infinity, a coordinate too
    // large, and a point off the curve.
    let whole = |mut bytes: Vec<u8>, at: usize, value: u8| {
        bytes[at] = value;
        bytes
    };
    let one = encode(&P::generator());
    let last = one.len() - 1;
    let broken = [
        whole(one.clone(), 0, one[0] | 0x80),
        whole(one.clone(), 0, one[0] | 0x20),
        whole(one.clone(), 0, one[0] | 0x40),
        whole(one.clone(), 0, 0x1f),
        whole(one.clone(), last, one[last] ^ 1),
    ];
    for one in broken {
        let mut bytes = bytes.clone();
        bytes.extend(&one);
        bytes.extend(&one);
        assert_eq!(P::decode(&bytes).unwrap().1, Some(300));
    }
}

#[test]
fn decodes_what_files_hold() {
    decode_agrees::<G1Affine>(|p| p.to_uncompressed().as_ref().to_vec());
    decode_agrees::<G2Affine>(|p| p.to_uncompressed().as_ref().to_vec());
}
