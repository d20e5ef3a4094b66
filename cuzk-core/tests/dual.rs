//! The dual backend: a device and the CPU prove the same partition with the
//! same randomness; a, b, h and the five sums are equal, and the proofs are, byte
//! for byte.
//!
//! On a double of a device everywhere; on a card where there is one.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what fails in a test fails the test"
)]

mod common;

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use blstrs::Scalar;
use cuzk_bounded::BoundedJoin;
use cuzk_core::circuits;
use cuzk_core::config::Devices;
use cuzk_core::job::JobOptions;
use cuzk_core::pipeline::{Partition, SynthesisResources, prove_start, synthesize_partition};
use cuzk_core::timeline::{Span, Stage, Timeline, Trace};
use cuzk_core::{Engine, Error};
use cuzk_filecoin::{CircuitId, ProofKind, SectorSize, Statement, decode};
use cuzk_groth16::Circuit;
use cuzk_groth16::backend::footprint::buffer_bytes;
use cuzk_groth16::backend::{
    Backend, BackendError, CpuBackend, CudaBackend, Device, Evaluation, HostBG2, Randomness,
    Scaling, SynthesisShare, Synthesized,
};
use cuzk_groth16::memory::buffer_pool;
use cuzk_groth16::params::{LoadedParams, ParamCache, Shapes};
use cuzk_kernels::Isa;
use cuzk_kernels::msm::{g1_stream, g2_bucket_bytes, g2_stream};
use cuzk_kernels::ntt::Domain;
use cuzk_kernels::quotient::quotient;
use cuzk_memory::Checkpoint;
use cuzk_memory::Dealloc;
use cuzk_pce::Density;
use supraseal_sys::device::{
    BG2, CircuitShape, DeviceOptions, DevicePlan, DeviceProver, DeviceSums, Intermediates, Queries,
    device_count,
};
use supraseal_sys::double::{self, Controls, Fault};
use supraseal_sys::{Code, GpuResources, b_g2_msm_scratch_bytes};

use common::BoundedJob as _;
use common::{tiny, wait_until};

const KIND: ProofKind = ProofKind::WinningPost;

struct Case {
    job: Arc<dyn Statement>,
    circuit: Arc<Circuit>,
    params: Arc<LoadedParams>,
}

impl Case {
    fn new() -> Self {
        Self::of(KIND)
    }

    fn of(kind: ProofKind) -> Self {
        let circuit = common::circuit_with_params(kind);
        let files = cuzk_testing::files(kind);
        let cache = ParamCache::new(common::param_cache());
        Self {
            job: decode(&cuzk_testing::bundled_request(kind)).unwrap().into(),
            params: cache.load(&files, &circuit.query_lengths()).unwrap(),
            circuit,
        }
    }

    /// The tiny circuit under the name of a kind, from a folder that has it.
    fn tiny(kind: ProofKind, folder: &Path) -> Self {
        let circuit = circuits::cached(tiny::id(kind), folder).unwrap();
        Self {
            job: tiny::job(kind, 1),
            params: cuzk_testing::params_of(kind, &circuit, folder),
            circuit: Arc::new(circuit),
        }
    }

    /// A and B are evaluated, or left to the backend.
    fn synthesized(&self, evaluate: bool) -> Synthesized {
        let timeline = Timeline::default();
        self.synthesized_beside(None, evaluate, timeline.trace(0, Some(0)))
    }

    fn synthesized_beside(
        &self,
        throttle: Option<&AtomicI32>,
        evaluate: bool,
        trace: Trace<'_>,
    ) -> Synthesized {
        self.synthesize(throttle, evaluate, Checkpoint::never(), trace)
            .unwrap()
    }

