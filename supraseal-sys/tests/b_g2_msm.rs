//! `b_g2_msm` against its slow twin. Where the twin is too slow, against MSMs that are
//! known from discrete logarithms.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use blstrs::{G2Affine, G2Projective, Scalar};
use ff::Field;
use group::{Curve, Group, prime::PrimeCurveAffine};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::sync::atomic::Ordering;
use supraseal_sys::test_hooks::{Throw, b_g2_msm_on};
use supraseal_sys::{
    Code, GpuResources, b_g2_msm, b_g2_msm_scratch_bytes, gpu_threads, naive, set_gpu_threads,
};

fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

/// Returns `len` points with their logarithms. They are an arithmetic progression, so
/// cheap to compute.
fn points_with_logs(len: usize, rng: &mut ChaCha8Rng) -> (Vec<G2Affine>, Vec<Scalar>) {
    let (start, step) = (Scalar::random(&mut *rng), Scalar::random(&mut *rng));
    let step_point = G2Projective::generator() * step;
    let mut log = start;
    let mut point = G2Projective::generator() * start;
    let (mut points, mut logs) = (Vec::new(), Vec::new());
    for _ in 0..len {
        points.push(point);
        logs.push(log);
        point += step_point;
        log += step;
    }
    let mut affine = vec![G2Affine::identity(); len];
    G2Projective::batch_normalize(&points, &mut affine);
    (affine, logs)
}

/// Returns a scalar: zero, one, minus one, a small or a full one.
fn mixed_scalar(rng: &mut ChaCha8Rng) -> Scalar {
    match rng.gen_range(0..6) {
        0 => Scalar::ZERO,
        1 => Scalar::ONE,
        2 => -Scalar::ONE,
        3 => Scalar::from(rng.gen_range(0..1000u64)),
        4 => -Scalar::from(rng.gen_range(0..1000u64)),
        _ => Scalar::random(rng),
    }
}

/// Asserts the result on pools of 1 to 4 threads, and that the throttle is back at
/// zero.
fn check(bases: &[G2Affine], scalars: &[Scalar], expected: G2Projective, what: &str) {
    let resources = GpuResources::new().unwrap();
    for threads in 1..=4 {
        let sum = b_g2_msm_on(threads, Throw::Nothing, &resources, bases, scalars).unwrap();
        assert_eq!(sum, expected, "{what}, {threads} threads");
        assert_eq!(resources.throttle().load(Ordering::Acquire), 0);
    }
}

fn check_naive(bases: &[G2Affine], scalars: &[Scalar], what: &str) {
    check(bases, scalars, naive::b_g2_msm(bases, scalars), what);
}

#[test]
fn every_small_size_and_some_up_to_3000_agree_with_naive() {
    const LEN: usize = 3000;
    let mut rng = rng(1);
    let (bases, _) = points_with_logs(LEN, &mut rng);
    let scalars: [Vec<Scalar>; 2] = [
        (0..LEN).map(|_| Scalar::random(&mut rng)).collect(),
        (0..LEN).map(|_| mixed_scalar(&mut rng)).collect(),
    ];
    let around = [100, 127, 128, 129, 257, 511, 1000, 1023, 1025, LEN];
    let random: Vec<usize> = (0..3).map(|_| rng.gen_range(70..LEN)).collect();
    for scalars in &scalars {
        // The naive results of all prefixes, for the cost of the longest.
        let mut sums = vec![G2Projective::identity()];
        for (base, scalar) in bases.iter().zip(scalars) {
            sums.push(sums[sums.len() - 1] + naive::g2_mul(base, scalar));
        }
        for &len in (0..70)
            .collect::<Vec<_>>()
            .iter()
            .chain(&around)
            .chain(&random)
        {
            check(
                &bases[..len],
                &scalars[..len],
                sums[len],
                &format!("{len} points"),
            );
        }
    }
}

#[test]
fn constant_scalars() {
    let (bases, _) = points_with_logs(200, &mut rng(2));
    let special = [
        ("zero", Scalar::ZERO),
        ("one", Scalar::ONE),
        ("minus one", -Scalar::ONE),
        ("two", Scalar::from(2)),
        ("2^64 - 1", Scalar::from(u64::MAX)),
        ("half", Scalar::from(2).invert().unwrap()),
    ];
    for (what, scalar) in special {
        for len in [1, 2, 31, 32, 33, 200] {
            check_naive(
                &bases[..len],
                &vec![scalar; len],
                &format!("{len} times {what}"),
            );
        }
    }
}

