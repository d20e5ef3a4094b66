//! The pool's size is set once. There is one test in this binary, because the pool
//! belongs to the process.

use std::thread::available_parallelism;
use supraseal_sys::{Code, gpu_threads, set_gpu_threads};

#[test]
fn the_size_is_set_once() {
    assert_eq!(gpu_threads(), None);
    for threads in [4097, u32::MAX] {
        let error = set_gpu_threads(threads).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        assert!(error.message().contains("gpu_threads"), "{error}");
    }
    assert_eq!(gpu_threads(), None, "a refused size starts nothing");

    let cores = u32::try_from(available_parallelism().unwrap().get()).unwrap();
    let threads = cores + 1;
    set_gpu_threads(threads).unwrap();
    set_gpu_threads(threads).unwrap();
    for other in [0, cores, threads + 1] {
        let error = set_gpu_threads(other).unwrap_err();
        assert_eq!(error.code(), Code::PoolSizeFixed);
        assert!(
            error.message().contains(&format!("with {threads} threads")),
            "{error}"
        );
    }
    assert_eq!(gpu_threads().unwrap().get(), threads);
}