    fn synthesize(
        &self,
        throttle: Option<&AtomicI32>,
        evaluate: bool,
        checkpoint: Checkpoint<'static>,
        trace: Trace<'_>,
    ) -> Result<Synthesized, Error> {
        let pool = &common::config().synthesis.pool().unwrap();
        let buffers = &buffer_pool(Dealloc::Recycle, 0);
        let resources = SynthesisResources {
            throttle,
            checkpoint,
            ..common::synthesis(pool, buffers, Isa::best(), evaluate)
        };
        synthesize_partition(self.partition(Randomness::from_os()), resources, trace)
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

    /// What the kernels of the CPU make of the partition, one by one: no backend is asked.
    fn on_cpu(&self) -> (Intermediates, DeviceSums) {
        let synthesized = self.synthesized(true);
        let Evaluation::Done([a, b]) = synthesized.evaluation else {
            panic!("it is evaluated")
        };
        let (a, b) = (a.to_vec(), b.to_vec());
        let (mut h, mut spoilt) = (a.clone(), b.clone());
        let log_domain = self.circuit.domain_len().trailing_zeros();
        quotient(&Domain::new(log_domain).unwrap(), &mut h, &mut spoilt).unwrap();

        let plain = synthesized.witness.to_plain();
        let densities = self.circuit.densities();
        let (inputs, aux) = (plain.inputs(), plain.aux());
        let chosen = |density: &Density| density.iter().map(|index| aux[index]).collect::<Vec<_>>();
        let of_a = [inputs, &chosen(&densities.a_aux)].concat();
        let b_inputs: Vec<_> = densities
            .b_input
            .iter()
            .map(|index| inputs[index])
            .collect();
        let of_b = [b_inputs, chosen(&densities.b_aux)].concat();
        let params = self.params.mapped();
        let sums = DeviceSums {
            h: g1_stream(&params.h(), &h[..h.len() - 1]).unwrap(),
            l: g1_stream(&params.l(), aux).unwrap(),
            a: g1_stream(&params.a(), &of_a).unwrap(),
            b_g1: g1_stream(&params.b_g1(), &of_b).unwrap(),
            b_g2: g2_stream(&params.b_g2(), &of_b).unwrap(),
        };
        (Intermediates { a, b, h }, sums)
    }

    /// What a device says to a partition that something may hinder.
    fn start(
        &self,
        device: &Arc<dyn Backend>,
        checkpoint: Checkpoint<'static>,
    ) -> Result<(), BackendError> {
        let timeline = Timeline::default();
        let synthesized = Synthesized {
            checkpoint,
            ..self.synthesized(false)
        };
        let trace = timeline.trace(0, Some(0));
        Arc::clone(device).prove_start(synthesized, trace).map(drop)
    }

    /// A proof, verified, and the stages that it went through.
    fn prove(&self, backend: &Arc<dyn Backend>, randomness: Randomness) -> (Vec<u8>, Vec<Stage>) {
        self.prove_with(backend, randomness, !backend.evaluates())
    }

    /// The same; A and B are evaluated, or left to the backend.
    fn prove_with(
        &self,
        backend: &Arc<dyn Backend>,
        randomness: Randomness,
        evaluate: bool,
    ) -> (Vec<u8>, Vec<Stage>) {
        let timeline = Timeline::default();
        let (partition, trace) = (self.partition(randomness), timeline.trace(0, Some(0)));
        let how = (Isa::best(), evaluate);
        let proof = common::proof(partition, &self.params, backend, how, trace);
        let stages = timeline.spans().iter().map(|span| span.stage).collect();
        (proof, stages)
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

/// The MSM in G2 as an engine makes it.
fn kernel() -> HostBG2 {
    HostBG2::Kernel {
        pool: Arc::new(common::config().gpus.pool().unwrap()),
        isa: Isa::best(),
    }
}

/// A double with this much memory.
fn open(controls: &Arc<Controls>, memory_bytes: u64) -> Arc<dyn Backend> {
    let options = options(BG2::Cpu);
    let device = double::open(memory_bytes, &options, resources(), controls).unwrap();
    Arc::new(CudaBackend::new(Arc::new(device), kernel()))
}

/// Compares all that a device computes, and its proofs with each randomness.
fn assert_equal_to_cpu(case: &Case, device: DeviceProver, b_g2: BG2, randomness: &[Randomness]) {
    let device = Arc::new(CudaBackend::new(Arc::new(device), kernel()));
    let (between, sums) = device.inspect(case.synthesized(false)).unwrap();
    let (expected, expected_sums) = case.on_cpu();
    // Not assert_eq: what differs in megabytes is not printed.
    assert!(between.a == expected.a, "A on the witness");
    assert!(between.b == expected.b, "B on the witness");
    assert!(between.h == expected.h, "the quotient");
    assert_eq!(sums, expected_sums);
    let device: Arc<dyn Backend> = device;
    let cpu = cpu();
    for &randomness in randomness {
        let (proof, stages) = case.prove(&device, randomness);
        assert_eq!(proof, case.prove(&cpu, randomness).0);
        for stage in [
            Stage::Staging,
            Stage::LockWait,
            Stage::Device,
            Stage::Quotient,
            Stage::Msm,
            Stage::BG2Wait,
        ] {
            assert!(stages.contains(&stage), "{stages:?}");
        }
        assert_eq!(stages.contains(&Stage::BG2), b_g2 == BG2::Cpu);
    }
}

/// Both forms of randomness, and one of them twice.
fn randomness() -> [Randomness; 3] {
    let scaling = Scaling::new(Scalar::from(0x5eed), Scalar::from(0x0dd5));
    let scaled = Randomness::Scaled(scaling.unwrap());
    [added(0x5eed, 0x0dd5), added(7, 11), scaled]
}

/// The sum in G2 on either side, with all points resident that may be, and with as few.
fn all_options(case: &Case) -> [DeviceOptions; 4] {
    let [cpu, device] = [BG2::Cpu, BG2::Device].map(options);
    let [cpu_streamed, device_streamed] = [cpu, device].map(|options| DeviceOptions {
        memory_bytes: Some(least_bytes(case, &options)),
        ..options
    });
    [cpu, device, cpu_streamed, device_streamed]
}

/// The least memory of a device with which it proves at all: the points are streamed.
fn least_bytes(case: &Case, options: &DeviceOptions) -> u64 {
    let plan = |bytes| {
        let memory_bytes = Some(bytes);
        let options = DeviceOptions {
            memory_bytes,
            ..*options
        };
        CudaBackend::plan(&case.circuit, case.params.mapped(), &options)
    };
    let (mut low, mut high) = (1, 1 << 30);
    while low < high {
        let middle = low + (high - low) / 2;
        match plan(middle) {
            Ok(_) => high = middle,
            Err(_) => low = middle + 1,
        }
    }
    let (resident, all) = (
        plan(low).unwrap().resident_points,
        case.circuit.query_lengths(),
    );
    assert!(resident.h < all.h as u64, "{resident:?}");
    assert!(resident.a < all.a as u64, "{resident:?}");
    low
}

/// The emulated kernels take a quarter of a minute for each proof of a WinningPoSt, and a quarter of
/// that for one of a WindowPoSt. They do not know its randomness, so the smaller circuit has the
/// other forms of that. A device that streams has its vectors and sums compared only: the host makes
/// a proof of sums in one way. `.ci/nightly differential` has all kinds.
#[test]
fn a_double_proves_what_the_cpu_proves() {
    let [winning, window] = [KIND, ProofKind::WindowPost].map(Case::of);
    let [cpu, _, _, device_streamed] = all_options(&winning);
    let randomness = randomness();
    for (case, options, randomness) in [
        (&winning, cpu, &randomness[2..]),
        (&winning, device_streamed, &randomness[..0]),
        (&window, cpu, &randomness[..2]),
    ] {
        let controls = Controls::new().unwrap();
        let memory_bytes = options.memory_bytes.unwrap_or(1 << 30);
        let device = double::open(memory_bytes, &options, resources(), &controls).unwrap();
        assert_equal_to_cpu(case, device, options.b_g2, randomness);
    }
}

/// The MSM in G2 is the same wherever it is made, and the throttle is down afterwards.
#[test]
fn every_msm_in_g2_makes_the_same_proof() {
    let folder = tempfile::tempdir().unwrap();
    tiny::config(folder.path());
    let case = Case::tiny(ProofKind::Porep, folder.path());
    let expected = case.prove(&cpu(), added(5, 6)).0;
    for (b_g2, host) in [
        (BG2::Cpu, kernel()),
        (BG2::Cpu, HostBG2::Cpp { threads: 2 }),
        (BG2::Device, HostBG2::Absent),
        (BG2::Device, kernel()),
    ] {
        let (controls, resources) = (Controls::new().unwrap(), resources());
        let opened = double::open(1 << 28, &options(b_g2), Arc::clone(&resources), &controls);
        let is_kernel = matches!(host, HostBG2::Kernel { .. });
        let device = Arc::new(CudaBackend::new(Arc::new(opened.unwrap()), host));
        let (proof, stages) = case.prove(&(device as Arc<dyn Backend>), added(5, 6));
        assert_eq!(proof, expected, "{b_g2:?}");
        let on_kernel = is_kernel && b_g2 == BG2::Cpu;
        assert_eq!(stages.contains(&Stage::BG2), on_kernel, "{b_g2:?}");
        assert_eq!(resources.throttle().load(Ordering::Acquire), 0);
    }
}

/// A device that fails stops the MSM beside it, and waits for its end: nothing of the
/// partition is left.
#[test]
fn a_failing_device_leaves_no_msm_in_g2() {
    let folder = tempfile::tempdir().unwrap();
    tiny::config(folder.path());
    let case = Case::tiny(ProofKind::Porep, folder.path());
    let controls = Controls::new().unwrap();
    let resources = resources();
    let opened = double::open(
        1 << 28,
        &options(BG2::Cpu),
        Arc::clone(&resources),
        &controls,
    );
    let device = CudaBackend::new(Arc::new(opened.unwrap()), kernel());
    let device: Arc<dyn Backend> = Arc::new(device);
    case.prove(&device, added(1, 2));
    let held = Arc::strong_count(case.params.mapped());
    for call in [20, 40, 60] {
        controls.fail(call, Fault::Error);
        drop(case.start(&device, Checkpoint::never()));
        controls.fail(0, Fault::Nothing);
        assert_eq!(Arc::strong_count(case.params.mapped()), held);
        assert_eq!(resources.throttle().load(Ordering::Acquire), 0);
    }
}

/// Reports that there is no card, where the test harness does not keep it back. Fails if
/// `CUZK_TEST_CARD` is `required`, as `supraseal-sys/card.sh` sets it.
fn skip(problem: &str) {
    let required = std::env::var_os("CUZK_TEST_CARD");
    assert!(
        required.is_none_or(|value| value != "required"),
        "{problem}"
    );
    let line = format!("skipped, it needs a card: a_card_proves_what_the_cpu_proves ({problem})\n");
    std::io::stderr().write_all(line.as_bytes()).unwrap();
}

#[test]
fn a_card_proves_what_the_cpu_proves() {
    let count = match device_count() {
        Ok(0) => return skip("CUDA shows no device"),
        Ok(count) => count,
        Err(error) => return skip(&error.to_string()),
    };
    let case = Case::new();
    for ordinal in 0..count {
        for options in all_options(&case) {
            let device = DeviceProver::open(ordinal, &options, resources()).unwrap();
            assert_equal_to_cpu(&case, device, options.b_g2, &randomness());
        }
    }
}

/// Who takes vectors and who does not: each makes the same proof of the other's
/// partition.
#[test]
fn what_is_evaluated_or_not_does_not_matter() {
    // The one with fewer rows: the double emulates the kernels.
    let case = Case::of(ProofKind::WindowPost);
    let device = open(&Controls::new().unwrap(), 1 << 30);
    let cpu = cpu();
    assert!(device.evaluates() && !cpu.evaluates());
    let expected = case.prove(&cpu, added(3, 4)).0;
    for (backend, evaluate) in [(&cpu, false), (&device, true)] {
        let (proof, _) = case.prove_with(backend, added(3, 4), evaluate);
        assert_eq!(proof, expected);
    }
}

/// A device computes a and b, the quotient and the MSMs in its own memory: on the host its
/// partition holds the witness, and the MSM in G2 where that is made here.
#[test]
fn a_devices_partition_holds_its_witness_and_no_workspace_of_the_cpu() {
    let circuit = &Case::new().circuit;
    let device = |host| {
        let options = options(BG2::Cpu);
        let controls = Controls::new().unwrap();
        let device = double::open(1 << 30, &options, resources(), &controls).unwrap();
        CudaBackend::new(Arc::new(device), host)
    };
    let footprint = |backend: &dyn Backend, evaluates| {
        let share = SynthesisShare {
            threads: 2,
            evaluates,
        };
        backend.footprint(circuit, &Shapes::default(), share)
    };
    let [alone, with_b_g2, with_cpp] =
        [HostBG2::Absent, kernel(), HostBG2::Cpp { threads: 2 }].map(device);
    let on_cpu = footprint(&*cpu(), true);
    let vectors_bytes = buffer_bytes(&circuit.sizes());
    let workspace_bytes = on_cpu.peak_bytes - vectors_bytes;
    for backend in [&alone, &with_b_g2, &with_cpp] {
        let held = footprint(backend, false);
        assert!(held.finish_bytes <= held.peak_bytes);
        assert!(held.peak_bytes < workspace_bytes, "{held:?} {on_cpu:?}");
        // Vectors that are made for it on the host are its own.
        let evaluated = footprint(backend, true);
        let more_bytes = evaluated.peak_bytes - held.peak_bytes;
        assert_eq!(more_bytes, vectors_bytes / 3 * 2);
    }
    let wide = circuit.wide().in_b;
    let cpp_bytes = b_g2_msm_scratch_bytes(wide, 2).total();
    let threads = common::config().gpus.gpu_threads;
    let kernel_bytes = g2_bucket_bytes(Isa::best(), wide, threads);
    for (backend, least_bytes) in [(&with_cpp, cpp_bytes), (&with_b_g2, kernel_bytes)] {
        let more_bytes = footprint(backend, false).peak_bytes - footprint(&alone, false).peak_bytes;
        assert!(
            more_bytes > least_bytes as u64,
            "{more_bytes} {least_bytes}"
        );
    }
}

/// A device that fails fails its partition; the process lives.
#[test]
fn a_failing_device_fails_its_partition() {
    let case = Case::new();
    let controls = Controls::new().unwrap();
    let device = open(&controls, 1 << 30);
    controls.fail(40, Fault::Sticky);
    let timeline = Timeline::default();
    for _ in 0..2 {
        let trace = timeline.trace(0, Some(0));
        let failed = prove_start(&device, case.synthesized(false), 0, trace);
        assert!(failed.is_err_and(|error| error.to_string().contains("device lost")));
    }
}

/// Counts how often it is asked, and stops once it is told to.
#[derive(Default)]
struct Waits {
    asked: AtomicUsize,
    stops: AtomicBool,
}

impl Waits {
    fn checkpoint(self: &Arc<Self>) -> Checkpoint<'static> {
        let waits = Arc::clone(self);
        Checkpoint::asking(move || {
            waits.asked.fetch_add(1, Ordering::Relaxed);
            waits.stops.load(Ordering::Relaxed)
        })
    }
}

/// While a circuit is made for a device another one is, and proved; partitions of the
/// same wait, as long as they are wanted.
#[test]
fn the_making_of_a_circuit_holds_up_its_own_partitions() {
    let folder = tempfile::tempdir().unwrap();
    tiny::config(folder.path());
    let kinds = [ProofKind::Porep, ProofKind::WindowPost];
    let [slow, other] = kinds.map(|kind| Case::tiny(kind, folder.path()));
    let controls = Controls::new().unwrap();
    let device = open(&controls, 1 << 28);
    let waits = Arc::new(Waits::default());
    let proofs = thread::scope(|scope| {
        // Released before the threads are joined, however this ends.
        let held = controls.hold_making();
        let slow_one = scope.spawn(|| slow.prove(&device, added(1, 2)).0);
        wait_until("it is made", || controls.seen().making_is_held);
        let other_one = scope.spawn(|| other.prove(&device, added(3, 4)).0);
        wait_until("the other is proved", || other_one.is_finished());
        let waiting = scope.spawn(|| slow.start(&device, waits.checkpoint()));
        wait_until("it waits", || waits.asked.load(Ordering::Relaxed) > 0);
        waits.stops.store(true, Ordering::Relaxed);
        wait_until("it has left", || waiting.is_finished());
        let left = waiting.join_bounded().unwrap();
        assert!(matches!(left, Err(BackendError::Stopped)), "{left:?}");
        assert!(!slow_one.is_finished());
        drop(held);
        [slow_one, other_one].map(|proof| proof.join_bounded().unwrap())
    });
    let cpu = cpu();
    let expected = [
        slow.prove(&cpu, added(1, 2)).0,
        other.prove(&cpu, added(3, 4)).0,
    ];
    assert_eq!(proofs, expected);
}

/// Nothing of a circuit that is too large for a device stays there, and each of its
/// partitions tries again.
#[test]
fn a_circuit_that_cannot_be_made_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    tiny::config(folder.path());
    let case = Case::tiny(ProofKind::Porep, folder.path());
    let device = open(&Controls::new().unwrap(), 1 << 12);
    let held = || {
        let params = Arc::strong_count(case.params.mapped());
        (Arc::strong_count(&case.circuit), params)
    };
    let before = held();
    for _ in 0..3 {
        let failed = case.start(&device, Checkpoint::never()).unwrap_err();
        let BackendError::Native(status) = failed else {
            panic!("{failed}")
        };
        assert_eq!(status.code(), Code::CircuitTooLarge, "{status}");
        assert_eq!(held(), before);
    }
}

/// The doubles that these control, beside each other.
fn devices(doubles: &[Arc<Controls>]) -> Vec<Device> {
    let machine = GpuResources::new().unwrap();
    let device = |controls: &Arc<Controls>| {
        let resources = Arc::new(machine.beside().unwrap());
        let opened = double::open(
            1 << 28,
            &options(BG2::Auto),
            Arc::clone(&resources),
            controls,
        );
        let backend = Arc::new(CudaBackend::new(Arc::new(opened.unwrap()), kernel()));
        Device { resources, backend }
    };
    doubles.iter().map(device).collect()
}

/// An engine on these, with the tiny circuit.
fn engine_of(devices: Vec<Device>, folder: &Path) -> Engine {
    let mut config = tiny::config(folder);
    config.gpus.devices = Devices::Auto;
    let pool = Arc::new(config.synthesis.pool().unwrap());
    Engine::start_on(config, pool, devices).unwrap()
}

/// The same on doubles.
fn engine_on(doubles: &[Arc<Controls>], folder: &Path) -> Engine {
    engine_of(devices(doubles), folder)
}

fn faults(engine: &Engine) -> u64 {
    let devices = engine.status().devices;
    devices.iter().map(|device| device.faults).sum()
}

fn prove_jobs(engine: &Engine, jobs: usize) {
    let submit = |_| {
        let job = tiny::job(ProofKind::Porep, 3);
        engine.submit_job(job, JobOptions::default()).unwrap()
    };
    let handles: Vec<_> = (0..jobs).map(submit).collect();
    for handle in handles {
        handle.wait_bounded().unwrap();
    }
}

/// Two devices share the work, and nobody evaluates on the CPU for them. When one
/// is lost the other has its partitions, and when both are the CPU.
#[test]
fn an_engine_proves_on_several_devices_and_without_them() {
    let folder = tempfile::tempdir().unwrap();
    let doubles = [Controls::new().unwrap(), Controls::new().unwrap()];
    let engine = engine_on(&doubles, folder.path());
    prove_jobs(&engine, 12);
    let spans = engine.timeline().spans();
    let ran_on = |device: usize| {
        let region = |span: &&Span| span.stage == Stage::Device && span.device == Some(device);
        spans.iter().filter(region).count()
    };
    assert!(
        ran_on(0) > 0 && ran_on(1) > 0,
        "{} and {}",
        ran_on(0),
        ran_on(1)
    );
    assert_eq!(ran_on(0) + ran_on(1), 36);
    assert!(spans.iter().all(|span| span.stage != Stage::Evaluate));
    for lost in &doubles {
        lost.fail(1, Fault::Sticky);
        prove_jobs(&engine, 8);
    }
    let spans = engine.timeline().spans();
    assert!(spans.iter().any(|span| span.stage == Stage::Evaluate));
    engine.shutdown();
}

/// A device is busy while its lock is held, and no longer: adding up the results of
/// one partition overlaps with the next one's region, and is not counted.
#[test]
fn the_regions_of_a_device_do_not_overlap() {
    let folder = tempfile::tempdir().unwrap();
    let engine = engine_on(&[Controls::new().unwrap()], folder.path());
    prove_jobs(&engine, 12);
    let spans = engine.timeline().spans();
    engine.shutdown();
    let of_device = spans.iter().filter(|span| span.stage == Stage::Device);
    let mut regions: Vec<_> = of_device.map(|span| (span.start, span.end)).collect();
    regions.sort();
    assert_eq!(regions.len(), 36);
    for pair in regions.windows(2) {
        assert!(pair[0].1 <= pair[1].0, "{pair:?}");
    }
}

/// The witness gives way to the sum in G2, whoever evaluates.
#[test]
fn a_witness_stands_aside() {
    let case = Case::new();
    let raised = AtomicI32::new(1);
    for evaluate in [false, true] {
        let timeline = Timeline::default();
        case.synthesized_beside(Some(&raised), evaluate, timeline.trace(0, Some(0)));
        let spans = timeline.spans();
        let witness = spans.iter().find(|span| span.stage == Stage::Witness);
        let bound = cuzk_memory::wait_max(case.circuit.program().rows());
        assert!(witness.unwrap().stood_aside.unwrap() >= bound);
    }
}

/// The witness is stopped where it stands: a whole one of a large sector takes seconds.
#[test]
fn a_witness_stops_at_its_next_piece() {
    let case = Case::new();
    let timeline = Timeline::default();
    let asks = |goes_on: usize| {
        let asked = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&asked);
        let is_over = move || counted.fetch_add(1, Ordering::Relaxed) >= goes_on;
        let checkpoint = Checkpoint::asking(is_over);
        let trace = timeline.trace(0, Some(0));
        let synthesized = case.synthesize(None, false, checkpoint, trace);
        (synthesized, asked.load(Ordering::Relaxed))
    };
    let (whole, all) = asks(usize::MAX);
    whole.unwrap();
    // Of 66 paths eight go together.
    assert!(all >= 66 / 8, "asked {all} times");
    for goes_on in [0, 1, all / 2] {
        let (stopped, _) = asks(goes_on);
        assert!(matches!(stopped, Err(Error::Stopped)));
    }
}

