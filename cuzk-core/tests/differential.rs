//! The kinds, over random sectors. Each kernel of the CPU, a double of a device and bellperson
//! make the same bytes, since the randomness is fixed.
//!
//! An ordinary run has the two quick kinds over one sector each, the same each time.
//! `CUZK_TEST_DIFFERENTIAL` says the number of sectors of all four; see
//! [`cuzk_testing::differential`].
//!
//! A WinningPoSt is compared at 32 GiB, too. The other kinds are not: at that size bellperson's prover
//! needs more memory than a small machine has.
#![allow(clippy::unwrap_used, reason = "a failure in a test fails the test")]

mod common;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bellperson::groth16::Parameters;
use blstrs::{Bls12, Scalar};
use cuzk_core::circuits;
use cuzk_core::pipeline::Partition;
use cuzk_core::timeline::Timeline;
use cuzk_filecoin::{
    CircuitId, ProofKind, ProofRequest, SectorSize, Statement, decode, decode_reference, reference,
    vanilla,
};
use cuzk_groth16::Circuit;
use cuzk_groth16::backend::{Backend, CpuBackend, CudaBackend, HostBG2, Randomness};
use cuzk_groth16::params::{GenerateOptions, LoadedParams, ParamCache};
use cuzk_kernels::Isa;
use cuzk_testing::differential::{again, is_long, seeds};
use cuzk_testing::own_process::{given, run_in_own_process};
use ff::Field;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use rayon::ThreadPool;
use supraseal_sys::GpuResources;
use supraseal_sys::device::{BG2, DeviceOptions};
use supraseal_sys::double::{self, Controls};

/// Memory of the double, in bytes.
const DOUBLE_BYTES: u64 = 1 << 33;

/// A kind's request over a random sector, with its circuit and parameters.
struct Case {
    request: ProofRequest,
    statement: Box<dyn Statement>,
    circuit: Arc<Circuit>,
    params: Arc<LoadedParams>,
    randomness: [Scalar; 2],
    partition: usize,
}

impl Case {
    /// Every other sector is sealed. The others are sparse.
    fn new(kind: ProofKind, seed: u64) -> Self {
        let size = SectorSize::KiB2;
        let request = match seed % 2 {
            0 => vanilla::make(kind, size, seed),
            _ => vanilla::make_sparse(kind, size, seed),
        };
        let circuit = common::circuit_with_params(kind);
        let params = cuzk_testing::params_of(kind, &circuit, &common::param_cache());
        Self::of(request.unwrap(), (circuit, params), seed)
    }

    /// Returns a kind at 32 GiB over a sparse sector. Its parameters are made in `folder`.
    fn of_32_gib(kind: ProofKind, seed: u64, folder: &Path) -> Self {
        let sector_size = SectorSize::GiB32;
        let id = CircuitId { kind, sector_size };
        let circuit = Arc::new(circuits::compile(id).unwrap());
        let (cache, files) = (
            ParamCache::new(folder),
            circuits::parameter_files(id).unwrap(),
        );
        let options = GenerateOptions::default();
        cache
            .ensure_generated(&files, circuit.program(), options, |_, _| ())
            .unwrap();
        let params = cache.load(&files, &circuit.query_lengths()).unwrap();
        let request = vanilla::make_sparse(kind, sector_size, seed).unwrap();
        Self::of(request, (circuit, params), seed)
    }

    /// The seed decides the partition and the randomness.
    fn of(
        request: ProofRequest,
        (circuit, params): (Arc<Circuit>, Arc<LoadedParams>),
        seed: u64,
    ) -> Self {
        let statement = decode(&request).unwrap();
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        Self {
            params,
            partition: usize::try_from(seed % statement.partitions() as u64).unwrap(),
            randomness: [(); 2].map(|()| Scalar::random(&mut random)),
            request,
            statement,
            circuit,
        }
    }

    fn bellperson(&self) -> Vec<u8> {
        let path = self.params.mapped().path().to_owned();
        let mapped = Parameters::<Bls12>::build_mapped_parameters(path, false).unwrap();
        let [r, s] = self.randomness;
        let statement = decode_reference(&self.request).unwrap();
        let proof = statement.reference_proof(self.partition, &mapped, r, s);
        let mut bytes = Vec::new();
        proof.unwrap().write(&mut bytes).unwrap();
        bytes
    }

    /// Returns the verified proof of a backend. The witness is evaluated with `isa`.
    fn ours(&self, backend: &Arc<dyn Backend>, isa: Isa) -> Vec<u8> {
        let [r, s] = self.randomness;
        let partition = Partition {
            statement: &*self.statement,
            index: self.partition,
            circuit: Arc::clone(&self.circuit),
            params: Arc::clone(self.params.mapped()),
            bit_sums: None,
            randomness: Randomness::Added { r, s },
        };
        let timeline = Timeline::default();
        let trace = timeline.trace(0, Some(self.partition));
        let how = (isa, !backend.evaluates());
        common::proof(partition, &self.params, backend, how, trace)
    }
}

