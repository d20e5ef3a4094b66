//! With the randomness fixed a proof is a function of the request and the
//! parameters. The known answers are bellperson's bytes: ours must be equal,
//! for every kind.
//!
//! The quick kinds are compared with bellperson itself. For the others it takes
//! minutes, so that test is ignored by default; continuous integration runs it.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what fails in a test fails the test"
)]

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bellperson::groth16::Parameters;
use blstrs::{Bls12, Scalar};
use cuzk_core::backend::{Backend, BackendError, CpuBackend, Randomness, Synthesized};
use cuzk_core::circuit::Circuit;
use cuzk_core::kinds::{Job, ProofKind, decode};
use cuzk_core::memory::buffer::{BufferPool, Dealloc};
use cuzk_core::params::{LoadedParams, ParamCache};
use cuzk_core::pipeline::{SynthesisResources, prove_finish, prove_start, synthesize_partition};
use cuzk_core::timeline::Timeline;
use cuzk_core::verify::VerifiedProof;
use cuzk_kernels::{Checkpoint, Unhindered};
use rayon::ThreadPool;
use supraseal_sys::GpuResources;

/// The randomness of the known answers.
fn randomness() -> Randomness {
    Randomness {
        r: Scalar::from(0x5eed),
        s: Scalar::from(0x0dd5),
    }
}

/// A kind's statement, circuit and parameters.
struct Case {
    job: Box<dyn Job>,
    circuit: Arc<Circuit>,
    params: Arc<LoadedParams>,
}

impl Case {
    fn new(kind: ProofKind) -> Self {
        let circuit = common::circuit_with_params(kind);
        let files = circuit.id().parameter_files().unwrap();
        let cache = ParamCache::new(common::param_cache());
        Self {
            job: decode(&common::bundled_request(kind)).unwrap(),
            params: cache.load(&files, &circuit.query_lengths()).unwrap(),
            circuit,
        }
    }

    fn synthesized(&self, resources: &GpuResources, pool: &ThreadPool) -> Synthesized {
        synthesize_partition(
            &*self.job,
            0,
            Arc::clone(&self.circuit),
            Arc::clone(self.params.mapped()),
            SynthesisResources {
                pool,
                buffers: &BufferPool::new(Dealloc::Recycle, 0),
                throttle: Some(resources.throttle()),
                checkpoint: Arc::new(Unhindered),
            },
            Timeline::default().trace(0, Some(0)),
        )
        .unwrap()
    }

    fn ours(&self) -> VerifiedProof {
        let (resources, pool) = resources();
        let backend = backend(&resources, &pool);
        let synthesized = self.synthesized(&resources, &pool);
        let timeline = Timeline::default();
        let trace = timeline.trace(0, Some(0));
        let pending = prove_start(&backend, synthesized, 0, trace).unwrap();
        let key = self.params.prepared_key();
        let backend = &*backend;
        prove_finish(pending, backend, &*self.job, 0, key, randomness(), trace).unwrap()
    }

    fn bellperson(&self) -> Vec<u8> {
        let path = self.params.mapped().path().to_owned();
        let mapped = Parameters::<Bls12>::build_mapped_parameters(path, false).unwrap();
        let Randomness { r, s } = randomness();
        let mut bytes = Vec::new();
        self.job
            .reference_proof(0, &mapped, r, s)
            .unwrap()
            .write(&mut bytes)
            .unwrap();
        bytes
    }
}

fn resources() -> (Arc<GpuResources>, Arc<ThreadPool>) {
    let pool = common::config().synthesis.pool().unwrap();
    (Arc::new(GpuResources::new().unwrap()), Arc::new(pool))
}

fn backend(resources: &Arc<GpuResources>, pool: &Arc<ThreadPool>) -> Arc<dyn Backend> {
    Arc::new(CpuBackend::new(Arc::clone(resources), Arc::clone(pool)))
}

/// Says stop at one call, and only then.
struct StopAt {
    call: usize,
    calls: AtomicUsize,
}

impl Checkpoint for StopAt {
    fn pass(&self) -> bool {
        self.calls.fetch_add(1, Ordering::Relaxed) != self.call
    }
}

fn known_answer(kind: ProofKind) -> String {
    let answers: BTreeMap<String, String> =
        serde_json::from_str(include_str!("data/known-answers.json")).unwrap();
    answers[&kind.to_string()].clone()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn check_known_answer(kind: ProofKind) {
    assert_eq!(
        hex(Case::new(kind).ours().as_bytes()),
        known_answer(kind),
        "{kind}"
    );
}

#[test]
fn porep() {
    check_known_answer(ProofKind::Porep);
}

#[test]
fn winning_post() {
    check_known_answer(ProofKind::WinningPost);
}

#[test]
fn window_post() {
    check_known_answer(ProofKind::WindowPost);
}

#[test]
fn snap_deals() {
    check_known_answer(ProofKind::SnapDeals);
}

#[test]
fn the_quick_kinds_are_bellpersons() {
    for kind in [ProofKind::WindowPost, ProofKind::WinningPost] {
        assert_eq!(
            hex(&Case::new(kind).bellperson()),
            known_answer(kind),
            "{kind}"
        );
    }
}

#[test]
#[ignore = "bellperson takes minutes for PoRep and SnapDeals"]
fn the_slow_kinds_are_bellpersons() {
    for kind in [ProofKind::Porep, ProofKind::SnapDeals] {
        assert_eq!(
            hex(&Case::new(kind).bellperson()),
            known_answer(kind),
            "{kind}"
        );
    }
}

/// Wherever a partition is stopped, in the device region or after it, it gives
/// no proof, and what it held is free for the next.
#[test]
fn a_stopped_partition_gives_no_proof() {
    let case = Case::new(ProofKind::WindowPost);
    let (resources, pool) = resources();
    let backend = backend(&resources, &pool);
    let timeline = Timeline::default();
    let trace = timeline.trace(0, Some(0));
    let prove = |checkpoint: Arc<StopAt>| {
        let partition = Synthesized {
            checkpoint,
            ..case.synthesized(&resources, &pool)
        };
        Arc::clone(&backend)
            .prove_start(partition, trace)?
            .finish(randomness(), trace)
    };
    let stop_at = |call| {
        let calls = AtomicUsize::new(0);
        Arc::new(StopAt { call, calls })
    };
    let counter = stop_at(usize::MAX);
    prove(Arc::clone(&counter)).unwrap();
    let calls = counter.calls.load(Ordering::Relaxed);
    for call in [0, 1, calls / 3, calls - calls / 8, calls - 1] {
        let stopped = prove(stop_at(call));
        assert!(
            matches!(stopped, Err(BackendError::Stopped)),
            "{call} of {calls}"
        );
    }
    assert_eq!(resources.throttle().load(Ordering::Relaxed), 0);
    prove(counter).unwrap();
}