/// A PoRep's partition reaches a device in a few megabytes, as its circuit's shape
/// says: a, b, c and the witness as scalars would be 344 MB.
#[test]
fn a_porep_goes_up_in_five_megabytes() {
    let id = CircuitId {
        kind: ProofKind::Porep,
        sector_size: SectorSize::KiB2,
    };
    let circuit = circuits::compile(id).unwrap();
    let program = circuit.program();
    let count = |len: usize| u32::try_from(len).unwrap();
    let queries = circuit.query_lengths();
    let shape = CircuitShape {
        log_domain: circuit.domain_len().trailing_zeros(),
        rows: count(program.rows()),
        num_inputs: count(program.num_inputs()),
        num_aux: count(program.num_aux()),
        max_wide: count(circuit.wide().all),
        num_b_inputs: count(circuit.densities().b_input.iter().count()),
        // None of the rest goes up with a partition.
        num_coefficients: 0,
        num_parts: 0,
        num_items: 0,
        num_shapes: 0,
        num_unit_rows: 0,
        num_references: 0,
        num_points: Queries {
            h: queries.h as u64,
            l: queries.l as u64,
            a: queries.a as u64,
            b_g1: queries.b as u64,
            b_g2: queries.b as u64,
        },
    };
    let plenty = DeviceOptions {
        memory_bytes: Some(1 << 40),
        ..options(BG2::Auto)
    };
    let bytes = DevicePlan::new(&shape, &plenty).unwrap().witness_bytes;
    // The vectors a, b and c and the witness, in scalars.
    let scalars = 3 * program.rows() + program.num_inputs() + program.num_aux();
    let plain_bytes = scalars * size_of::<Scalar>();
    println!("a PoRep of 2 KiB goes up in {bytes} bytes; as scalars it has {plain_bytes}");
    assert!(bytes < 5_000_000, "{bytes}");
    assert!(bytes > count(program.num_aux() / 4).into(), "{bytes}");
}

