//! The place where a process proves: a backend, its threads and its memory.
//!
//! Not a queue: callers that prove at once share the threads. The invariant: a GPU has one
//! proof at a time in its device region.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::thread::available_parallelism;
use std::time::Duration;

use bellperson::groth16::Proof;
use blstrs::Bls12;
use cuzk_kernels::Isa;
use cuzk_memory::{BufferPool, Dealloc};
use cuzk_timeline::{Timeline, Trace};
use rayon::{ThreadPool, ThreadPoolBuilder};
use supraseal_sys::GpuResources;
use supraseal_sys::device::{BG2, DeviceOptions, DeviceProver, device_count};

use super::ProveError;
use crate::backend::{Backend, BackendError, CpuBackend, CudaBackend, HostBG2, Synthesized};
use crate::memory::buffer_pool;
use crate::once_map::OnceMap;

/// The most memory that is kept for the next proof, in bytes: the three vectors over a
/// domain of 2^24.
const KEPT_BYTES_MAX: u64 = 3 << 29;

/// The time after which a GPU that does not answer is given up.
const STALL_LIMIT: Duration = Duration::from_secs(600);

/// A device of this process, with the threads and the memory of its proofs. Provers share
/// it.
pub struct ProvingDevice {
    backend: Arc<dyn Backend>,
    pool: Arc<ThreadPool>,
    buffers: Arc<BufferPool>,
    /// Held in the device region of a GPU.
    turn: Mutex<()>,
    timeline: Timeline,
    /// Proofs that were begun.
    proofs: AtomicU64,
}

impl fmt::Debug for ProvingDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProvingDevice")
            .field("backend", &self.backend.name())
            .field("threads", &self.pool.current_num_threads())
            .finish_non_exhaustive()
    }
}

impl ProvingDevice {
    /// Returns the device that provers of this process have if they are given no other. The
    /// first call opens it: the first GPU, if there is one that this build runs on, or else
    /// the CPU. It has as many threads as the system offers.
    ///
    /// # Errors
    /// [`ProveError::Threads`], [`ProveError::Resources`].
    pub fn shared() -> Result<Arc<Self>, ProveError> {
        static SHARED: LazyLock<OnceMap<(), ProvingDevice>> = LazyLock::new(OnceMap::default);
        SHARED.get_or_make((), || {
            let threads = available_parallelism().map_or(1, usize::from);
            if device_count().is_ok_and(|count| count > 0) {
                match Self::gpu(0, threads) {
                    Ok(gpu) => return Ok(gpu),
                    Err(error) => tracing::warn!(%error, "proving on the CPU instead"),
                }
            }
            Self::cpu(threads, Isa::best())
        })
    }

    /// Proves on this machine's cores, on so many threads and with these instructions.
    ///
    /// # Errors
    /// [`ProveError::Threads`], [`ProveError::Resources`].
    pub fn cpu(threads: usize, isa: Isa) -> Result<Self, ProveError> {
        let pool = start_pool(threads)?;
        let resources = Arc::new(GpuResources::new().map_err(ProveError::Resources)?);
        let backend = CpuBackend::new(resources, Arc::clone(&pool)).with_isa(isa);
        Ok(Self::new(Arc::new(backend), pool))
    }

    /// Proves on the GPU with this number. The host's part has so many threads.
    ///
    /// # Errors
    /// [`ProveError::Gpu`], also where the build has no CUDA; [`ProveError::Threads`].
    pub fn gpu(ordinal: u32, threads: usize) -> Result<Self, ProveError> {
        let failed = |problem| ProveError::Gpu { ordinal, problem };
        let pool = start_pool(threads)?;
        let options = DeviceOptions {
            memory_bytes: None,
            workers: 1,
            b_g2: BG2::Auto,
            stall_limit: STALL_LIMIT,
        };
        let resources = Arc::new(GpuResources::new().map_err(failed)?);
        let device = DeviceProver::open(ordinal, &options, resources).map_err(failed)?;
        let host = HostBG2::Kernel {
            pool: Arc::clone(&pool),
            isa: Isa::best(),
        };
        let backend = CudaBackend::new(Arc::new(device), host);
        Ok(Self::new(Arc::new(backend), pool))
    }

    /// Proves with a backend that is open already. `pool` has the threads of witnesses and
    /// verification. A caller that belongs to it gets no proof: [`ProveError::OwnThread`].
    #[must_use]
    pub fn new(backend: Arc<dyn Backend>, pool: Arc<ThreadPool>) -> Self {
        Self {
            backend,
            pool,
            buffers: buffer_pool(Dealloc::Recycle, KEPT_BYTES_MAX),
            turn: Mutex::default(),
            timeline: Timeline::default(),
            proofs: AtomicU64::default(),
        }
    }

    /// Returns the backend.
    #[must_use]
    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.backend
    }

    /// Returns the threads.
    #[must_use]
    pub fn pool(&self) -> &ThreadPool {
        &self.pool
    }

    /// Returns the stages of the last thousand proofs. Each proof is a job, and they are numbered
    /// from 0 in the order in which they began.
    #[must_use]
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// Checks that the caller is none of the device's threads. A proof has the device while it
    /// waits for them. One of them that waited would begin other jobs of the pool, and such a job
    /// may want the device, too.
    ///
    /// # Errors
    /// [`ProveError::OwnThread`].
    pub(super) fn check_caller(&self) -> Result<(), ProveError> {
        match self.pool.current_thread_index() {
            Some(_) => Err(ProveError::OwnThread),
            None => Ok(()),
        }
    }

    /// Returns the handle that records the stages of the next proof.
    pub(super) fn next_trace(&self) -> Trace<'_> {
        let job = self.proofs.fetch_add(1, Ordering::Relaxed);
        self.timeline.trace(job, Some(0))
    }

    /// Returns the memory that proofs recycle.
    pub(super) fn buffers(&self) -> &Arc<BufferPool> {
        &self.buffers
    }

    /// Makes the proof of a synthesized circuit. Nobody has verified it.
    ///
    /// # Errors
    /// The backend's.
    pub(super) fn make(
        &self,
        synthesized: Synthesized,
        trace: Trace<'_>,
    ) -> Result<Proof<Bls12>, BackendError> {
        let trace = trace.on_device(0);
        let backend = Arc::clone(&self.backend);
        let pending = {
            let is_gpu = !backend.is_this_cpu();
            let lock = || self.turn.lock().unwrap_or_else(PoisonError::into_inner);
            let _turn = is_gpu.then(lock);
            backend.prove_start(synthesized, trace)?
        };
        pending.finish(trace)
    }
}

fn start_pool(threads: usize) -> Result<Arc<ThreadPool>, ProveError> {
    let builder = ThreadPoolBuilder::new().num_threads(threads);
    let named = builder.thread_name(|index| format!("cuzk-prove-{index}"));
    let started = named.build();
    let pool = started.map_err(|source| ProveError::Threads { threads, source })?;
    Ok(Arc::new(pool))
}
