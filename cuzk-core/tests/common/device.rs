//! Devices that misbehave as a test says.

use std::collections::HashSet;
use std::ops::Deref;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use bellperson::groth16::Proof;
use blstrs::Bls12;
use cuzk_bounded::bounded;
use cuzk_core::timeline::{Stage, Trace};
use cuzk_core::{Config, Engine};
use cuzk_groth16::Circuit;
use cuzk_groth16::backend::{
    Backend, BackendError, CpuBackend, Device, Footprint, Pending, SynthesisShare, Synthesized,
};
use cuzk_groth16::params::{MappedParams, Shapes};
use rayon::ThreadPool;
use supraseal_sys::{GpuResources, Status};

use super::wait_until;

/// What a device does with a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    /// What it should.
    Prove,
    /// Wait so long under its lock, and then what it should.
    ProveAfter(Duration),
    /// Hold its lock until another partition is here, too, unless all of so many have been,
    /// and then what it should.
    ProveBesideAnother(usize),
    PanicInStart,
    PanicInFinish,
    ErrorInStart,
    /// An error of the parameters.
    BadInput,
    /// An error of the circuit, which does not fit.
    TooLarge,
    /// A proof of another statement.
    WrongPoint,
    /// Nothing, until the gate is opened.
    Stall,
    /// Nothing once its region is over, until the gate is opened.
    StallInFinish,
}

/// What a bad device does that answers.
pub(crate) const FAULTS: [Deed; 4] = [
    Deed::PanicInStart,
    Deed::PanicInFinish,
    Deed::WrongPoint,
    Deed::ErrorInStart,
];

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

    #[track_caller]
    pub(crate) fn wait_bounded(&self) {
        let open = self.open.lock().unwrap();
        let opened = bounded(|| self.opened.wait_while(open, |open| !*open));
        drop(opened.unwrap());
    }
}

/// Where somebody stands still, is seen to, and goes on when it is opened.
#[derive(Debug, Default)]
pub(crate) struct Doorway {
    entered: Gate,
    open: Gate,
}

impl Doorway {
    #[track_caller]
    pub(crate) fn pass(&self) {
        self.entered.open();
        self.open.wait_bounded();
    }

    /// Until somebody stands there.
    #[track_caller]
    pub(crate) fn wait_bounded(&self) {
        self.entered.wait_bounded();
    }

    pub(crate) fn open(&self) {
        self.open.open();
    }
}

type Plan = Box<dyn Fn(usize) -> Deed + Send + Sync>;

/// The CPU, doing what a plan says with the n-th partition.
pub(crate) struct Scripted {
    inner: Arc<CpuBackend>,
    resources: Arc<GpuResources>,
    plan: Plan,
    pub(crate) started: AtomicUsize,
    /// Partitions that are here.
    in_hand: Arc<AtomicUsize>,
    pub(crate) gate: Gate,
    /// What it keeps for a circuit, as it says.
    kept_bytes: u64,
    /// What a partition holds on the host, as it says, if not what it does.
    peak_bytes: Option<u64>,
    /// The parameters that it keeps something for, by their addresses.
    kept_params: Mutex<HashSet<usize>>,
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
            in_hand: Arc::default(),
            gate: Gate::default(),
            kept_bytes: 0,
            peak_bytes: None,
            kept_params: Mutex::default(),
        })
    }

    /// One that does what it should, and keeps so much for each circuit.
    pub(crate) fn keeping(config: &Config, kept_bytes: u64) -> Arc<Self> {
        Self::good(config).that_keeps(kept_bytes)
    }

    /// The same, before anybody has it, keeping so much for each circuit.
    pub(crate) fn that_keeps(self: Arc<Self>, kept_bytes: u64) -> Arc<Self> {
        let device = Arc::into_inner(self).unwrap();
        Arc::new(Self {
            kept_bytes,
            ..device
        })
    }

    /// One that does what it should, and says that a partition holds so much on the host.
    pub(crate) fn holding(config: &Config, peak_bytes: u64) -> Arc<Self> {
        let device = Arc::into_inner(Self::good(config)).unwrap();
        Arc::new(Self {
            peak_bytes: Some(peak_bytes),
            ..device
        })
    }

    /// One that does what it should.
    pub(crate) fn good(config: &Config) -> Arc<Self> {
        Self::new(config, |_| Deed::Prove)
    }

    /// One that fails every twelfth partition, each time in another way.
    pub(crate) fn faulty(config: &Config) -> Arc<Self> {
        Self::new(config, |n| {
            if n % 12 == 5 {
                FAULTS[n / 12 % FAULTS.len()]
            } else {
                Deed::Prove
            }
        })
    }

    pub(crate) fn device(self: &Arc<Self>) -> Device {
        Device {
            resources: Arc::clone(&self.resources),
            backend: Arc::<Self>::clone(self),
        }
    }

    /// For how many parameters it keeps something.
    pub(crate) fn num_params_kept(&self) -> usize {
        self.kept_params.lock().unwrap().len()
    }

    pub(crate) fn started(&self) -> usize {
        self.started.load(Ordering::SeqCst)
    }
}