/// A job that is cancelled while its partitions are on a device leaves the device
/// to the others.
#[test]
fn a_cancelled_job_leaves_its_device_to_others() {
    let folder = tempfile::tempdir().unwrap();
    let doubles = [Controls::new().unwrap()];
    let engine = engine_on(&doubles, folder.path());
    prove_jobs(&engine, 1);
    for _ in 0..20 {
        let job = tiny::job(ProofKind::Porep, 4);
        let job = engine.submit_job(job, JobOptions::default()).unwrap();
        thread::sleep(Duration::from_millis(3));
        job.cancel();
        drop(job.wait_bounded());
    }
    prove_jobs(&engine, 2);
    assert_eq!(faults(&engine), 0);
    engine.shutdown();
}

/// Somebody else has the device's lock, for as long as they like.
#[test]
fn a_cancelled_job_leaves_the_wait_for_its_device() {
    let folder = tempfile::tempdir().unwrap();
    let controls = Controls::new().unwrap();
    let devices = devices(std::slice::from_ref(&controls));
    let resources = Arc::clone(&devices[0].resources);
    let engine = engine_of(devices, folder.path());
    prove_jobs(&engine, 1);
    let held = resources.lock_gpu().unwrap();
    let uploaded = controls.seen().uploaded_bytes;
    let job = common::submit(&engine, tiny::job(ProofKind::Porep, 4));
    wait_until("a witness is there", || {
        controls.seen().uploaded_bytes > uploaded
    });
    assert!(job.cancel());
    wait_until("it has left", || engine.status().partitions_running == 0);
    drop(held);
    prove_jobs(&engine, 2);
    assert_eq!(faults(&engine), 0);
    engine.shutdown();
}
