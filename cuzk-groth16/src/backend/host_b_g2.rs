//! The MSM over B in G2 of a device's proof, on the host beside the device region.
//!
//! The kernel is the one of a CPU's proof. Not the device region, and not the C++ side's
//! `b_g2_msm`, which is the slow twin. The invariants:
//!
//! * The throttle is raised while the MSM runs.
//! * The MSM never pauses: a critical partition may wait for the threads that it holds.
//! * A started MSM owns its input. Its owner waits for its end, also when it is dropped, so
//!   the memory of a partition is not given to another one before.
//! * A panic of the MSM reaches the thread that finishes the proof.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::Instant;

use blstrs::{G2Projective, Scalar};
use cuzk_kernels::msm::{self, MsmTerm, PackedScalars};
use cuzk_kernels::{Context, Isa};
use cuzk_memory::{BufferPool, Cancellation, Checkpoint};
use cuzk_pce::{PackedQuery, PackedWitness};
use cuzk_timeline::Lane;
use rayon::ThreadPool;
use supraseal_sys::GpuResources;

use super::BackendError;
use crate::circuit::Circuit;
use crate::params::{MappedMultiples, MappedParams, SharedFile};

/// The MSM over B in G2 where the device does not make it.
#[derive(Clone, Debug)]
pub enum HostBG2 {
    /// The kernel of `cuzk-kernels` makes it, with these instructions, on threads of its
    /// own. Devices may share the pool.
    Kernel {
        /// The threads.
        pool: Arc<ThreadPool>,
        /// The instructions.
        isa: Isa,
    },
    /// The C++ side makes it on its pool of so many threads. This is the slow twin, for
    /// comparisons.
    Cpp {
        /// The threads of the pool.
        threads: u32,
    },
    /// There is none: the device was opened to make every MSM.
    Absent,
}

/// The input of an MSM.
pub(super) struct HostInput {
    pub(super) circuit: Arc<Circuit>,
    pub(super) params: Arc<MappedParams>,
    pub(super) witness: Arc<PackedWitness<Scalar>>,
    pub(super) buffers: Arc<BufferPool>,
    pub(super) checkpoint: Checkpoint<'static>,
}

/// The times of an MSM, and the thread on which it ended.
pub(super) struct Ran {
    pub(super) lane: Lane,
    pub(super) start: Instant,
    pub(super) end: Instant,
}

type Sum = Result<G2Projective, BackendError>;

/// An MSM that was started. It is stopped if this is dropped.
pub(super) struct RunningMsm {
    stop: Cancellation,
    ended: Receiver<(thread::Result<Sum>, Ran)>,
}

impl RunningMsm {
    /// Starts the MSM on `pool`, and returns at once. The first MSM over these parameters
    /// opens the multiples of their points before. This happens on the calling thread: one
    /// of the pool might begin another MSM meanwhile, which would wait for the same file.
    pub(super) fn start(
        (pool, isa): (&ThreadPool, Isa),
        resources: Arc<GpuResources>,
        input: HostInput,
    ) -> Result<Self, BackendError> {
        let (params, checkpoint) = (&input.params, &input.checkpoint);
        let multiples = params.multiples_unless_stopped(&input.circuit, isa, pool, checkpoint)?;
        let stop = Cancellation::default();
        let stopped = stop.clone();
        let (send, ended) = sync_channel(1);
        pool.spawn(move || {
            let start = Instant::now();
            let raised = resources.raise_throttle();
            let work = || sum(isa, &input, &multiples, stopped);
            let sum = catch_unwind(AssertUnwindSafe(work));
            drop(raised);
            // Free before the owner is told.
            drop((input, multiples, resources));
            let ran = Ran {
                lane: Lane::current(),
                start,
                end: Instant::now(),
            };
            // The owner waits, so this does not fail.
            drop(send.send((sum, ran)));
        });
        Ok(Self { stop, ended })
    }

    /// Waits for the MSM. The MSM passes the checkpoint of its partition every millisecond
    /// or so, so this returns soon after the partition is cancelled.
    pub(super) fn join(self) -> Result<(G2Projective, Ran), BackendError> {
        match self.ended.recv() {
            Ok((Ok(sum), ran)) => Ok((sum?, ran)),
            Ok((Err(panic), _)) => resume_unwind(panic),
            // A pool runs all that it was given, so this does not happen.
            Err(_) => Err(BackendError::Stopped),
        }
    }
}

impl Drop for RunningMsm {
    fn drop(&mut self) {
        self.stop.cancel();
        // After `join` the sender is gone, and this returns at once.
        drop(self.ended.recv());
    }
}

/// Computes Σ wᵢ·Bᵢ in G2 on the current pool.
fn sum(isa: Isa, input: &HostInput, multiples: &SharedFile, stopped: Cancellation) -> Sum {
    let densities = input.circuit.densities();
    let inputs = densities.b_input.iter();
    let own = input.checkpoint.unpaused();
    let checkpoint = &Checkpoint::asking(move || stopped.is_cancelled() || own.check().is_err());
    let query = PackedQuery::new(&input.witness, inputs, &densities.b_aux, checkpoint)?;
    let slice = query.as_slice();
    let scalars = PackedScalars::new(slice.len, slice.bits, slice.wide, slice.values)?;
    let bases = input.params.b_g2();
    let multiples = multiples.usable().and_then(MappedMultiples::b_g2);
    let term = MsmTerm::new(&bases, scalars).with_multiples(multiples);
    let context = Context {
        isa,
        checkpoint,
        memory: &*input.buffers,
    };
    Ok(msm::g2_of_terms(context, &[term])?)
}
