//! The MSM of the B query in G2, on the C++ pool. The throttle of its device is raised
//! while it runs. The algorithm is in `csrc/b_g2_msm.cpp`, its slow twin in
//! [`naive`](crate::naive).
//!
//! Not the call of C++, which is in `resources.rs`.

use blstrs::{G2Affine, G2Projective, Scalar};

use crate::abi;
use crate::pool;
use crate::resources::GpuResources;
use crate::status::Status;

/// Returns `Σ scalars[i] · bases[i]`. The throttle of `resources` is one higher while
/// this runs. Scalars of zero cost nothing, and scalars of one cost an addition each.
///
/// The results over consecutive chunks add up to the result over the whole, so a caller
/// need not hold all bases at once. It then holds
/// [`raise_throttle`](GpuResources::raise_throttle) across the chunks.
///
/// Any number of threads may call it at once. They share the pool. If
/// [`set_gpu_threads`](crate::set_gpu_threads) was not called before, the pool is
/// started with one thread for each core. The throttle is raised before the first chunk
/// is handed to the pool, so it also counts the time spent behind another caller.
///
/// # Errors
///
/// [`Code::LengthMismatch`](crate::Code::LengthMismatch) unless there is one base for
/// each scalar; [`Code::OutOfMemory`](crate::Code::OutOfMemory) if the buffers of
/// [`b_g2_msm_scratch_bytes`] cannot be allocated.
pub fn b_g2_msm(
    resources: &GpuResources,
    bases: &[G2Affine],
    scalars: &[Scalar],
) -> Result<G2Projective, Status> {
    pool::start_default()?;
    resources.b_g2_msm(bases, scalars)
}

/// The most that [`b_g2_msm`] allocates, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScratchBytes {
    /// Pippenger buckets of all threads together: at most 6 MiB for each thread.
    pub buckets: usize,
    /// The scalars that are neither zero nor one, with the places of their bases: 40
    /// bytes each, if all scalars are such.
    pub selection: usize,
}

impl ScratchBytes {
    /// Returns the sum of both.
    #[must_use]
    pub fn total(self) -> usize {
        self.buckets.saturating_add(self.selection)
    }
}

/// Returns an upper bound of the memory that one call of [`b_g2_msm`] allocates, over
/// `num_scalars` scalars on a pool of `threads` threads.
#[must_use]
pub fn b_g2_msm_scratch_bytes(num_scalars: usize, threads: u32) -> ScratchBytes {
    let scratch = abi::b_g2_msm_scratch(num_scalars, threads);
    ScratchBytes {
        buckets: scratch.buckets_bytes,
        selection: scratch.selection_bytes,
    }
}
