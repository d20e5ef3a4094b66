//! What stages run with: threads, memory, instructions, the throttle.
//!
//! Not a queue: a caller runs its work here when the dispatcher has given it its
//! turn. The invariant: critical work shares no thread with work that may be paused
//! for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

use cuzk_groth16::CircuitForm;
use cuzk_groth16::apart;
use cuzk_groth16::memory::buffer_pool;
use cuzk_kernels::Isa;
use cuzk_memory::{BufferPool, Checkpoint, Dealloc, ThrottleManner};
use rayon::{ThreadPool, ThreadPoolBuilder};
use supraseal_sys::dealloc::set_cpp_unbounded;
use supraseal_sys::{GpuResources, set_gpu_threads};

use super::cannot_start;
use super::start::{no_device_side, no_pool};
use crate::config::Config;
use crate::panics::catch_panic;
use crate::pipeline::SynthesisResources;
use crate::{Error, Result};

pub(super) struct Compute {
    /// The instructions of the kernels and of the witness writers.
    pub(super) isa: Isa,
    /// The memory that partitions recycle.
    pub(super) buffers: Arc<BufferPool>,
    /// The resources whose count synthesis looks at, if the throttle is turned on.
    throttle: Option<Arc<GpuResources>>,
    manner: ThrottleManner,
    form: CircuitForm,
    synthesis: Arc<ThreadPool>,
    /// For decoding and verification, which must not wait for synthesis.
    auxiliary: Arc<ThreadPool>,
    auxiliary_critical: Arc<ThreadPool>,
    /// The requests that are decoded now.
    decoding: AtomicUsize,
}

impl Compute {
    /// Synthesis runs on `synthesis`. `throttle` is the first device's: all devices of an
    /// engine raise one count, because memory bandwidth belongs to the machine.
    pub(super) fn new(
        config: &Config,
        synthesis: Arc<ThreadPool>,
        throttle: Option<Arc<GpuResources>>,
        memory_bytes: u64,
    ) -> Result<Self> {
        let gpu_threads = u32::try_from(config.gpus.gpu_threads).map_err(cannot_start)?;
        set_gpu_threads(gpu_threads).map_err(|error| no_device_side(&error))?;
        set_cpp_unbounded(cpp_is_unbounded(config.memory.dealloc));
        Ok(Self {
            isa: config.cpu.isa,
            buffers: buffer_pool(config.memory.dealloc, memory_bytes),
            throttle: throttle.filter(|_| config.pipeline.throttle),
            manner: config.pipeline.throttle_manner,
            form: config.synthesis.circuit,
            synthesis,
            auxiliary: Arc::new(auxiliary_pool(config, "aux")?),
            auxiliary_critical: Arc::new(auxiliary_pool(config, "urgent")?),
            decoding: AtomicUsize::new(0),
        })
    }

    /// Has everything run on the threads of synthesis.
    #[cfg(test)]
    pub(super) fn share_synthesis_pool(&mut self) {
        self.auxiliary = Arc::clone(&self.synthesis);
        self.auxiliary_critical = Arc::clone(&self.synthesis);
    }

    pub(super) fn synthesis_pool(&self) -> &ThreadPool {
        &self.synthesis
    }

    /// The threads for decoding and for verification. Critical work has its own, also
    /// apart from those on which a critical partition is proved.
    pub(super) fn auxiliary_pool(&self, critical: bool) -> &ThreadPool {
        if critical {
            &self.auxiliary_critical
        } else {
            &self.auxiliary
        }
    }

    /// Checks that the caller is none of the engine's threads for proofs. A call that waits for
    /// them on one of them may wait for itself.
    ///
    /// # Errors
    /// [`Error::OwnThread`].
    pub(super) fn check_caller(&self) -> Result<()> {
        let pools = [&self.synthesis, &self.auxiliary, &self.auxiliary_critical];
        let mut pools = pools.into_iter();
        match pools.any(|pool| pool.current_thread_index().is_some()) {
            true => Err(Error::OwnThread),
            false => Ok(()),
        }
    }

    /// Runs `decode` on auxiliary threads. A panic is an error. The caller holds a place among
    /// those that decode, and may hold an id.
    pub(super) fn decode<T: Send>(
        &self,
        critical: bool,
        decode: impl FnOnce() -> Result<T> + Send,
    ) -> Result<T> {
        let pool = self.auxiliary_pool(critical);
        self.decoding.fetch_add(1, Ordering::Relaxed);
        let decoded = catch_panic("decode", || apart::install(pool, decode)?);
        self.decoding.fetch_sub(1, Ordering::Relaxed);
        decoded
    }

    /// Runs work that is no partition on auxiliary threads. A panic is an error. The caller may
    /// hold memory.
    pub(super) fn aside<T: Send>(
        &self,
        stage: &'static str,
        work: impl FnOnce() -> Result<T> + Send,
    ) -> Result<T> {
        catch_panic(stage, || apart::install(&self.auxiliary, work)?)
    }

    /// Returns true if a request is decoded now.
    pub(super) fn is_decoding(&self) -> bool {
        self.decoding.load(Ordering::Relaxed) > 0
    }

    /// Returns what synthesis of a partition runs with, on `pool`. A critical partition ignores
    /// the throttle: the work that raised it may be paused for this very partition.
    pub(super) fn synthesis_resources<'a>(
        &'a self,
        pool: &'a ThreadPool,
        critical: bool,
        evaluate: bool,
        checkpoint: Checkpoint<'static>,
    ) -> SynthesisResources<'a> {
        SynthesisResources {
            pool,
            isa: self.isa,
            buffers: &self.buffers,
            throttle: self.throttle().filter(|_| !critical),
            manner: self.manner,
            form: self.form,
            evaluate,
            checkpoint,
        }
    }

    /// The count that `b_g2_msm` raises: the C++ side's own atomic, lent as long as the
    /// device's resources live.
    fn throttle(&self) -> Option<&AtomicI32> {
        self.throttle.as_ref().map(|resources| resources.throttle())
    }
}

/// Returns true if C++ frees buffers at once, without a bound on how many at a time.
fn cpp_is_unbounded(dealloc: Dealloc) -> bool {
    dealloc == Dealloc::Unbounded
}

fn auxiliary_pool(config: &Config, name: &'static str) -> Result<ThreadPool> {
    let threads = config.synthesis.threads;
    let builder = ThreadPoolBuilder::new().num_threads(threads);
    let named = builder.thread_name(move |index| format!("cuzk-{name}-{index}"));
    named.build().map_err(no_pool(threads))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_way_of_disposal_has_no_bound() {
        let unbounded = Dealloc::ALL.map(cpp_is_unbounded);
        assert_eq!(unbounded, [true, false, false]);
    }
}
