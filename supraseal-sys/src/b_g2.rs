//! The multi-scalar multiplication of the B query in G2, on the C++ pool, with
//! the throttle of its device raised meanwhile. The algorithm is in
//! `csrc/b_g2_msm.cpp`, its slow twin in [`naive`](crate::naive).
//!
//! Invariant: Rust's slices are passed as they are, so the types on both sides
//! must have one layout, which is asserted below.
#![allow(unsafe_code)] // Passes slices to C++.

use blst::{blst_fr, blst_p2, blst_p2_affine};
use blstrs::{G2Affine, G2Projective, Scalar};
use group::Group;

use crate::bindings as sys;
use crate::pool;
use crate::resources::GpuResources;
use crate::status::{Status, check};

// blstrs declares each of the three transparent over blst's type.
const _: () = assert!(size_of::<G2Affine>() == size_of::<blst_p2_affine>());
const _: () = assert!(align_of::<G2Affine>() == align_of::<blst_p2_affine>());
const _: () = assert!(size_of::<G2Projective>() == size_of::<blst_p2>());
const _: () = assert!(align_of::<G2Projective>() == align_of::<blst_p2>());
const _: () = assert!(size_of::<Scalar>() == size_of::<blst_fr>());
const _: () = assert!(align_of::<Scalar>() == align_of::<blst_fr>());

/// `Σ scalars[i] · bases[i]`. The throttle of `resources` is one higher while
/// this runs. Zero scalars cost nothing, ones an addition.
///
/// The sum of the results over consecutive chunks is the result over the whole,
/// so a caller need not hold all bases at once; hold
/// [`raise_throttle`](GpuResources::raise_throttle) across the chunks then.
///
/// Any number of threads may call it at once. They share the pool, which is
/// started with one thread a core if [`set_gpu_threads`](crate::set_gpu_threads)
/// was not called before. The throttle counts from before the first chunk is
/// handed to the pool, including time spent behind another caller.
///
/// # Errors
///
/// [`Code::LengthMismatch`](crate::Code::LengthMismatch) unless there is one
/// base a scalar; [`Code::OutOfMemory`](crate::Code::OutOfMemory) if the
/// buffers of [`b_g2_msm_scratch_bytes`] cannot be had.
pub fn b_g2_msm(
    resources: &GpuResources,
    bases: &[G2Affine],
    scalars: &[Scalar],
) -> Result<G2Projective, Status> {
    pool::start_default()?;
    let mut sum = G2Projective::identity();
    // SAFETY: the pointers are those of live slices with their own lengths and
    // of a writable point, in types of one layout (asserted above), and C++
    // keeps none of them.
    check(&unsafe {
        sys::cuzk_b_g2_msm(
            resources.raw(),
            bases.as_ptr().cast(),
            bases.len(),
            scalars.as_ptr().cast(),
            scalars.len(),
            (&raw mut sum).cast(),
        )
    })?;
    Ok(sum)
}

/// What [`b_g2_msm`] allocates at most, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScratchBytes {
    /// Pippenger buckets, of all threads together: at most 6 MiB a thread.
    pub buckets: usize,
    /// The scalars that are neither zero nor one and the places of their bases,
    /// if all are such: 40 bytes each.
    pub selection: usize,
}

impl ScratchBytes {
    /// Both together.
    #[must_use]
    pub fn total(self) -> usize {
        self.buckets.saturating_add(self.selection)
    }
}

/// An upper bound of what one call of [`b_g2_msm`] over `num_scalars` scalars
/// allocates on a pool of `threads` threads.
#[must_use]
pub fn b_g2_msm_scratch_bytes(num_scalars: usize, threads: u32) -> ScratchBytes {
    // SAFETY: no pointers are involved.
    let scratch = unsafe { sys::cuzk_b_g2_msm_scratch(num_scalars, threads) };
    ScratchBytes {
        buckets: scratch.buckets_bytes,
        selection: scratch.selection_bytes,
    }
}
