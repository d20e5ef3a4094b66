//! The first GPU, and the stages of a proof on it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cuzk_core::engine::{host_b_g2, warn_of_few_queues};
use cuzk_core::timeline::Timeline;
use cuzk_groth16::backend::{Backend, CudaBackend, Pending, Randomness};
use supraseal_sys::device::{DeviceOptions, DeviceProver, ProofFigures, device_count};
use supraseal_sys::{GpuResources, Status, set_gpu_threads};

use super::subject::Subject;
use crate::commands::Context;
use crate::failure::{Failure, failed};
use crate::output;

/// The most device memory to take beside a peer, which needs some, too. A limit in the
/// configuration replaces it.
const BESIDE_PEER_BYTES: u64 = 36 << 30;

/// The time after which a device is given up. A measurement may be slow.
const STALL_LIMIT: Duration = Duration::from_secs(600);

/// The first GPU.
pub(super) struct Gpu {
    pub(super) prover: Arc<DeviceProver>,
    backend: Arc<CudaBackend>,
    pub(super) timeline: Timeline,
}

impl Gpu {
    /// Opens the first GPU, with the memory that a peer leaves.
    pub(super) fn open(context: &Context) -> Result<Self, Failure> {
        let gpus = &context.config.gpus;
        let count = device_count().map_err(no_gpu)?;
        if count == 0 {
            return Err(Failure::failed(
                "bench device needs a GPU, and CUDA shows none; see nvidia-smi and \
                 CUDA_VISIBLE_DEVICES",
            ));
        }
        let beside_peer = cfg!(feature = "peer-supraseal").then_some(BESIDE_PEER_BYTES);
        let options = DeviceOptions {
            memory_bytes: gpus.memory_limit_bytes.or(beside_peer),
            workers: 2,
            b_g2: gpus.b_g2,
            stall_limit: STALL_LIMIT,
        };
        set_gpu_threads(u32::try_from(gpus.gpu_threads).unwrap_or(u32::MAX)).map_err(failed)?;
        let resources = Arc::new(GpuResources::new().map_err(failed)?);
        let prover = DeviceProver::open(0, &options, resources).map_err(no_gpu)?;
        warn_of_few_queues();
        Self::on(context, prover)
    }

    /// Returns the stages of a proof on `prover`.
    pub(super) fn on(context: &Context, prover: DeviceProver) -> Result<Self, Failure> {
        let prover = Arc::new(prover);
        let host_b_g2 = host_b_g2(&context.config).map_err(failed)?;
        output::say(format_args!("{:?}", prover.info().map_err(failed)?));
        Ok(Self {
            backend: Arc::new(CudaBackend::new(Arc::clone(&prover), host_b_g2)),
            prover,
            timeline: Timeline::default(),
        })
    }

    /// Runs the device region of one proof.
    pub(super) fn start(
        &self,
        subject: &Subject,
        randomness: Randomness,
        job: u64,
    ) -> Result<Box<dyn Pending>, Failure> {
        let trace = self.timeline.trace(job, Some(0)).on_device(0);
        let backend = Arc::clone(&self.backend);
        let pending = backend.prove_start(subject.synthesized(randomness), trace);
        pending.map_err(failed)
    }

    /// Finishes a proof and verifies it.
    pub(super) fn finish(
        &self,
        subject: &Subject,
        pending: Box<dyn Pending>,
    ) -> Result<[u8; 192], Failure> {
        let trace = self.timeline.trace(0, Some(0));
        let proof = pending.finish(trace).map_err(failed)?;
        subject.verify(&proof)
    }

    /// Returns the seconds from the witness to the proof, without the verification.
    /// `prove_partition` would count the witness and the verification, too.
    pub(super) fn time(&self, subject: &Subject) -> Result<f64, Failure> {
        let synthesized = subject.synthesized(Randomness::from_os());
        let trace = self.timeline.trace(0, Some(0)).on_device(0);
        let started = Instant::now();
        let pending = Arc::clone(&self.backend).prove_start(synthesized, trace);
        let proof = pending.map_err(failed)?.finish(trace).map_err(failed)?;
        let seconds = started.elapsed().as_secs_f64();
        subject.verify(&proof)?;
        Ok(seconds)
    }

    /// Returns the figures of the last proof.
    pub(super) fn figures(&self) -> Result<ProofFigures, Failure> {
        let figures = self.backend.figures();
        figures.ok_or_else(|| failed("no proof was made"))
    }

    /// Returns how much of the device's memory is in use, by any process.
    pub(super) fn used_bytes(&self) -> Result<u64, Failure> {
        let info = self.prover.info().map_err(failed)?;
        Ok(info.memory_bytes - info.free_bytes)
    }
}

fn no_gpu(error: Status) -> Failure {
    Failure::failed(format!(
        "bench device needs a GPU: {error}; docs/gpus.md says how to build for one"
    ))
}
