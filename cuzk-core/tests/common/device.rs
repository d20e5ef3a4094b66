//! Devices that misbehave as a test says.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use bellperson::groth16::Proof;
use blstrs::Bls12;
use cuzk_core::Config;
use cuzk_core::backend::{Backend, BackendError, CpuBackend, Device, Pending, Synthesized};
use cuzk_core::timeline::{Stage, Trace};
use rayon::ThreadPool;
use supraseal_sys::GpuResources;

/// What a device does with a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    /// What it should.
    Prove,
    /// Wait so long under its lock, and then what it should.
    ProveAfter(Duration),
    PanicInStart,
    PanicInFinish,
    ErrorInStart,
    /// A proof of another statement.
    WrongPoint,
    /// Nothing, until the gate is opened.
    Stall,
}

/// Opened once, for everybody.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    pub(crate) fn open(&self) {
        *self.open.lock().unwrap() = true;
        self.opened.notify_all();
    }

    pub(crate) fn wait(&self) {
        let open = self.open.lock().unwrap();
        drop(self.opened.wait_while(open, |open| !*open).unwrap());
    }
}

type Plan = Box<dyn Fn(usize) -> Deed + Send + Sync>;

/// The CPU, doing what a plan says with the n-th partition.
pub(crate) struct Scripted {
    inner: Arc<CpuBackend>,
    resources: Arc<GpuResources>,
    plan: Plan,
    pub(crate) started: AtomicUsize,
    pub(crate) gate: Gate,
}

impl Scripted {
    pub(crate) fn new(
        config: &Config,
        plan: impl Fn(usize) -> Deed + Send + Sync + 'static,
    ) -> Arc<Self> {
        let resources = Arc::new(GpuResources::new().unwrap());
        let pool = Arc::new(config.synthesis.pool().unwrap());
        Arc::new(Self {
            inner: Arc::new(CpuBackend::new(Arc::clone(&resources), pool)),
            resources,
            plan: Box::new(plan),
            started: AtomicUsize::new(0),
            gate: Gate::default(),
        })
    }

    pub(crate) fn device(self: &Arc<Self>) -> Device {
        Device {
            resources: Arc::clone(&self.resources),
            backend: Arc::<Self>::clone(self),
        }
    }

    pub(crate) fn started(&self) -> usize {
        self.started.load(Ordering::SeqCst)
    }
}

/// For an engine on scripted devices, which count as GPUs: nothing stands still
/// for critical work.
pub(crate) fn pool(config: &Config) -> Arc<ThreadPool> {
    Arc::new(config.synthesis.pool().unwrap())
}

impl Backend for Scripted {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn prove_start(
        self: Arc<Self>,
        partition: Synthesized,
        trace: Trace<'_>,
    ) -> Result<Box<dyn Pending>, BackendError> {
        let deed = (self.plan)(self.started.fetch_add(1, Ordering::SeqCst));
        match deed {
            Deed::PanicInStart => panic!("a device's start"),
            Deed::ErrorInStart => return Err(BackendError::IdentityDelta),
            Deed::Stall => self.gate.wait(),
            Deed::ProveAfter(wait) => {
                let device = self.resources.lock_gpu()?;
                trace.time(Stage::Device, || thread::sleep(wait));
                drop(device);
            }
            Deed::Prove | Deed::PanicInFinish | Deed::WrongPoint => {}
        }
        let inner = Arc::clone(&self.inner).prove_start(partition, trace)?;
        Ok(Box::new(ScriptedPending { inner, deed }))
    }
}

struct ScriptedPending {
    inner: Box<dyn Pending>,
    deed: Deed,
}

impl Pending for ScriptedPending {
    fn finish(self: Box<Self>, trace: Trace<'_>) -> Result<Proof<Bls12>, BackendError> {
        let mut proof = self.inner.finish(trace)?;
        match self.deed {
            Deed::PanicInFinish => panic!("a device's finish"),
            Deed::WrongPoint => proof.c = -proof.c,
            _ => {}
        }
        Ok(proof)
    }
}
