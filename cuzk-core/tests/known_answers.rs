//! With the randomness fixed a proof is a function of the request and the
//! parameters. The known answers are bellperson's bytes: ours must be equal,
//! for every kind.
//!
//! The quick kinds are compared with bellperson itself. For the others it takes
//! minutes, so that test is ignored by default; `.ci/nightly` runs it.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what fails in a test fails the test"
)]

mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bellperson::groth16::{Parameters, Proof};
use blstrs::{Bls12, Scalar};

use cuzk_core::pipeline::{
    Partition, ProvingResources, SynthesisResources, prove_partition, synthesize_partition,
};
use cuzk_core::timeline::Timeline;
use cuzk_filecoin::{ProofKind, Statement, decode, decode_partition, decode_reference};
use cuzk_groth16::backend::{
    Backend, BackendError, Batch, CpuBackend, Evaluation, Randomness, Scaling, Synthesized,
};
use cuzk_groth16::memory::buffer_pool;
use cuzk_groth16::params::{LoadedParams, ParamCache, ParamsError, write_multiples};
use cuzk_groth16::verify::VerifiedProof;
use cuzk_groth16::{Circuit, CircuitForm};
use cuzk_kernels::Isa;
use cuzk_memory::{BufferPool, Checkpoint, Dealloc, ThrottleManner};
use cuzk_pce::{PackedBuilder, PackedWitness, Witness, spmv_parallel};
use ff::Field;
use group::Curve;
use rayon::ThreadPool;
use supraseal_sys::GpuResources;

/// The kinds whose proofs take a second or two.
const QUICK: [ProofKind; 2] = [ProofKind::WindowPost, ProofKind::WinningPost];

/// The randomness of the known answers: r and s.
fn randomness() -> [Scalar; 2] {
    [Scalar::from(0x5eed), Scalar::from(0x0dd5)]
}

fn added([r, s]: [Scalar; 2]) -> Randomness {
    Randomness::Added { r, s }
}

/// A kind's statement, circuit and parameters.
struct Case {
    job: Box<dyn Statement>,
    circuit: Arc<Circuit>,
    params: Arc<LoadedParams>,
}

fn synthesis<'a>(
    isa: Isa,
    (resources, pool): (&'a GpuResources, &'a ThreadPool),
    buffers: &'a Arc<BufferPool>,
) -> SynthesisResources<'a> {
    SynthesisResources {
        pool,
        isa,
        buffers,
        throttle: Some(resources.throttle()),
        manner: ThrottleManner::Sleep,
        form: CircuitForm::Compiled,
        evaluate: true,
        checkpoint: Checkpoint::never(),
    }
}

impl Case {
    fn new(kind: ProofKind) -> Self {
        Self::with_params_in(kind, &common::param_cache())
    }

    fn with_params_in(kind: ProofKind, folder: &Path) -> Self {
        let circuit = common::circuit_with_params(kind);
        let files = cuzk_testing::files(kind);
        let cache = ParamCache::new(folder);
        Self {
            job: decode(&cuzk_testing::bundled_request(kind)).unwrap(),
            params: cache.load(&files, &circuit.query_lengths()).unwrap(),
            circuit,
        }
    }

