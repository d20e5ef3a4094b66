//! What a partition is said to need, against what it is seen to use: the peak of a
//! process that proves it, over what the process had before.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what fails in a test fails the test"
)]

mod common;

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use cuzk_bounded::BoundedCommand;
use cuzk_core::Config;
use cuzk_core::Engine;
use cuzk_core::circuits;
use cuzk_core::config::Devices;
use cuzk_core::job::JobOptions;
use cuzk_core::scheduler::priority::Priority;
use cuzk_core::timeline::Timeline;
use cuzk_filecoin::{CircuitId, ProofKind, SectorSize, WitnessContext, decode};
use cuzk_groth16::Circuit;
use cuzk_groth16::backend::footprint::{
    PointsRead, batch_footprint, buffer_bytes, circuit_bytes, partition_bytes, pool_bytes,
};
use cuzk_groth16::backend::{Backend, Batch, CpuBackend};
use cuzk_groth16::memory::buffer_pool;
use cuzk_groth16::params::{ParamCache, Shapes, write_multiples, writing_bytes};
use cuzk_kernels::Isa;
use cuzk_memory::{Checkpoint, Dealloc};
use cuzk_testing::circuit_file;
use rayon::ThreadPoolBuilder;
use supraseal_sys::GpuResources;

use common::BoundedJob as _;

/// Tells the child what to prove.
const KIND: &str = "CUZK_TEST_FOOTPRINT_KIND";

/// Tells the child where the parameters are.
const PARAMS: &str = "CUZK_TEST_FOOTPRINT_PARAMS";

/// Tells the child on how many threads to prove, and with which instructions.
const THREADS: &str = "CUZK_TEST_FOOTPRINT_THREADS";
const ISA: &str = "CUZK_TEST_FOOTPRINT_ISA";

/// Has glibc map each block of 128 KiB and more, and unmap it once it is freed. Otherwise
/// glibc raises the threshold with each larger block freed. Then later blocks fill gaps in the
/// heap, and what a child is seen to use depends on what it did before.
const FIXED_THRESHOLD: (&str, &str) = ("MALLOC_MMAP_THRESHOLD_", "131072");

/// How far the two may be apart, as a part of the smaller one.
const TOLERANCE: f64 = 0.10;

fn anonymous_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let mut lines = status.lines();
    let line = lines.find_map(|line| line.strip_prefix("RssAnon:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB"));
    kib.unwrap().trim().parse::<u64>().unwrap() * 1024
}

/// How a partition is proved.
#[derive(Clone, Copy, Debug)]
struct Manner {
    isa: Isa,
    threads: usize,
}

impl Manner {
    /// As the configuration has it where it says nothing.
    fn usual() -> Self {
        let config = common::config();
        Self {
            isa: config.cpu.isa,
            threads: config.synthesis.threads,
        }
    }

    fn config(self) -> Config {
        let mut config = common::config();
        config.cpu.isa = self.isa;
        config.synthesis.threads = self.threads;
        config.gpus.gpu_threads = self.threads;
        config
    }
}

/// What a partition and its circuit hold that is not mapped from a file.
fn said_bytes(circuit: &Circuit, manner: Manner, shapes: &Shapes) -> u64 {
    let mapped = circuit.program().resident_bytes() as u64;
    let partition = partition_bytes(&circuit.sizes(), &manner.config().cpu_workspace(), shapes);
    partition + circuit_bytes(&circuit.sizes()) - mapped
}

#[test]
#[ignore = "it is the other test's child"]
fn child() {
    let Ok(kind) = std::env::var(KIND) else {
        return;
    };
    let request = cuzk_testing::bundled_request(kind.parse().unwrap());
    let said = |key| std::env::var(key).unwrap();
    let manner = Manner {
        isa: said(ISA).parse().unwrap(),
        threads: said(THREADS).parse().unwrap(),
    };
    let mut config = manner.config();
    config.srs.param_cache = std::env::var_os(PARAMS).unwrap().into();
    config.gpus.devices = Devices::Cpu;
    let engine = Engine::start(config).unwrap();
    let prove = || {
        let options = JobOptions {
            priority: Some(Priority::Normal),
            ..JobOptions::default()
        };
        let job = engine.submit_with(&request, options).unwrap();
        job.wait_bounded().unwrap();
    };
    // Twice, so that what is kept and used again is seen.
    tell_use_of(|| (0..2).for_each(|_| prove()));
}

