//! Each C++ exception becomes a status, the throttle is lowered, and the next call
//! works.

use blstrs::{G2Affine, Scalar};
use group::prime::PrimeCurveAffine;
use std::sync::atomic::Ordering;
use supraseal_sys::test_hooks::{self, Throw, b_g2_msm_on};
use supraseal_sys::{Code, GpuResources, naive};

#[test]
fn an_exception_on_a_worker_is_a_status_and_lowers_the_throttle() {
    let resources = GpuResources::new().unwrap();
    let _outer = resources.raise_throttle();
    let bases = vec![G2Affine::generator(); 5000];
    let scalars: Vec<Scalar> = (0..5000u64).map(Scalar::from).collect();
    let thrown = [
        (Throw::RuntimeError, Code::Exception, "thrown by a test"),
        (Throw::BadAlloc, Code::OutOfMemory, "bad_alloc"),
        (Throw::Int, Code::UnknownException, "not a std::exception"),
    ];
    for (throw, code, message) in thrown {
        for threads in [1, 4] {
            let error = b_g2_msm_on(threads, throw, &resources, &bases, &scalars).unwrap_err();
            assert_eq!(error.code(), code);
            assert!(error.message().contains(message), "{error}");
            assert_eq!(resources.throttle().load(Ordering::Acquire), 1);
        }
    }
    let sum = b_g2_msm_on(2, Throw::Nothing, &resources, &bases[..9], &scalars[..9]).unwrap();
    assert_eq!(sum, naive::b_g2_msm(&bases[..9], &scalars[..9]));
}

/// Each caller gets its own exceptions and none of another's. All tasks of the other
/// callers run.
#[test]
fn a_pool_outlives_exceptions_under_concurrent_callers() {
    for threads in 1..=4 {
        // Callers 0 and 3 throw, so four of six count.
        assert_eq!(test_hooks::pool(threads, 6, 200, 17), Ok(4 * 200 * 17));
    }
}

#[test]
fn a_pool_of_an_impossible_size_is_an_error() {
    for threads in [0, 4097, u32::MAX] {
        let error = test_hooks::pool(threads, 1, 1, 1).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        assert!(error.message().contains(&threads.to_string()), "{error}");
    }
}

#[test]
fn what_a_device_waits_for_is_done_at_once() {
    let tasks = 3000;
    let before = test_hooks::pool_at_once(tasks).unwrap();
    assert!(before < tasks, "{before}");
}
