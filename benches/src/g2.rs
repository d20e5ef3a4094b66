//! The MSM in G2, by each of the two kernels.
//!
//! Invariant: the throttle is raised while either runs.

use crate::{
    Result,
    msm::{Scalars, bases},
};
use blstrs::{G2Affine, G2Projective, Scalar};
use cuzk_kernels::{
    Isa,
    msm::{PackedScalars, g2_bucket_bytes, g2_packed},
};
use cuzk_pce::{PackedBuilder, PackedWitness};
use ff::Field;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::atomic::AtomicI32;
use supraseal_sys::{GpuResources, b_g2_msm, b_g2_msm_scratch_bytes};

/// The kernel that computes the MSM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kernel {
    /// `supraseal_sys::b_g2_msm`, the slow twin. Its pool is the process's, whose size is
    /// decided once.
    Cpp,
    /// The engine's kernel, with a device and without one: `cuzk_kernels::msm::g2_packed` on
    /// a pool of its own.
    Engine,
}

impl Kernel {
    /// Both kernels.
    pub const ALL: [Kernel; 2] = [Kernel::Cpp, Kernel::Engine];

    /// Returns a word for tables.
    pub fn name(self) -> &'static str {
        match self {
            Kernel::Cpp => "c++",
            Kernel::Engine => "engine",
        }
    }

    /// Returns the bytes of the buckets of an MSM over these scalars.
    pub fn bucket_bytes(self, scalars: Scalars, len: usize, threads: usize) -> usize {
        match self {
            Kernel::Cpp => {
                let threads = u32::try_from(threads).unwrap_or(u32::MAX);
                b_g2_msm_scratch_bytes(len, threads).buckets
            }
            Kernel::Engine => {
                let small = |scalar: &&Scalar| **scalar != Scalar::ZERO && **scalar != Scalar::ONE;
                let wide = scalars.make(len).iter().filter(small).count();
                g2_bucket_bytes(Isa::best(), wide, threads)
            }
        }
    }
}

/// An MSM that can be computed again and again.
#[derive(Debug)]
pub struct Msm {
    kernel: Kernel,
    bases: Vec<G2Affine>,
    scalars: Vec<Scalar>,
    packed: PackedWitness<Scalar>,
    resources: GpuResources,
    pool: ThreadPool,
}

impl Msm {
    /// Makes an MSM of `len` terms. The engine's kernel has `threads` threads.
    ///
    /// # Errors
    /// If there is too little memory, or if the threads do not start.
    pub fn new(kernel: Kernel, scalars: Scalars, len: usize, threads: usize) -> Result<Self> {
        let scalars = scalars.make(len);
        let mut packed = PackedBuilder::with_capacity(len, 0);
        packed.push_input(Scalar::ONE);
        packed.extend(&scalars);
        Ok(Msm {
            kernel,
            bases: bases::<G2Projective>(len),
            scalars,
            packed: packed.finish()?,
            resources: GpuResources::new()?,
            pool: ThreadPoolBuilder::new().num_threads(threads).build()?,
        })
    }

    /// Returns the count that is raised while the MSM is computed.
    pub fn throttle(&self) -> &AtomicI32 {
        self.resources.throttle()
    }

    /// Computes it.
    ///
    /// # Errors
    /// The kernel's.
    pub fn compute(&self) -> Result<G2Projective> {
        match self.kernel {
            Kernel::Cpp => Ok(b_g2_msm(&self.resources, &self.bases, &self.scalars)?),
            Kernel::Engine => {
                let _raised = self.resources.raise_throttle();
                let slice = self.packed.aux_slice();
                let scalars = PackedScalars::new(slice.len, slice.bits, slice.wide, slice.values)?;
                let msm = || g2_packed(Isa::best(), &self.bases[..], &scalars);
                Ok(self.pool.install(msm)?)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kernels_agree() {
        for scalars in [Scalars::Witness, Scalars::Uniform] {
            let points = Kernel::ALL.map(|kernel| {
                let msm = Msm::new(kernel, scalars, 1000, 2).unwrap();
                let computed = msm.compute().unwrap();
                assert_eq!(msm.throttle().load(std::sync::atomic::Ordering::SeqCst), 0);
                computed
            });
            assert_eq!(points[0], points[1]);
        }
    }

    #[test]
    fn buckets_take_memory() {
        for kernel in Kernel::ALL {
            assert!(kernel.bucket_bytes(Scalars::Uniform, 1000, 2) > 0);
        }
    }
}