/// Partitions whose bits are added up together.
const BATCH: usize = 10;

#[test]
#[ignore = "it is another test's child"]
fn child_that_batches() {
    let Ok(kind) = std::env::var(KIND) else {
        return;
    };
    let kind = kind.parse().unwrap();
    let circuit = common::circuit_with_params(kind);
    let params = cuzk_testing::params_of(kind, &circuit, &common::param_cache());
    let statement = decode(&cuzk_testing::bundled_request(kind)).unwrap();
    let pool = Arc::new(common::config().synthesis.pool().unwrap());
    let resources = Arc::new(GpuResources::new().unwrap());
    let backend = CpuBackend::new(resources, Arc::clone(&pool));
    // The densities are charged with the circuit.
    assert!(!circuit.densities().a_aux.is_empty());
    tell_use_of(|| {
        let buffers = buffer_pool(Dealloc::Recycle, u64::MAX);
        let context = WitnessContext {
            memory: &buffers.array_memory(),
            ..Isa::best().into()
        };
        let write = || statement.witness_in(0, context).unwrap();
        let witnesses: Vec<_> = (0..BATCH).map(|_| pool.install(write)).collect();
        let batch = Batch {
            circuit: &circuit,
            params: params.mapped(),
            witnesses: &witnesses,
            with_b_g1: false,
            buffers: &buffers,
            checkpoint: &Checkpoint::never(),
        };
        let sums = backend.sum_bits(&batch, Timeline::default().trace(0, Some(0)));
        assert_eq!(sums.unwrap().len(), BATCH);
    });
}

#[test]
#[ignore = "it is another test's child"]
fn child_that_prepares() {
    let Ok(kind) = std::env::var(KIND) else {
        return;
    };
    let kind = kind.parse().unwrap();
    let circuit = common::circuit_with_params(kind);
    let folder = std::env::var_os(PARAMS).unwrap();
    let files = cuzk_testing::files(kind);
    let loaded = ParamCache::new(folder).load(&files, &circuit.query_lengths());
    let loaded = loaded.unwrap();
    let (program, densities) = (circuit.program(), circuit.densities());
    let limit = (2, 1 << 30);
    let isa = Isa::best().into();
    let write = || write_multiples(loaded.mapped(), program, densities, isa, limit, |_| ());
    // On one thread, as the engine does it.
    let pool = ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    tell_use_of(|| drop(pool.install(write).unwrap()));
}

/// Prints how much memory `work` used at its peak, over what there was before.
fn tell_use_of(work: impl FnOnce()) {
    let before = anonymous_bytes();
    let (peak, over) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                peak.fetch_max(anonymous_bytes(), Ordering::Relaxed);
                thread::sleep(Duration::from_micros(500));
            }
        });
        work();
        over.store(true, Ordering::Relaxed);
    });
    println!("used {}", peak.into_inner() - before);
}

/// What a process of its own is seen to use, with the parameters in a folder.
#[cfg(target_os = "linux")]
fn used_bytes(child: &str, kind: ProofKind, manner: Manner, params: &Path) -> u64 {
    let output = Command::new(std::env::current_exe().unwrap())
        .args([child, "--exact", "--ignored", "--nocapture"])
        .env(KIND, kind.to_string())
        .env(PARAMS, params)
        .env(ISA, manner.isa.to_string())
        .env(THREADS, manner.threads.to_string())
        .env(FIXED_THRESHOLD.0, FIXED_THRESHOLD.1)
        .output_bounded()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let used = text.lines().find_map(|line| line.strip_prefix("used "));
    let used = used.unwrap_or_else(|| panic!("{kind}: {text}"));
    used.parse().unwrap()
}

/// Once, or, since threads do not always meet in their peaks, the median of three
/// times.
#[cfg(target_os = "linux")]
fn check(child: &str, kind: ProofKind, manner: Manner, params: &Path, said: u64) {
    check_with((TOLERANCE, TOLERANCE), child, kind, manner, params, said);
}