    fn partition(&self, randomness: Randomness) -> Partition<'_> {
        Partition {
            statement: &*self.job,
            index: 0,
            circuit: Arc::clone(&self.circuit),
            params: Arc::clone(self.params.mapped()),
            bit_sums: None,
            randomness,
        }
    }

    fn synthesized(&self, resources: &GpuResources, pool: &ThreadPool) -> Synthesized {
        let buffers = buffer_pool(Dealloc::Recycle, 0);
        let synthesis = synthesis(Isa::best(), (resources, pool), &buffers);
        let trace = Timeline::default();
        let trace = trace.trace(0, Some(0));
        synthesize_partition(self.partition(Randomness::from_os()), synthesis, trace).unwrap()
    }

    fn ours(&self, randomness: Randomness) -> VerifiedProof {
        self.ours_with(Isa::best(), randomness)
    }

    fn ours_with(&self, isa: Isa, randomness: Randomness) -> VerifiedProof {
        let (resources, pool) = resources();
        let backend = CpuBackend::new(Arc::clone(&resources), Arc::clone(&pool));
        let backend: Arc<dyn Backend> = Arc::new(backend.with_isa(isa));
        let timeline = Timeline::default();
        let buffers = buffer_pool(Dealloc::Recycle, 0);
        let proving = ProvingResources {
            backend: &backend,
            device: 0,
            key: self.params.prepared_key(),
            pool: &pool,
        };
        let mut regions = 0;
        let proof = prove_partition(
            self.partition(randomness),
            synthesis(isa, (&resources, &pool), &buffers),
            proving,
            || regions += 1,
            timeline.trace(0, Some(0)),
        );
        assert_eq!(regions, 1);
        proof.unwrap()
    }

    fn bellperson(&self) -> Vec<u8> {
        let path = self.params.mapped().path().to_owned();
        let mapped = Parameters::<Bls12>::build_mapped_parameters(path, false).unwrap();
        let [r, s] = randomness();
        let mut bytes = Vec::new();
        let request = cuzk_testing::bundled_request(self.job.circuit().kind);
        decode_reference(&request)
            .unwrap()
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

/// Stops at one call, and only then. The calls are counted.
fn stop_at(call: usize) -> (Checkpoint<'static>, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let is_it = move || counted.fetch_add(1, Ordering::Relaxed) == call;
    (Checkpoint::asking(is_it), calls)
}

fn known_answer(kind: ProofKind) -> String {
    let answers: BTreeMap<String, String> =
        serde_json::from_str(cuzk_testing::KNOWN_ANSWERS).unwrap();
    answers[&kind.to_string()].clone()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn check_known_answer(kind: ProofKind) {
    assert_eq!(
        hex(Case::new(kind).ours(added(randomness())).as_bytes()),
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
    for kind in QUICK {
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

/// A partition that another machine proves alone has the proof that it has in its job. Its witness
/// decides its proof, and a test of cuzk-filecoin compares those of all kinds:
/// `a_small_partition_is_the_same_alone_as_in_its_job`.
#[test]
fn a_partition_that_is_sent_has_the_known_answer() {
    for kind in QUICK {
        let mut case = Case::new(kind);
        case.job = decode_partition(&case.job.partition_request(0).unwrap()).unwrap();
        let proof = case.ours(added(randomness()));
        assert_eq!(hex(proof.as_bytes()), known_answer(kind), "{kind}");
    }
}

#[test]
fn no_instructions_change_a_proof() {
    for isa in Isa::all() {
        let proof = Case::new(ProofKind::WindowPost).ours_with(isa, added(randomness()));
        assert_eq!(
            hex(proof.as_bytes()),
            known_answer(ProofKind::WindowPost),
            "{isa}"
        );
    }
}

/// The backend takes a∘b for c. It is the plain product with C.
fn check_c(case: &Case, witness: &PackedWitness<Scalar>, [a, b]: [&[Scalar]; 2]) {
    let rows = case.circuit.plain_rows(&Checkpoint::never()).unwrap();
    let c = spmv_parallel(rows.c(), witness.to_plain().values(), None).unwrap();
    let products = a.iter().zip(b).map(|(a, b)| a * b);
    assert!(products.zip(&c).all(|(product, c)| product == *c));
}

/// Both forms of a circuit give one a and one b, and one proof, however they give way.
#[test]
fn no_form_of_the_circuit_changes_a_proof() {
    let case = Case::new(ProofKind::WindowPost);
    let (resources, pool) = resources();
    let buffers = buffer_pool(Dealloc::Serial, 0);
    let timeline = Timeline::default();
    let trace = timeline.trace(0, Some(0));
    let backend = backend(&resources, &pool);
    let mut vectors = Vec::new();
    for form in CircuitForm::ALL {
        for manner in ThrottleManner::ALL {
            let _raised = resources.raise_throttle();
            let with = SynthesisResources {
                form,
                manner,
                ..synthesis(Isa::best(), (&resources, &pool), &buffers)
            };
            let partition = case.partition(added(randomness()));
            let synthesized = synthesize_partition(partition, with, trace).unwrap();
            let Evaluation::Done([a, b]) = &synthesized.evaluation else {
                panic!("it is evaluated")
            };
            check_c(&case, &synthesized.witness, [a, b]);
            vectors.push((a.to_vec(), b.to_vec()));
            let pending = Arc::clone(&backend).prove_start(synthesized, trace);
            let mut proof = Vec::new();
            let finished = pending.unwrap().finish(trace).unwrap();
            finished.write(&mut proof).unwrap();
            assert_eq!(hex(&proof), known_answer(ProofKind::WindowPost), "{form:?}");
        }
    }
    assert!(vectors.windows(2).all(|two| two[0] == two[1]));
}

/// With multiples of the bases the proof is the same. So it is with those of the wide variables
/// only, and with a file that cannot be used.
#[test]
fn multiples_change_no_proof() {
    let folder = tempfile::tempdir().unwrap();
    common::copy_params(ProofKind::WindowPost, folder.path());
    let case = Case::with_params_in(ProofKind::WindowPost, folder.path());
    let params = case.params.mapped();
    let (program, densities) = (case.circuit.program(), case.circuit.densities());
    let write = |limit_bytes| {
        let limits = (2, limit_bytes);
        write_multiples(
            params,
            program,
            densities,
            Isa::best().into(),
            limits,
            |_| (),
        )
    };
    if cuzk_kernels::testing::ifma().is_none() {
        return assert!(matches!(
            write(1 << 30),
            Err(ParamsError::NoMultiples { .. })
        ));
    }
    let prove = || {
        // Opened anew: parameters in use keep what they found.
        let case = Case::with_params_in(ProofKind::WindowPost, folder.path());
        hex(case.ours(added(randomness())).as_bytes())
    };
    // Two rows of all queries take at least twice the room of one row without H, so halving
    // the limit comes to a file without H.
    let mut limit_bytes = 1 << 30;
    let path = loop {
        let written = write(limit_bytes).unwrap();
        assert_eq!(prove(), known_answer(ProofKind::WindowPost));
        if written.rows[0] == 0 {
            break written.path;
        }
        limit_bytes /= 2;
        assert!(limit_bytes > 0, "a file of any size has rows of H");
    };
    std::fs::write(path, "no multiples").unwrap();
    assert_eq!(prove(), known_answer(ProofKind::WindowPost));
}

/// Returns a witness with every third bit turned round. It satisfies nothing.
fn altered(witness: &PackedWitness<Scalar>) -> PackedWitness<Scalar> {
    let (mut values, num_inputs) = witness.to_plain().into_parts();
    let bits = values.iter_mut().skip(num_inputs).step_by(3);
    for bit in bits.filter(|value| **value == Scalar::ZERO || **value == Scalar::ONE) {
        *bit = Scalar::ONE - *bit;
    }
    PackedBuilder::pack(&Witness::new(values, num_inputs).unwrap())
}

/// Bits that were added up together with those of other partitions change no proof.
#[test]
fn the_sums_of_a_batch_change_no_proof() {
    for kind in ProofKind::ALL {
        let case = Case::new(kind);
        let (resources, pool) = resources();
        let backend = backend(&resources, &pool);
        let (timeline, buffers) = (Timeline::default(), buffer_pool(Dealloc::Serial, 0));
        let trace = timeline.trace(0, Some(0));
        let synthesized = case.synthesized(&resources, &pool);
        let own = &synthesized.witness;
        let witnesses = [altered(own), own.clone(), altered(&altered(own))];
        let batch = Batch {
            circuit: &case.circuit,
            params: case.params.mapped(),
            witnesses: &witnesses,
            with_b_g1: true,
            buffers: &buffers,
            checkpoint: &Checkpoint::never(),
        };
        let sums = backend.sum_bits(&batch, trace).unwrap();
        assert_eq!(sums.len(), witnesses.len());
        // The second and the third are of the same witness. A slow kind has the last one.
        let first = if QUICK.contains(&kind) { 1 } else { 2 };
        for bit_sums in &sums[first..] {
            let synthesized = Synthesized {
                bit_sums: Some(bit_sums.clone()),
                randomness: added(randomness()),
                ..case.synthesized(&resources, &pool)
            };
            let pending = Arc::clone(&backend).prove_start(synthesized, trace);
            let mut proof = Vec::new();
            let finished = pending.unwrap().finish(trace).unwrap();
            finished.write(&mut proof).unwrap();
            assert_eq!(hex(&proof), known_answer(kind), "{kind}");
        }
    }
}

/// A scaled proof is the one without randomness, scaled by whoever has that and
/// the key; and the verifier takes both.
#[test]
fn scaling_is_what_anyone_can_do_to_a_proof() {
    let case = Case::new(ProofKind::WindowPost);
    let read = |proof: &VerifiedProof| Proof::<Bls12>::read(&proof.as_bytes()[..]).unwrap();
    let plain = read(&case.ours(added([Scalar::ZERO; 2])));
    let delta = case.params.mapped().vk().delta_g2;
    for (scale, shift) in [(1, 0), (0x5eed, 0), (1, 0x0dd5), (0x5eed, 0x0dd5)] {
        let (scale, shift) = (Scalar::from(scale), Scalar::from(shift));
        let scaling = Scaling::new(scale, shift).unwrap();
        let scaled = read(&case.ours(Randomness::Scaled(scaling)));
        assert_eq!((scaled.a * scale).to_affine(), plain.a);
        let b = plain.b * scale + delta * (scale * shift);
        assert_eq!(scaled.b, b.to_affine());
        assert_eq!(scaled.c, (plain.a * shift + plain.c).to_affine());
    }
    assert!(Scaling::new(Scalar::ZERO, Scalar::ONE).is_none());
}

/// Two proofs of one statement have nothing in common.
#[test]
fn fresh_randomness_is_in_every_point() {
    let case = Case::new(ProofKind::WindowPost);
    let proofs = [(); 2].map(|()| case.ours(Randomness::from_os()));
    let [x, y] = proofs.map(|proof| Proof::<Bls12>::read(&proof.as_bytes()[..]).unwrap());
    assert!(x.a != y.a && x.b != y.b && x.c != y.c);
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
    let prove = |checkpoint: Checkpoint<'static>| {
        let partition = Synthesized {
            checkpoint,
            ..case.synthesized(&resources, &pool)
        };
        Arc::clone(&backend)
            .prove_start(partition, trace)?
            .finish(trace)
    };
    let (counter, calls) = stop_at(usize::MAX);
    prove(counter.clone()).unwrap();
    let calls = calls.load(Ordering::Relaxed);
    for call in [0, 1, calls / 3, calls - calls / 8, calls - 1] {
        let stopped = prove(stop_at(call).0);
        assert!(
            matches!(stopped, Err(BackendError::Stopped)),
            "{call} of {calls}"
        );
    }
    assert_eq!(resources.throttle().load(Ordering::Relaxed), 0);
    prove(counter).unwrap();
}
