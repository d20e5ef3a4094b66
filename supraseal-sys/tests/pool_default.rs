//! A pool that is used before its size is set has one thread for each core. There is
//! one test in this binary, because the pool belongs to the process.

use blstrs::{G2Affine, G2Projective, Scalar};
use group::{Group, prime::PrimeCurveAffine};
use std::thread::available_parallelism;
use supraseal_sys::{GpuResources, b_g2_msm, gpu_threads, set_gpu_threads};

#[test]
fn the_first_use_starts_a_thread_a_core() {
    assert_eq!(gpu_threads(), None);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let resources = GpuResources::new().unwrap();
                let two = b_g2_msm(&resources, &[G2Affine::generator()], &[Scalar::from(2)]);
                assert_eq!(two, Ok(G2Projective::generator().double()));
            });
        }
    });
    let cores = available_parallelism().unwrap().get();
    assert_eq!(gpu_threads().unwrap().get() as usize, cores);
    set_gpu_threads(0).unwrap();
}