pub(crate) fn pool(config: &Config) -> Arc<ThreadPool> {
    Arc::new(config.synthesis.pool().unwrap())
}

/// An engine on scripted devices, which count as GPUs: nothing stands still for
/// critical work.
pub(crate) fn engine_on(config: &Config, devices: &[&Arc<Scripted>]) -> Engine {
    let devices = devices.iter().map(|device| device.device()).collect();
    Engine::start_on(config.clone(), pool(config), devices).unwrap()
}

/// An engine whose one device does nothing until its gate is opened.
pub(crate) fn held_up(config: &mut Config) -> (Engine, Opened) {
    config.gpus.gpu_workers_per_device = 1;
    let device = Scripted::new(config, |n| if n == 0 { Deed::Stall } else { Deed::Prove });
    (engine_on(config, &[&device]), Opened(device))
}

/// The cores as a device.
pub(crate) fn cores(pool: &Arc<ThreadPool>) -> Device {
    let resources = Arc::new(GpuResources::new().unwrap());
    let backend = CpuBackend::new(Arc::clone(&resources), Arc::clone(pool));
    Device {
        resources,
        backend: Arc::new(backend),
    }
}

/// A device whose gate is open when a test ends, however it ends: an engine waits
/// for its devices.
pub(crate) struct Opened(pub(crate) Arc<Scripted>);

impl Deref for Opened {
    type Target = Arc<Scripted>;

    fn deref(&self) -> &Arc<Scripted> {
        &self.0
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.0.gate.open();
    }
}

impl Backend for Scripted {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn footprint(&self, circuit: &Circuit, shapes: &Shapes, share: SynthesisShare) -> Footprint {
        let inner = self.inner.footprint(circuit, shapes, share);
        Footprint {
            peak_bytes: self.peak_bytes.unwrap_or(inner.peak_bytes),
            ..inner
        }
    }

    fn kept_bytes(&self, _: &Circuit) -> u64 {
        self.kept_bytes
    }

    fn evict_params(&self, params: &MappedParams) {
        self.kept_params.lock().unwrap().remove(&address(params));
    }

    fn prove_start(
        self: Arc<Self>,
        partition: Synthesized,
        trace: Trace<'_>,
    ) -> Result<Box<dyn Pending>, BackendError> {
        let _here = Here::new(&self.in_hand);
        let deed = (self.plan)(self.started.fetch_add(1, Ordering::SeqCst));
        match deed {
            Deed::PanicInStart => panic!("a device's start"),
            Deed::ErrorInStart => return Err(std::io::Error::other("no memory").into()),
            Deed::BadInput => return Err(BackendError::IdentityDelta),
            Deed::TooLarge => return Err(Status::too_large("as a test asks".to_owned()).into()),
            Deed::Stall => self.gate.wait_bounded(),
            Deed::ProveAfter(wait) => {
                let device = self.resources.lock_gpu()?;
                trace.time(Stage::Device, || thread::sleep(wait));
                drop(device);
            }
            Deed::ProveBesideAnother(all) => {
                let device = self.resources.lock_gpu()?;
                let is_here = || self.in_hand.load(Ordering::SeqCst) > 1 || self.started() == all;
                wait_until("another partition is here", is_here);
                drop(device);
            }
            Deed::Prove | Deed::PanicInFinish | Deed::WrongPoint | Deed::StallInFinish => {}
        }
        let kept = address(&partition.params);
        self.kept_params.lock().unwrap().insert(kept);
        let inner = Arc::clone(&self.inner).prove_start(partition, trace)?;
        let device = self;
        Ok(Box::new(ScriptedPending {
            inner,
            deed,
            device,
        }))
    }
}

/// A partition at a device, until this is dropped.
struct Here(Arc<AtomicUsize>);

impl Here {
    fn new(in_hand: &Arc<AtomicUsize>) -> Self {
        in_hand.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(in_hand))
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn address(params: &MappedParams) -> usize {
    ptr::from_ref(params).addr()
}

struct ScriptedPending {
    inner: Box<dyn Pending>,
    deed: Deed,
    device: Arc<Scripted>,
}

impl Pending for ScriptedPending {
    fn finish(self: Box<Self>, trace: Trace<'_>) -> Result<Proof<Bls12>, BackendError> {
        let mut proof = self.inner.finish(trace)?;
        match self.deed {
            Deed::PanicInFinish => panic!("a device's finish"),
            Deed::WrongPoint => proof.c = -proof.c,
            Deed::StallInFinish => self.device.gate.wait_bounded(),
            _ => {}
        }
        Ok(proof)
    }
}
