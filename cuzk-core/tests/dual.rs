//! The dual backend: a device and the CPU prove the same partition with the
//! same randomness, and the proofs are equal, byte for byte.
//!
//! On a double of a device everywhere; on a card where there is one. What lies
//! between (a, b, h and the five sums) is compared one by one by the tests of
//! supraseal-sys. Here two choices of r and s tell the sums apart: π_A and π_B
//! are those over A and over B in G2, and the difference of the two π_C is that
//! over B in G1, which leaves H and L together.
#![allow(clippy::unwrap_used, reason = "what fails in a test fails the test")]

mod common;

use std::sync::Arc;
use std::time::Duration;

use blstrs::Scalar;
use cuzk_core::backend::{Backend, CpuBackend, CudaBackend, Randomness, Scaling, Synthesized};
use cuzk_core::circuit::Circuit;
use cuzk_core::kinds::{Job, ProofKind, decode};
use cuzk_core::memory::buffer::{BufferPool, Dealloc};
use cuzk_core::params::{LoadedParams, ParamCache};
use cuzk_core::pipeline::{SynthesisResources, prove_finish, prove_start, synthesize_partition};
use cuzk_core::timeline::{Stage, Timeline};
use cuzk_kernels::Unhindered;
use supraseal_sys::GpuResources;
use supraseal_sys::device::{BG2, DeviceOptions, DeviceProver, device_count};
use supraseal_sys::double::{self, Controls, Fault};

const KIND: ProofKind = ProofKind::WinningPost;

struct Case {
    job: Box<dyn Job>,
    circuit: Arc<Circuit>,
    params: Arc<LoadedParams>,
}

impl Case {
    fn new() -> Self {
        let circuit = common::circuit_with_params(KIND);
        let files = circuit.id().parameter_files().unwrap();
        let cache = ParamCache::new(common::param_cache());
        Self {
            job: decode(&common::bundled_request(KIND)).unwrap(),
            params: cache.load(&files, &circuit.query_lengths()).unwrap(),
            circuit,
        }
    }

    fn synthesized(&self) -> Synthesized {
        let resources = SynthesisResources {
            pool: &common::config().synthesis.pool().unwrap(),
            buffers: &BufferPool::new(Dealloc::Recycle, 0),
            throttle: None,
            checkpoint: Arc::new(Unhindered),
        };
        let timeline = Timeline::default();
        let (circuit, params) = (Arc::clone(&self.circuit), Arc::clone(self.params.mapped()));
        let trace = timeline.trace(0, Some(0));
        synthesize_partition(&*self.job, 0, circuit, params, resources, trace).unwrap()
    }

    /// A proof, verified, and the stages that it went through.
    fn prove(&self, backend: &Arc<dyn Backend>, randomness: Randomness) -> (Vec<u8>, Vec<Stage>) {
        let timeline = Timeline::default();
        let trace = timeline.trace(0, Some(0));
        let synthesized = Synthesized {
            randomness,
            ..self.synthesized()
        };
        let pending = prove_start(backend, synthesized, 0, trace).unwrap();
        let key = self.params.prepared_key();
        let proof = prove_finish(pending, &**backend, &*self.job, 0, key, trace);
        let stages = timeline.spans().iter().map(|span| span.stage).collect();
        (proof.unwrap().as_bytes().to_vec(), stages)
    }
}

fn added(r: u64, s: u64) -> Randomness {
    Randomness::Added {
        r: Scalar::from(r),
        s: Scalar::from(s),
    }
}

fn cpu() -> Arc<dyn Backend> {
    let pool = Arc::new(common::config().synthesis.pool().unwrap());
    Arc::new(CpuBackend::new(
        Arc::new(GpuResources::new().unwrap()),
        pool,
    ))
}

fn options(b_g2: BG2) -> DeviceOptions {
    DeviceOptions {
        memory_bytes: None,
        workers: 2,
        b_g2,
        stall_limit: Duration::from_secs(600),
    }
}

fn resources() -> Arc<GpuResources> {
    Arc::new(GpuResources::new().unwrap())
}

fn assert_equal_to_cpu(case: &Case, device: DeviceProver) {
    let device: Arc<dyn Backend> = Arc::new(CudaBackend::new(Arc::new(device)));
    let cpu = cpu();
    let scaling = Scaling::new(Scalar::from(0x5eed), Scalar::from(0x0dd5));
    let scaled = Randomness::Scaled(scaling.unwrap());
    for randomness in [added(0x5eed, 0x0dd5), added(7, 11), scaled] {
        let (proof, stages) = case.prove(&device, randomness);
        assert_eq!(proof, case.prove(&cpu, randomness).0);
        for stage in [
            Stage::LockWait,
            Stage::Device,
            Stage::Quotient,
            Stage::Msm,
            Stage::BG2,
        ] {
            assert!(stages.contains(&stage), "{stages:?}");
        }
    }
}

#[test]
fn a_double_proves_what_the_cpu_proves() {
    let case = Case::new();
    for b_g2 in [BG2::Cpu, BG2::Device] {
        let controls = Controls::new().unwrap();
        let options = options(b_g2);
        let device = double::open(1 << 30, &options, resources(), &controls).unwrap();
        assert_equal_to_cpu(&case, device);
    }
}

#[test]
fn a_card_proves_what_the_cpu_proves() {
    let count = match device_count() {
        Ok(0) => return eprintln!("skipped: CUDA shows no device"),
        Ok(count) => count,
        Err(error) => return eprintln!("skipped: {error}"),
    };
    let case = Case::new();
    for ordinal in 0..count {
        for b_g2 in [BG2::Cpu, BG2::Device] {
            let options = options(b_g2);
            let device = DeviceProver::open(ordinal, &options, resources()).unwrap();
            assert_equal_to_cpu(&case, device);
        }
    }
}

/// A device that fails fails its partition, or leaves it to the CPU; the
/// process lives either way.
#[test]
fn a_partition_of_a_failing_device_is_proved_elsewhere() {
    let case = Case::new();
    let controls = Controls::new().unwrap();
    let device = double::open(1 << 30, &options(BG2::Cpu), resources(), &controls).unwrap();
    let device = Arc::new(device);
    controls.fail(40, Fault::Sticky);
    let alone: Arc<dyn Backend> = Arc::new(CudaBackend::new(Arc::clone(&device)));
    let timeline = Timeline::default();
    let failed = prove_start(&alone, case.synthesized(), 0, timeline.trace(0, Some(0)));
    assert!(failed.is_err_and(|error| error.to_string().contains("device lost")));
    let cpu = cpu();
    let backend: Arc<dyn Backend> =
        Arc::new(CudaBackend::new(Arc::clone(&device)).with_elsewhere(Arc::clone(&cpu)));
    assert_eq!(
        case.prove(&backend, added(1, 2)).0,
        case.prove(&cpu, added(1, 2)).0
    );
}
