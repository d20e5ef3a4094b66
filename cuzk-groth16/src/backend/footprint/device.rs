//! The memory on the host of a partition that a device proves, and of its circuit.

use blstrs::{G2Affine, G2Projective, Scalar};
use cuzk_kernels::Isa;
use cuzk_kernels::msm::MsmMemory;
use supraseal_sys::b_g2_msm_scratch_bytes;

use super::{Footprint, Packed, Replay, SynthesisShare, threads_bytes, wide_terms};
use crate::circuit_sizes::CircuitSizes;
use crate::params::Shapes;

/// The pinned buffers through which points go to a device: two of 2²² points in
/// G1, the longest piece of its plan.
const PINNED_PIECES_BYTES: u64 = 2 * (96 << 22);

/// The variables of one task of the C++ side's MSM in G2.
const B_G2_TASK_VARIABLES: usize = 64 * 64;

/// The most that the results of a device's worker take of pinned memory.
const RESULTS_BYTES_MAX: u64 = 16 << 20;

/// The workspace on the host of the MSM in G2 of a device's proofs.
#[derive(Clone, Copy, Debug)]
pub(in crate::backend) enum BG2Workspace {
    /// Of the kernel of `cuzk-kernels`, with these instructions.
    Kernel { threads: usize, isa: Isa },
    /// Of the C++ side's MSM.
    Cpp { threads: u32 },
    /// The device makes the MSM.
    Absent,
}

/// The memory of an MSM in G2, in bytes.
#[derive(Default)]
struct Held {
    heap_bytes: u64,
    /// Of blocks that were taken from the pool.
    pool_bytes: u64,
}

impl BG2Workspace {
    /// Takes the blocks of the MSM, and returns the most that it holds.
    fn take(self, circuit: &CircuitSizes, shapes: &Shapes, pool: &mut Replay) -> Held {
        match self {
            Self::Kernel { threads, isa } => {
                let terms = wide_terms(circuit.wide().in_b, shapes.b_g2);
                let sum = MsmMemory::of_g2(isa, &[terms], threads);
                let query = Packed::of_b(circuit);
                pool.take(&query.blocks());
                pool.take(&sum.blocks);
                let blocks_bytes = sum.blocks.iter().sum::<usize>() as u64;
                Held {
                    heap_bytes: sum.heap_bytes as u64 + threads_bytes(threads),
                    pool_bytes: blocks_bytes + query.bytes(),
                }
            }
            Self::Cpp { threads } => Held {
                heap_bytes: cpp_bytes(circuit, threads),
                pool_bytes: 0,
            },
            Self::Absent => Held::default(),
        }
    }
}

/// The workspace on the host of the proofs that a device makes.
#[derive(Clone, Copy, Debug)]
pub(in crate::backend) struct DeviceWorkspace {
    /// The partitions that are on their way at once.
    pub(in crate::backend) workers: u64,
    /// The MSM in G2 on the host.
    pub(in crate::backend) b_g2: BG2Workspace,
}

impl DeviceWorkspace {
    /// Returns the footprint of a partition. `shapes` are those of the multiples that its
    /// parameters have.
    pub(in crate::backend) fn footprint(
        self,
        circuit: &CircuitSizes,
        shapes: &Shapes,
        share: SynthesisShare,
    ) -> Footprint {
        let mut pool = Replay::default();
        share.replay(circuit, &mut pool);
        let b_g2 = self.b_g2.take(circuit, shapes, &mut pool);
        let on_host = share.footprint_of(circuit, pool);
        Footprint {
            peak_bytes: on_host.peak_bytes + b_g2.heap_bytes,
            finish_bytes: on_host.finish_bytes + b_g2.heap_bytes + b_g2.pool_bytes,
            kept_blocks: on_host.kept_blocks,
        }
    }

    /// Returns the bytes that are kept for a circuit on the device: pinned memory, and the
    /// circuit in the form that was uploaded.
    pub(in crate::backend) fn kept_bytes(self, circuit: &CircuitSizes) -> u64 {
        let values = circuit.wide().all + circuit.num_inputs;
        // Two bits a variable and a rank for 64 of them, and 32 bytes where wide.
        let witness = circuit.num_aux * 3 / 8 + values * 32;
        let flat = circuit.resident_bytes;
        PINNED_PIECES_BYTES + self.workers * (witness as u64 + RESULTS_BYTES_MAX) + flat as u64
    }
}

/// Returns the most that the C++ side's MSM in G2 holds on the host, in bytes. That is: the
/// decoded bases and the scalars of the wide terms, a task's decoded bases for each
/// thread, and the scratch of Pippenger's algorithm. See `csrc/b_g2_packed.cpp`.
fn cpp_bytes(circuit: &CircuitSizes, threads: u32) -> u64 {
    let wide = circuit.wide().in_b + circuit.num_inputs;
    let terms = wide * (size_of::<G2Affine>() + size_of::<Scalar>());
    let tasks = circuit.num_aux.div_ceil(B_G2_TASK_VARIABLES);
    let task_sums = tasks * (size_of::<G2Projective>() + size_of::<usize>());
    let task_bases = B_G2_TASK_VARIABLES * (size_of::<G2Affine>() + size_of::<usize>());
    let scratch = b_g2_msm_scratch_bytes(wide, threads).total();
    (terms + task_sums + threads as usize * task_bases + scratch) as u64
}
