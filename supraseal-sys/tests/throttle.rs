//! The throttle as another thread sees it: raised while an MSM runs, and until the last
//! of several has ended.

use blstrs::{G2Affine, Scalar};
use cuzk_bounded::BoundedJoin;
use ff::Field;
use group::prime::PrimeCurveAffine;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::{Duration, Instant};
use supraseal_sys::GpuResources;
use supraseal_sys::test_hooks::{Throw, b_g2_msm_on};

fn level(throttle: &AtomicI32) -> i32 {
    throttle.load(Ordering::Acquire)
}

fn wait_for(mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(60), "it never came");
        std::thread::yield_now();
    }
}

/// Returns enough work for a second or so on one thread.
fn long_input() -> (Vec<G2Affine>, Vec<Scalar>) {
    const LEN: usize = 20_000;
    let mut rng = ChaCha8Rng::seed_from_u64(6);
    let scalars = (0..LEN).map(|_| Scalar::random(&mut rng)).collect();
    (vec![G2Affine::generator(); LEN], scalars)
}

#[test]
fn raised_inside_and_lowered_after() {
    let resources = GpuResources::new().unwrap();
    let (bases, scalars) = long_input();
    let done = AtomicBool::new(false);
    let seen = std::thread::scope(|scope| {
        let observer = scope.spawn(|| {
            let mut max = 0;
            wait_for(|| {
                max = max.max(level(resources.throttle()));
                done.load(Ordering::Acquire)
            });
            max
        });
        b_g2_msm_on(1, Throw::Nothing, &resources, &bases, &scalars).unwrap();
        assert_eq!(level(resources.throttle()), 0);
        done.store(true, Ordering::Release);
        observer.join_bounded().unwrap()
    });
    assert_eq!(seen, 1);
}

#[test]
fn the_first_of_two_to_finish_leaves_it_raised() {
    let resources = GpuResources::new().unwrap();
    let (bases, scalars) = long_input();
    std::thread::scope(|scope| {
        let long = scope.spawn(|| b_g2_msm_on(1, Throw::Nothing, &resources, &bases, &scalars));
        wait_for(|| level(resources.throttle()) == 1);
        b_g2_msm_on(1, Throw::Nothing, &resources, &bases[..40], &scalars[..40]).unwrap();
        assert_eq!(level(resources.throttle()), 1);
        assert!(b_g2_msm_on(1, Throw::Int, &resources, &bases[..40], &scalars[..40]).is_err());
        assert_eq!(level(resources.throttle()), 1);
        assert!(
            !long.is_finished(),
            "the long one must still run for this to mean anything"
        );
        long.join_bounded().unwrap().unwrap();
    });
    assert_eq!(level(resources.throttle()), 0);
}
