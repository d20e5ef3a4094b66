//! Calls of an engine that are jobs of one pool. A call that waits for the engine must not begin
//! a call that waits for it.

use std::sync::Arc;

use cuzk_core::aggregate::memory_bytes;
use cuzk_core::{Config, Engine, Error};
use cuzk_filecoin::{AggregateRequest, ProofKind};
use cuzk_groth16::aggregate::keys_bytes;
use cuzk_testing::pools::jobs_of_one_thread;
use cuzk_testing::{aggregate_request, folder_with_porep_key, put_srs};
use rayon::ThreadPoolBuilder;

use crate::common::BoundedJob as _;
use crate::common::device::cores;
use crate::common::{self, named, tiny};

const KIND: ProofKind = ProofKind::WindowPost;

/// The calls.
const JOBS: usize = 3;

fn start(config: Config) -> Arc<Engine> {
    common::circuit_with_params(KIND);
    Arc::new(Engine::start(config).unwrap())
}

/// Submits a request in each job, and returns the numbers of the engine's jobs.
fn submitted(
    engine: &Arc<Engine>,
    id: impl Fn(usize) -> String + Send + Sync + 'static,
) -> Vec<u64> {
    let engine = Arc::clone(engine);
    let request = cuzk_testing::bundled_request(KIND);
    jobs_of_one_thread(JOBS, move |job| {
        let job = engine.submit_with(&request, named(&id(job))).unwrap();
        job.wait_bounded().unwrap();
        job.number()
    })
}

/// The first call decides about the id, and decodes before that.
#[test]
fn jobs_of_a_pool_may_submit_one_request() {
    let engine = start(common::config());
    let numbers = submitted(&engine, |_| "a".to_owned());
    assert!(numbers.iter().all(|number| *number == numbers[0]));
}

/// One request at a time is decoded.
#[test]
fn jobs_of_a_pool_may_submit_requests() {
    let mut config = common::config();
    config.synthesis.threads = 1;
    let mut numbers = submitted(&start(config), |job| job.to_string());
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), JOBS);
}

/// The proof of the journal is verified while nobody else may decide about the id.
#[test]
fn jobs_of_a_pool_may_submit_what_the_journal_has() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = common::config();
    config.jobs.journal = Some(folder.path().join("journal"));
    for _ in 0..2 {
        let engine = start(config.clone());
        let numbers = submitted(&engine, |_| "a".to_owned());
        assert!(numbers.iter().all(|number| *number == numbers[0]));
        engine.close();
    }
}

/// There is memory for one of them at a time.
#[test]
fn jobs_of_a_pool_may_aggregate() {
    let folder = folder_with_porep_key(&common::param_cache());
    put_srs(folder.path(), 3, 2);
    let mut config = common::config();
    config.srs.param_cache = folder.path().to_owned();
    let own_bytes = memory_bytes(&config, &aggregate_request(2)).unwrap();
    config.memory.safety_margin_bytes = 1;
    config.memory.critical_reserve_bytes = 0;
    config.memory.total_budget_bytes = own_bytes + keys_bytes(AggregateRequest::PROOFS_MAX) + 1;
    let engine = Arc::new(Engine::start(config).unwrap());
    let aggregate = move |_| engine.aggregate(&aggregate_request(2)).unwrap();
    assert_eq!(jobs_of_one_thread(JOBS, aggregate).len(), JOBS);
}

/// The pool of the caller makes the proofs. A job of it that waited would wait for itself.
#[test]
fn a_job_of_the_engines_own_pool_does_not_wait() {
    common::circuit_with_params(KIND);
    let pool = Arc::new(ThreadPoolBuilder::new().num_threads(1).build().unwrap());
    let devices = vec![cores(&pool)];
    let engine = Engine::start_on(common::config(), Arc::clone(&pool), devices).unwrap();
    let request = cuzk_testing::bundled_request(KIND);
    let job = pool.install(|| {
        let job = engine.submit(&request).unwrap();
        let waited = job.wait_bounded().unwrap_err();
        assert!(matches!(*waited, Error::OwnThread), "{waited}");
        let preloaded = engine.preload(tiny::id(KIND)).unwrap_err();
        assert!(matches!(preloaded, Error::OwnThread), "{preloaded}");
        let aggregated = engine.aggregate(&aggregate_request(2)).unwrap_err();
        assert!(matches!(aggregated, Error::OwnThread), "{aggregated}");
        job
    });
    let proof = job.wait_bounded().unwrap();
    assert_eq!(pool.install(|| job.wait_bounded()).unwrap(), proof);
}