/// Returns true if used and said bytes are within two tolerances: for more used than is said, and
/// for more said than is used. Each is a part of the smaller one.
fn is_near((more_used, more_said): (f64, f64), said: u64, used: u64) -> bool {
    let part = |more: u64, less: u64| more.saturating_sub(less) as f64 / less as f64;
    part(used, said) <= more_used && part(said, used) <= more_said
}

#[test]
fn a_tenth_of_the_smaller_one_is_near_and_more_is_not() {
    let is_near = |said, used| is_near((TOLERANCE, TOLERANCE), said, used);
    assert!(is_near(1000, 1100) && is_near(1100, 1000) && is_near(7, 7));
    // A ninth of the smaller one is a tenth of the larger one.
    assert!(!is_near(1000, 1111) && !is_near(1111, 1000) && !is_near(1000, 1101));
}

/// [`check`] with the tolerances of [`is_near`].
#[cfg(target_os = "linux")]
fn check_with(
    tolerances: (f64, f64),
    child: &str,
    kind: ProofKind,
    manner: Manner,
    params: &Path,
    said: u64,
) {
    let is_near = |used| is_near(tolerances, said, used);
    let used_bytes = || used_bytes(child, kind, manner, params);
    let first = used_bytes();
    println!("{kind} {manner:?}: said {said}, used {first}");
    if !is_near(first) {
        let mut used = [first, used_bytes(), used_bytes()];
        used.sort_unstable();
        assert!(
            is_near(used[1]),
            "{kind} {manner:?}: said {said}, used {used:?}"
        );
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_partition_uses_what_it_is_said_to() {
    for kind in ProofKind::ALL {
        check_proving(kind, Manner::usual());
    }
}

#[cfg(target_os = "linux")]
fn check_proving(kind: ProofKind, manner: Manner) {
    let circuit = common::circuit_with_params(kind);
    let said = said_bytes(&circuit, manner, &Shapes::default());
    check("child", kind, manner, &common::param_cache(), said);
}

/// With all instructions, and on more threads than cores.
#[test]
#[cfg(target_os = "linux")]
fn threads_use_what_they_are_said_to() {
    let kind = ProofKind::WindowPost;
    for isa in Isa::all() {
        for threads in [1, 4, 16] {
            check_proving(kind, Manner { isa, threads });
        }
    }
}

/// The bits of several partitions are added up in less than a partition takes.
#[test]
#[cfg(target_os = "linux")]
fn a_batch_uses_what_it_is_said_to() {
    let (kind, manner) = (ProofKind::Porep, Manner::usual());
    let circuit = common::circuit_with_params(kind);
    let workspace = manner.config().cpu_workspace();
    let said = batch_footprint(&circuit.sizes(), &workspace, BATCH).peak_bytes;
    assert!(said < partition_bytes(&circuit.sizes(), &workspace, &Shapes::default()));
    let params = common::param_cache();
    // The footprint adds up the heap of writing a witness and the blocks of the sums, which come
    // one after the other. Blocks of AVX2 are smaller, so the heap is a larger part there.
    let tolerance = (TOLERANCE, 0.15);
    let child = "child_that_batches";
    check_with(tolerance, child, kind, manner, &params, said);
}

/// With multiples of its parameters' points, which other sums are made with.
#[test]
#[cfg(target_os = "linux")]
fn a_prepared_partition_uses_what_it_is_said_to() {
    for kind in [ProofKind::WinningPost, ProofKind::WindowPost] {
        let folder = tempfile::tempdir().unwrap();
        common::copy_params(kind, folder.path());
        if !common::prepare_params(kind, folder.path()) {
            return;
        }
        let shapes = common::shapes(kind, folder.path());
        let circuit = common::circuit_with_params(kind);
        for threads in [2, 16] {
            let manner = Manner {
                threads,
                ..Manner::usual()
            };
            let said = said_bytes(&circuit, manner, &shapes);
            assert_ne!(said, said_bytes(&circuit, manner, &Shapes::default()));
            check("child", kind, manner, folder.path(), said);
        }
    }
}

/// What is charged while multiples are made.
#[test]
#[cfg(target_os = "linux")]
fn making_multiples_uses_what_it_is_said_to() {
    for kind in [ProofKind::WinningPost, ProofKind::WindowPost] {
        let circuit = common::circuit_with_params(kind);
        let Some(isa) = cuzk_kernels::testing::ifma() else {
            return;
        };
        let said = writing_bytes(&circuit, isa).unwrap();
        let folder = tempfile::tempdir().unwrap();
        common::copy_params(kind, folder.path());
        check(
            "child_that_prepares",
            kind,
            Manner::usual(),
            folder.path(),
            said,
        );
    }
}

/// The file of a circuit announces what a partition is charged. So do the rows of a file of the
/// version before, which announces nothing.
#[test]
fn a_file_announces_what_a_partition_is_charged() {
    let workspace = common::config().cpu_workspace();
    for kind in ProofKind::ALL {
        let id = cuzk_testing::id(kind);
        let folder = tempfile::tempdir().unwrap();
        let path = circuits::cache_path(id, folder.path()).unwrap();
        common::circuit_with_params(kind).write(&path).unwrap();
        let circuit = circuits::open(id, folder.path()).unwrap();
        let announced = circuit.announced_sizes().unwrap();
        assert_eq!(announced, circuit.sizes(), "{kind}");
        let charged = |sizes| {
            let partition = partition_bytes(sizes, &workspace, &Shapes::default());
            (partition, circuit_bytes(sizes))
        };
        let earlier = circuit_file::of_earlier_version(&std::fs::read(&path).unwrap());
        std::fs::write(&path, earlier).unwrap();
        let of_earlier = circuits::open(id, folder.path()).unwrap();
        assert_eq!(of_earlier.announced_sizes(), None);
        assert_eq!(charged(&of_earlier.sizes()), charged(&announced), "{kind}");
    }
}

/// However many partitions come after each other, no more is mapped than for one.
#[test]
fn memory_is_recycled() {
    let circuit = common::circuit_with_params(ProofKind::WindowPost);
    let request = cuzk_testing::bundled_request(ProofKind::WindowPost);
    let config = common::config();
    let most = pool_bytes(
        &circuit.sizes(),
        &config.cpu_workspace(),
        &Shapes::default(),
    );
    let engine = Engine::start(config).unwrap();
    let mut mappings = Vec::new();
    for _ in 0..8 {
        engine.submit(&request).unwrap().wait_bounded().unwrap();
        // What is freed in the background is back.
        common::wait_until("all of it is kept", || {
            engine.status().memory.pool_bytes == 0
        });
        let memory = engine.status().memory;
        // The sums' memory as well as the vectors.
        let (vectors, kept) = (buffer_bytes(&circuit.sizes()), memory.kept_bytes);
        assert!(vectors < kept && kept <= most, "{vectors} {kept} {most}");
        mappings.push(memory.mappings);
    }
    // In the end nothing is mapped at all.
    assert!(mappings[0] > 0);
    let late = &mappings[2..];
    assert!(late.iter().all(|count| *count == late[0]), "{mappings:?}");
}

/// Ten partitions of a PoRep of 32 GiB read the points of L, A and B once, and not ten times.
#[test]
#[ignore = "it compiles the circuit of 32 GiB, which takes minutes"]
fn a_batch_of_32_gib_reads_less_and_fits() {
    let id = CircuitId {
        kind: ProofKind::Porep,
        sector_size: SectorSize::GiB32,
    };
    let folder = tempfile::tempdir().unwrap();
    let circuit = circuits::cached(id, folder.path()).unwrap();
    let [alone, in_batch] = [PointsRead::alone, PointsRead::in_batch].map(|read| read(&circuit));
    let workspace = common::config().cpu_workspace();
    let batch = batch_footprint(&circuit.sizes(), &workspace, BATCH).peak_bytes;
    let partition = partition_bytes(&circuit.sizes(), &workspace, &Shapes::default());
    println!("alone {alone:?}, in a batch {in_batch:?}");
    println!(
        "memory: batch {batch}, partition {partition}, {:?}",
        circuit.wide()
    );
    assert!(alone.of_partitions(10) > 400_000_000_000);
    assert!(in_batch.of_partitions(10) * 2 < alone.of_partitions(10));
    assert!(batch < partition);
}
