//! The kinds, over random sectors. Each kernel of the CPU, a double of a device and bellperson
//! make the same bytes, since the randomness is fixed.
//!
//! An ordinary run has the two quick kinds over one sector each, the same each time.
//! `CUZK_TEST_DIFFERENTIAL` says the number of sectors of all four; see
//! [`cuzk_testing::differential`].
#![allow(clippy::unwrap_used, reason = "a failure in a test fails the test")]

mod common;

use std::sync::Arc;
use std::time::Duration;

use bellperson::groth16::Parameters;
use blstrs::{Bls12, Scalar};
use cuzk_core::pipeline::Partition;
use cuzk_core::timeline::Timeline;
use cuzk_filecoin::{
    ProofKind, ProofRequest, SectorSize, Statement, decode, decode_reference, vanilla,
};
use cuzk_groth16::Circuit;
use cuzk_groth16::backend::{Backend, CpuBackend, CudaBackend, HostBG2, Randomness};
use cuzk_groth16::params::LoadedParams;
use cuzk_kernels::Isa;
use cuzk_testing::differential::{again, is_long, seeds};
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
        let request = request.unwrap();
        let statement = decode(&request).unwrap();
        let circuit = common::circuit_with_params(kind);
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        Self {
            params: cuzk_testing::params_of(kind, &circuit, &common::param_cache()),
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