/// Returns everything that proves here, by name, with the instructions of the host.
fn backends(pool: &Arc<ThreadPool>) -> Vec<(String, Arc<dyn Backend>, Isa)> {
    let resources = || Arc::new(GpuResources::new().unwrap());
    let mut backends: Vec<_> = Isa::all()
        .into_iter()
        .map(|isa| {
            let backend = CpuBackend::new(resources(), Arc::clone(pool)).with_isa(isa);
            (isa.to_string(), Arc::new(backend) as Arc<dyn Backend>, isa)
        })
        .collect();
    let options = DeviceOptions {
        memory_bytes: None,
        workers: 1,
        b_g2: BG2::Cpu,
        stall_limit: Duration::from_secs(3600),
    };
    let controls = Controls::new().unwrap();
    let device = double::open(DOUBLE_BYTES, &options, resources(), &controls).unwrap();
    let host = HostBG2::Kernel {
        pool: Arc::clone(pool),
        isa: Isa::best(),
    };
    let device = CudaBackend::new(Arc::new(device), host);
    backends.push(("the double".to_owned(), Arc::new(device), Isa::best()));
    backends
}

#[test]
fn every_backend_makes_bellpersons_proofs_of_random_sectors() {
    let pool = Arc::new(common::config().synthesis.pool().unwrap());
    let backends = backends(&pool);
    // bellperson takes half a minute for a PoRep, and the double longer.
    let quick = [ProofKind::WindowPost, ProofKind::WinningPost];
    let kinds = if is_long() {
        &ProofKind::ALL[..]
    } else {
        &quick
    };
    let seeds = seeds(1);
    let count = seeds.end - seeds.start;
    for seed in seeds {
        for &kind in kinds {
            println!("{kind}; {}", again(seed, "--test differential"));
            let case = Case::new(kind, seed);
            let expected = case.bellperson();
            for (name, backend, isa) in &backends {
                let is_slow = backend.evaluates() && kind != ProofKind::WindowPost;
                if is_slow && !is_long() {
                    continue;
                }
                let proof = case.ours(backend, *isa);
                assert!(proof == expected, "{kind} on {name}, seed {seed}");
            }
        }
    }
    println!(
        "{count} sectors of {} kinds, proved on {} backends, have bellperson's proofs",
        kinds.len(),
        backends.len()
    );
}

/// The proof is bellperson's, byte for byte, and the chain's verifier takes it.
#[test]
#[ignore = "it makes the parameters of 32 GiB, which takes minutes"]
fn a_winning_post_of_32_gib_has_bellpersons_proof() {
    let folder = tempfile::tempdir().unwrap();
    let kind = ProofKind::WinningPost;
    let case = Case::of_32_gib(kind, 1, folder.path());
    let pool = Arc::new(common::config().synthesis.pool().unwrap());
    let expected = case.bellperson();
    let backends = backends(&pool);
    for (name, backend, isa) in &backends {
        let proof = case.ours(backend, *isa);
        assert!(proof == expected, "{kind} of 32 GiB on {name}");
    }
    std::fs::write(folder.path().join(REQUEST), case.request.to_json()).unwrap();
    std::fs::write(folder.path().join(PROOF), &expected).unwrap();
    let cache = ("FIL_PROOFS_PARAMETER_CACHE", folder.path().as_os_str());
    run_in_own_process("child_that_verifies", folder.path(), &[cache]);
    println!(
        "{kind} of 32 GiB: {} rows, proved on {} backends, have bellperson's proof, which the \
         reference verifier accepts",
        case.circuit.sizes().rows,
        backends.len()
    );
}

/// Files of a folder that is given to the child.
const REQUEST: &str = "request.json";
const PROOF: &str = "proof";

/// The library reads its folder of keys from the environment once.
#[test]
#[ignore = "it is another test's child"]
fn child_that_verifies() {
    let Some(folder) = given().map(PathBuf::from) else {
        return;
    };
    let json = std::fs::read(folder.join(REQUEST)).unwrap();
    let request = ProofRequest::from_json(&json).unwrap();
    let mut proof = std::fs::read(folder.join(PROOF)).unwrap();
    assert!(reference::verify(&request, &proof).unwrap().is_valid());
    // The verifier does not take anything.
    let middle = proof.len() / 2;
    proof[middle] ^= 1;
    let verdict = reference::verify(&request, &proof);
    assert!(!verdict.is_ok_and(|verdict| verdict.is_valid()));
}
