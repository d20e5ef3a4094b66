//! A device whose region is a wait of a stated length. So only the engine decides how long
//! it is idle. The MSM in G2 after the region can be a wait, too, with the throttle raised.
//!
//! It proves the first partition on the CPU and returns that proof for every other. So all
//! partitions must have the same statement. The engine verifies each proof.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use bellperson::groth16::Proof;
use blstrs::Bls12;
use cuzk_core::timeline::{Stage, Trace};
use cuzk_groth16::Circuit;
use cuzk_groth16::backend::{
    Backend, BackendError, Device, Footprint, Pending, SynthesisShare, Synthesized,
};
use cuzk_groth16::params::Shapes;
use supraseal_sys::GpuResources;

/// A device that waits instead of computing.
pub(crate) struct Double {
    region: Duration,
    b_g2: Duration,
    cpu: Device,
    proof: Arc<Mutex<Option<Proof<Bls12>>>>,
}

impl Double {
    /// Returns a double that replaces `cpu` and has its lock.
    pub(crate) fn device(cpu: Device, region: Duration, b_g2: Duration) -> Device {
        Device {
            resources: Arc::clone(&cpu.resources),
            backend: Arc::new(Self {
                region,
                b_g2,
                cpu,
                proof: Arc::default(),
            }),
        }
    }
}

impl Backend for Double {
    fn name(&self) -> &'static str {
        "double"
    }

    fn footprint(&self, circuit: &Circuit, shapes: &Shapes, share: SynthesisShare) -> Footprint {
        self.cpu.backend.footprint(circuit, shapes, share)
    }

    fn prove_start(
        self: Arc<Self>,
        partition: Synthesized,
        trace: Trace<'_>,
    ) -> Result<Box<dyn Pending>, BackendError> {
        let known = lock(&self.proof).clone();
        if let Some(proof) = known {
            drop(partition);
            let _device = self.cpu.resources.lock_gpu()?;
            trace.time(Stage::Device, || thread::sleep(self.region));
            return Ok(Box::new(Known {
                proof,
                b_g2: self.b_g2,
                resources: Arc::clone(&self.cpu.resources),
            }));
        }
        let pending = Arc::clone(&self.cpu.backend).prove_start(partition, trace)?;
        Ok(Box::new(First {
            pending,
            proof: Arc::clone(&self.proof),
        }))
    }
}

struct First {
    pending: Box<dyn Pending>,
    proof: Arc<Mutex<Option<Proof<Bls12>>>>,
}

impl Pending for First {
    fn finish(self: Box<Self>, trace: Trace<'_>) -> Result<Proof<Bls12>, BackendError> {
        let proof = self.pending.finish(trace)?;
        *lock(&self.proof) = Some(proof.clone());
        Ok(proof)
    }
}

struct Known {
    proof: Proof<Bls12>,
    b_g2: Duration,
    resources: Arc<GpuResources>,
}

impl Pending for Known {
    fn finish(self: Box<Self>, trace: Trace<'_>) -> Result<Proof<Bls12>, BackendError> {
        if !self.b_g2.is_zero() {
            let _raised = self.resources.raise_throttle();
            trace.time(Stage::BG2, || thread::sleep(self.b_g2));
        }
        Ok(self.proof)
    }
}

// A proof is stored whole.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
