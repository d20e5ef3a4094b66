//! Jobs of one pool that ask for the same thing. A job that waits for rayon must not begin a
//! job that waits for it.

use std::sync::Arc;

use cuzk_filecoin::ProofKind;
use cuzk_groth16::Circuit;
use cuzk_groth16::params::{GenerateOptions, Outcome, ParamCache};
use cuzk_kernels::Isa;
use cuzk_testing::pools::jobs_of_one_thread;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::{circuit_with_params, param_cache};

const KIND: ProofKind = ProofKind::WindowPost;

/// The jobs that ask.
const JOBS: usize = 3;

/// Returns the circuit as nobody has used it, and a pool of which no job is.
fn unused() -> (Circuit, ThreadPool) {
    circuit_with_params(KIND);
    let pool = ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    (cuzk_testing::circuit(KIND, &param_cache()), pool)
}

/// Checks that all jobs have one value.
fn assert_one<T>(values: &[Arc<T>]) {
    assert_eq!(values.len(), JOBS);
    assert!(values.iter().all(|value| Arc::ptr_eq(value, &values[0])));
}

#[test]
fn jobs_of_a_pool_may_ask_for_one_key() {
    circuit_with_params(KIND);
    for cache in [
        ParamCache::new(param_cache()),
        ParamCache::new(param_cache()).with_threads(2),
    ] {
        let key = move |_| cache.verifying_key(&cuzk_testing::files(KIND)).unwrap();
        assert_one(&jobs_of_one_thread(JOBS, key));
    }
}

#[test]
fn jobs_of_a_pool_may_load_the_same_parameters() {
    let lengths = circuit_with_params(KIND).query_lengths();
    for cache in [
        ParamCache::new(param_cache()),
        ParamCache::new(param_cache()).with_threads(2),
    ] {
        let load = move |_| cache.load(&cuzk_testing::files(KIND), &lengths).unwrap();
        assert_one(&jobs_of_one_thread(JOBS, load));
    }
}

#[test]
fn jobs_of_a_pool_may_ask_for_one_domain() {
    let (circuit, pool) = unused();
    let domain = move |_| circuit.domain(Isa::best(), &pool).unwrap();
    assert_one(&jobs_of_one_thread(JOBS, domain));
}

#[test]
fn jobs_of_a_pool_may_open_the_same_multiples() {
    let (circuit, pool) = unused();
    let params = cuzk_testing::params_of(KIND, &circuit, &param_cache());
    let multiples = move |_| params.mapped().multiples(&circuit, Isa::best(), &pool);
    assert_one(&jobs_of_one_thread(JOBS, multiples));
}

/// Whoever makes parameters has the lock of their file.
#[test]
fn jobs_of_a_pool_may_make_the_same_parameters() {
    let (circuit, folder) = (unused().0, tempfile::tempdir().unwrap());
    let cache = ParamCache::new(folder.path());
    let make = move |_| {
        let (files, options) = (cuzk_testing::files(KIND), GenerateOptions::default());
        // A wait for rayon, between two pieces of work.
        let progress = |_, _| {
            rayon::yield_now();
        };
        let made = cache.ensure_generated(&files, circuit.program(), options, progress);
        made.unwrap()
    };
    let outcomes = jobs_of_one_thread(JOBS, make);
    let made = |outcome: &&Outcome| **outcome == Outcome::Made;
    assert_eq!(outcomes.iter().filter(made).count(), 1, "{outcomes:?}");
}
