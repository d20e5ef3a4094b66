//! All that the runs of a thread share: a circuit that takes no time, its parameters, and
//! its proofs.
//!
//! Not a run. The invariant: every verdict on a proof is the verifier's, which judges each
//! pair of a proof and a public input once.

use std::cell::OnceCell;
use std::ffi::OsString;
use std::fs;
use std::sync::{Arc, LazyLock};

use bellperson::groth16::Proof;
use bellperson::{Circuit, ConstraintSystem, SynthesisError};
use blstrs::{Bls12, Scalar};
use cuzk_filecoin::{CircuitId, ProofKind, SectorSize};
use cuzk_groth16::backend::{CpuBackend, Evaluation, Randomness, Synthesized};
use cuzk_groth16::memory::buffer_pool;
use cuzk_groth16::params::{GenerateOptions, ParamCache};
use cuzk_groth16::verify::verify;
use cuzk_memory::{Checkpoint, Dealloc};
use cuzk_pce::program;
use ff::Field;
use rayon::{ThreadPool, ThreadPoolBuilder};
use supraseal_sys::GpuResources;
use tempfile::TempDir;

use crate::circuits::{self, Circuits, cache_path, parameter_files};
use crate::config::Config;
use crate::timeline::Timeline;
use crate::verdicts::note_verdict;

/// The kinds whose circuits there are: critical, urgent and normal work.
pub(super) const KINDS: [ProofKind; 3] = [
    ProofKind::WinningPost,
    ProofKind::WindowPost,
    ProofKind::Porep,
];

/// The number of statements that are true, each with a false one beside it.
pub(super) const ROOTS: usize = 6;

/// Knowledge of a square root.
#[derive(Clone, Copy)]
pub(super) struct Root {
    root: Scalar,
    square: Scalar,
}

impl Root {
    /// The root of this number. If it `lies`, its square is another one's.
    pub(super) fn new(number: usize, lies: bool) -> Self {
        let root = Scalar::from(1000 + number as u64);
        let square = root.square() + Scalar::from(u64::from(lies));
        Self { root, square }
    }

    /// Returns its public input.
    pub(super) fn input(&self) -> Scalar {
        self.square
    }
}

impl Circuit<Scalar> for Root {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let square = cs.alloc_input(|| "square", || Ok(self.square))?;
        let root = cs.alloc(|| "root", || Ok(self.root))?;
        let (left, right) = (|lc| lc + root, |lc| lc + root);
        cs.enforce(|| "squared", left, right, |lc| lc + square);
        Ok(())
    }
}

pub(super) fn id(kind: ProofKind) -> CircuitId {
    CircuitId {
        kind,
        sector_size: SectorSize::KiB2,
    }
}

/// The common part of runs.
pub(super) struct Bench {
    pub(super) config: Config,
    /// The current thread as a pool, so that a run has no other thread.
    pub(super) pool: Arc<ThreadPool>,
    pub(super) resources: Arc<GpuResources>,
    pub(super) circuits: Arc<Circuits>,
    pub(super) params: Arc<ParamCache>,
    /// The proof of each root.
    pub(super) proofs: Arc<Vec<Proof<Bls12>>>,
    _folder: TempDir,
}

thread_local! {
    static OWN_POOL: OnceCell<Arc<ThreadPool>> = const { OnceCell::new() };
}

/// Returns a pool whose only thread is the current one.
fn own_pool() -> Arc<ThreadPool> {
    let new = || {
        let builder = ThreadPoolBuilder::new().num_threads(1).use_current_thread();
        Arc::new(builder.build().unwrap())
    };
    OWN_POOL.with(|pool| Arc::clone(pool.get_or_init(new)))
}

/// The parts of a bench that take time. They are the same for all, and are made once.
struct Made {
    /// The files of the circuits and of their parameters.
    files: Vec<(OsString, Vec<u8>)>,
    proofs: Arc<Vec<Proof<Bls12>>>,
}

static MADE: LazyLock<Made> = LazyLock::new(Made::new);

impl Made {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = cuzk_pce::compile(Root::new(0, false)).unwrap();
        for id in KINDS.map(id) {
            let path = cache_path(id, folder.path()).unwrap();
            program::write(&path, &program, &id.to_string()).unwrap();
            ParamCache::new(folder.path())
                .ensure_generated(
                    &parameter_files(id).unwrap(),
                    &program,
                    GenerateOptions::default(),
                    |_, _| (),
                )
                .unwrap();
        }
        let files = fs::read_dir(folder.path()).unwrap().map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_owned();
            (name, fs::read(path).unwrap())
        });
        let files = files.collect();
        let mut bench = Bench::of(folder, Arc::default());
        bench.proofs = Arc::new((0..ROOTS).map(|root| bench.prove(root)).collect());
        bench.judge();
        Self {
            files,
            proofs: bench.proofs,
        }
    }
}

impl Bench {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes) in &MADE.files {
            fs::write(folder.path().join(name), bytes).unwrap();
        }
        Self::of(folder, Arc::clone(&MADE.proofs))
    }

    /// Returns a bench with the circuits and parameters in a folder.
    fn of(folder: TempDir, proofs: Arc<Vec<Proof<Bls12>>>) -> Self {
        let mut config = Config::default();
        config.srs.param_cache = folder.path().to_owned();
        config.srs.multiples = Vec::new();
        config.synthesis.threads = 1;
        config.gpus.gpu_threads = 1;
        let params = ParamCache::new(folder.path()).with_threads(1);
        Self {
            pool: own_pool(),
            config,
            resources: Arc::new(GpuResources::new().unwrap()),
            circuits: Arc::default(),
            params: Arc::new(params),
            proofs,
            _folder: folder,
        }
    }

    /// Proves a root on the CPU.
    fn prove(&self, root: usize) -> Proof<Bls12> {
        let id = id(KINDS[0]);
        let circuit = Arc::new(circuits::open(id, &self.config.srs.param_cache).unwrap());
        let files = parameter_files(id).unwrap();
        let params = self.params.load(&files, &circuit.query_lengths()).unwrap();
        let pool = Arc::new(self.config.synthesis.pool().unwrap());
        let backend = CpuBackend::new(Arc::clone(&self.resources), pool);
        let partition = Synthesized {
            circuit,
            params: Arc::clone(params.mapped()),
            witness: cuzk_pce::packed_witness(Root::new(root, false)).unwrap(),
            evaluation: Evaluation::Left(buffer_pool(Dealloc::Serial, 1 << 30)),
            bit_sums: None,
            randomness: Randomness::from_os(),
            checkpoint: Checkpoint::asking(|| false),
        };
        let timeline = Timeline::default();
        let trace = timeline.trace(0, None);
        let backend: Arc<dyn cuzk_groth16::backend::Backend> = Arc::new(backend);
        backend
            .prove_start(partition, trace)
            .unwrap()
            .finish(trace)
            .unwrap()
    }

    /// Has the verifier judge every proof with every input, true and false.
    fn judge(&self) {
        let files = parameter_files(id(KINDS[0])).unwrap();
        let key = self.params.verifying_key(&files).unwrap();
        for proof in &*self.proofs {
            for root in 0..ROOTS {
                for lies in [false, true] {
                    let input = Root::new(root, lies).input();
                    note_verdict(proof, input, verify(&key, proof, &[input]).ok());
                }
            }
        }
    }
}
