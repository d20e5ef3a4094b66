//! What the tests that prove share: the bundled requests, and one cache of
//! insecure parameters under the target directory, made when first needed.
#![allow(dead_code, reason = "each test binary uses some of it")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what fails in a test fails the test"
)]

pub(crate) mod bits;
pub(crate) mod device;
pub(crate) mod tiny;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cuzk_bounded::bounded;
use cuzk_core::job::{JobHandle, JobOptions, Outcome};
use cuzk_core::pipeline::{Partition, ProvingResources, SynthesisResources, prove_partition};
use cuzk_core::scheduler::priority::Priority;
use cuzk_core::timeline::Trace;
use cuzk_core::{Config, Engine};
use cuzk_filecoin::{ProofKind, Statement};
use cuzk_groth16::backend::Backend;
use cuzk_groth16::memory::buffer_pool;
use cuzk_groth16::params::{LoadedParams, MappedMultiples, Shapes};
use cuzk_groth16::{Circuit, CircuitForm};
use cuzk_kernels::Isa;
use cuzk_memory::{BufferPool, Checkpoint, Dealloc, ThrottleManner};
use rayon::ThreadPool;

/// A bounded wait for the end of a job.
pub(crate) trait BoundedJob {
    /// As [`JobHandle::wait`], within [`cuzk_bounded::LIMIT`].
    fn wait_bounded(&self) -> Outcome;
}

impl BoundedJob for JobHandle {
    #[track_caller]
    fn wait_bounded(&self) -> Outcome {
        bounded(|| self.wait())
    }
}

/// Shared by all test binaries, and kept between runs.
pub(crate) fn param_cache() -> PathBuf {
    cuzk_testing::param_cache(env!("CARGO_TARGET_TMPDIR"))
}

pub(crate) fn config() -> Config {
    let mut config = Config::default();
    config.srs.param_cache = param_cache();
    // The folder is everybody's, and what is in it is part of what is measured.
    config.srs.multiples = Vec::new();
    config
}

/// The circuit, with its parameters (seed 0) in the cache.
pub(crate) fn circuit_with_params(kind: ProofKind) -> Arc<Circuit> {
    cuzk_testing::circuit_with_params(kind, &param_cache())
}

/// A folder's own copy of the circuit's parameters.
pub(crate) fn copy_params(kind: ProofKind, folder: &Path) {
    cuzk_testing::copy_params(kind, &param_cache(), folder);
}

/// Puts multiples of the bases of a circuit's parameters beside those in a folder.
/// Returns true if this machine has instructions that use them.
#[track_caller]
pub(crate) fn prepare_params(kind: ProofKind, folder: &Path) -> bool {
    cuzk_testing::prepare_params(kind, &param_cache(), folder)
}

/// In which shapes the multiples are that are beside the parameters in a folder.
pub(crate) fn shapes(kind: ProofKind, folder: &Path) -> Shapes {
    let circuit = circuit_with_params(kind);
    let params = cuzk_testing::params_of(kind, &circuit, folder);
    let pool = config().synthesis.pool().unwrap();
    let multiples = params.mapped().multiples(&circuit, Isa::best(), &pool);
    let multiples = multiples.usable();
    multiples.map(MappedMultiples::shapes).unwrap_or_default()
}

/// Returns what synthesis runs with if nothing throttles or stops it.
pub(crate) fn synthesis<'a>(
    pool: &'a ThreadPool,
    buffers: &'a Arc<BufferPool>,
    isa: Isa,
    evaluate: bool,
) -> SynthesisResources<'a> {
    SynthesisResources {
        pool,
        isa,
        buffers,
        throttle: None,
        manner: ThrottleManner::Sleep,
        form: CircuitForm::Compiled,
        evaluate,
        checkpoint: Checkpoint::never(),
    }
}

/// Proves a partition on a backend, with the instructions `isa` in its synthesis, which
/// evaluates A and B or leaves them to the backend. Returns the verified proof.
pub(crate) fn proof(
    partition: Partition<'_>,
    params: &LoadedParams,
    backend: &Arc<dyn Backend>,
    (isa, evaluate): (Isa, bool),
    trace: Trace<'_>,
) -> Vec<u8> {
    let pool = &config().synthesis.pool().unwrap();
    let buffers = &buffer_pool(Dealloc::Recycle, 0);
    let synthesis = synthesis(pool, buffers, isa, evaluate);
    let proving = ProvingResources {
        backend,
        device: 0,
        key: params.prepared_key(),
        pool,
    };
    let proof = prove_partition(partition, synthesis, proving, || (), trace);
    proof.unwrap().as_bytes().to_vec()
}

/// A job of this id.
pub(crate) fn named(id: &str) -> JobOptions {
    JobOptions {
        id: Some(id.to_owned()),
        ..JobOptions::default()
    }
}

/// A job of this priority.
pub(crate) fn urgent(priority: Priority) -> JobOptions {
    JobOptions {
        priority: Some(priority),
        ..JobOptions::default()
    }
}

pub(crate) fn submit(engine: &Engine, job: Arc<dyn Statement>) -> JobHandle {
    engine.submit_job(job, JobOptions::default()).unwrap()
}

/// For what takes moments, unless it never comes.
pub(crate) const MOMENTS: Duration = Duration::from_secs(60);

pub(crate) fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < MOMENTS, "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}