#[test]
fn infinity_repeated_and_opposite_bases() {
    let mut rng = rng(3);
    let (points, _) = points_with_logs(4, &mut rng);
    let infinity = G2Affine::identity();
    for len in [1, 2, 5, 31, 32, 40, 300] {
        let scalars: Vec<Scalar> = (0..len).map(|_| mixed_scalar(&mut rng)).collect();
        let wide: Vec<Scalar> = (0..len).map(|_| Scalar::random(&mut rng)).collect();
        let kinds: [(&str, Vec<G2Affine>); 4] = [
            ("infinity", vec![infinity; len]),
            ("one point", vec![points[0]; len]),
            (
                "opposites",
                (0..len)
                    .map(|i| if i % 2 == 0 { points[1] } else { -points[1] })
                    .collect(),
            ),
            (
                "few points, opposites and infinity",
                (0..len)
                    .map(|_| match rng.gen_range(0..9) {
                        0 => infinity,
                        i @ 1..=4 => points[i - 1],
                        i => -points[i - 5],
                    })
                    .collect(),
            ),
        ];
        for (what, bases) in kinds {
            check_naive(&bases, &scalars, &format!("{len} of {what}, mixed scalars"));
            check_naive(&bases, &wide, &format!("{len} of {what}, full scalars"));
            check_naive(
                &bases,
                &vec![wide[0]; len],
                &format!("{len} of {what}, one scalar"),
            );
            check_naive(
                &bases,
                &vec![Scalar::ONE; len],
                &format!("{len} of {what}, ones"),
            );
        }
    }
}

/// Long enough for several ranges and slices for each worker, wide windows, and buffers
/// that go to the dealloc thread.
#[test]
fn a_long_sum_with_known_logarithms() {
    let mut rng = rng(4);
    let (bases, logs) = points_with_logs(40_000, &mut rng);
    let full: Vec<Scalar> = logs.iter().map(|_| Scalar::random(&mut rng)).collect();
    let mixed: Vec<Scalar> = logs.iter().map(|_| mixed_scalar(&mut rng)).collect();
    let resources = GpuResources::new().unwrap();
    let freed_before = supraseal_sys::dealloc::stats().cpp.freed;
    for scalars in [full, mixed] {
        let log: Scalar = logs
            .iter()
            .zip(&scalars)
            .map(|(log, scalar)| log * scalar)
            .sum();
        let expected = G2Projective::generator() * log;
        for threads in [1, 3] {
            let sum = b_g2_msm_on(threads, Throw::Nothing, &resources, &bases, &scalars).unwrap();
            assert_eq!(sum, expected);
        }
    }
    supraseal_sys::dealloc::flush();
    assert!(supraseal_sys::dealloc::stats().cpp.freed >= freed_before + 2);
}

#[test]
fn the_process_wide_pool_serves_chunks_and_concurrent_callers() {
    set_gpu_threads(3).unwrap();
    assert_eq!(gpu_threads().unwrap().get(), 3);
    let mut rng = rng(5);
    let (bases, logs) = points_with_logs(2000, &mut rng);
    let scalars: Vec<Scalar> = logs.iter().map(|_| mixed_scalar(&mut rng)).collect();
    let log: Scalar = logs
        .iter()
        .zip(&scalars)
        .map(|(log, scalar)| log * scalar)
        .sum();
    let expected = G2Projective::generator() * log;
    let resources = GpuResources::new().unwrap();
    std::thread::scope(|scope| {
        for chunk_len in [100, 333, 700, 2000] {
            let (resources, bases, scalars) = (&resources, &bases, &scalars);
            scope.spawn(move || {
                let chunks = bases.chunks(chunk_len).zip(scalars.chunks(chunk_len));
                let sum: G2Projective = chunks
                    .map(|(bases, scalars)| b_g2_msm(resources, bases, scalars).unwrap())
                    .sum();
                assert_eq!(sum, expected, "chunks of {chunk_len}");
            });
        }
    });
    assert_eq!(resources.throttle().load(Ordering::Acquire), 0);
}

#[test]
fn different_lengths_are_an_error_that_says_both() {
    set_gpu_threads(3).unwrap();
    let resources = GpuResources::new().unwrap();
    let base = G2Affine::generator();
    for (bases, scalars) in [(0, 1), (1, 0), (3, 2), (2, 3)] {
        let error =
            b_g2_msm(&resources, &vec![base; bases], &vec![Scalar::ONE; scalars]).unwrap_err();
        assert_eq!(error.code(), Code::LengthMismatch);
        let expected = format!("{bases} bases and {scalars} scalars");
        assert!(error.message().contains(&expected), "{error}");
    }
    assert_eq!(resources.throttle().load(Ordering::Acquire), 0);
}

#[test]
fn scratch_is_bounded_a_thread_and_grows_with_the_scalars() {
    assert_eq!(b_g2_msm_scratch_bytes(0, 32).total(), 0);
    let mut last = b_g2_msm_scratch_bytes(1, 32);
    for log in 1..40 {
        let scratch = b_g2_msm_scratch_bytes(1 << log, 32);
        assert!(scratch.buckets >= last.buckets && scratch.selection > last.selection);
        assert_eq!(scratch.selection, 40 << log);
        assert_eq!(scratch.buckets % (32 * 384), 0);
        last = scratch;
    }
    assert_eq!(last.buckets, 32 * 6 * 1024 * 1024);
    assert_eq!(
        b_g2_msm_scratch_bytes(usize::MAX, u32::MAX).selection,
        usize::MAX
    );
}
